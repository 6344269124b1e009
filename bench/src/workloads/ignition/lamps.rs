//! When each worker ran its first task of a lap.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Of this lap; there is one at a time.
static LIT: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

thread_local! {
    /// The lap in which this thread has last run something.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// One for every worker. A lap is known by when it began.
#[derive(Clone, Copy)]
pub(super) struct Lamps {
    begin: Instant,
}

impl Lamps {
    /// A new lap begins.
    pub(super) fn off() -> Self {
        LIT.lock().unwrap().clear();
        Self { begin: Instant::now() }
    }

    /// Called by every task.
    #[inline]
    pub(super) fn light(self) {
        if LAST.replace(Some(self.begin)) != Some(self.begin) {
            LIT.lock().unwrap().push(Instant::now());
        }
    }

    /// After what time each was lit, the first one first.
    pub(super) fn lit(self) -> Vec<Duration> {
        let mut times: Vec<_> =
            LIT.lock().unwrap().iter().map(|lit| lit.duration_since(self.begin)).collect();
        times.sort_unstable();
        times
    }
}
