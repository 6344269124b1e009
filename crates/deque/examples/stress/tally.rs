//! Did every number come exactly once?

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

/// How often each number has come.
pub(crate) struct Tally(Box<[AtomicU8]>);

impl Tally {
    /// Of the numbers below `count`.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU8::new(0)).collect())
    }

    pub(crate) fn mark(&self, number: usize) {
        self.0[number].fetch_add(1, Relaxed);
    }

    /// How many never came.
    pub(crate) fn lost(&self) -> usize {
        self.0.iter().filter(|times| times.load(Relaxed) == 0).count()
    }

    /// How many came more than once.
    pub(crate) fn doubled(&self) -> usize {
        self.0.iter().filter(|times| times.load(Relaxed) > 1).count()
    }
}
