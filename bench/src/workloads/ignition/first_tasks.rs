//! Notes when each worker ran its first task of a lap.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The times of the current lap. There is one lap at a time.
static TIMES: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

thread_local! {
    /// The last lap in which this thread ran a task.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The first tasks of a lap, one for each worker. A lap is identified by the time at which it began.
#[derive(Clone, Copy)]
pub(super) struct FirstTasks {
    begin: Instant,
}

impl FirstTasks {
    /// Begins a new lap.
    pub(super) fn begin() -> Self {
        TIMES.lock().unwrap().clear();
        Self { begin: Instant::now() }
    }

    /// Notes the time, if this is the worker's first task in the lap. Every task calls this.
    #[inline]
    pub(super) fn note(self) {
        if LAST.replace(Some(self.begin)) != Some(self.begin) {
            TIMES.lock().unwrap().push(Instant::now());
        }
    }

    /// Returns how long after the begin each worker ran its first task, in order.
    pub(super) fn times(self) -> Vec<Duration> {
        let mut times: Vec<_> =
            TIMES.lock().unwrap().iter().map(|time| time.duration_since(self.begin)).collect();
        times.sort_unstable();
        times
    }
}
