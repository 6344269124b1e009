//! Virtual cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use heist_sim::report::{begin, end};
pub(crate) use heist_sim::thread::{JoinHandle, pin, sleep, spawn};
pub(crate) use heist_sim::{now, work};

/// Counts what was done. Counting is part of the measurement, not of the workload, and is not charged.
pub(crate) struct Tally {
    done: AtomicU64,
    all: u64,
    waiting: heist_sim::thread::Thread,
}

impl Tally {
    /// Returns a tally for this many parts, for which the calling thread will wait.
    pub(crate) fn new(all: u64) -> Self {
        Self { done: AtomicU64::new(0), all, waiting: heist_sim::thread::current() }
    }

    /// Notes that a part is done.
    pub(crate) fn one(&self) {
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == self.all {
            self.waiting.unpark();
        }
    }

    /// Waits until all parts are done.
    pub(crate) fn wait(&self, _completed: impl Fn() -> u64, _span: Duration) {
        while self.done.load(Ordering::Relaxed) < self.all {
            heist_sim::thread::park();
        }
    }

    /// Returns how many parts were done.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
