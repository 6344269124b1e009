//! Loops of external threads, which belong to no pool: when they are worth a visit to the global pool.

use std::cell::Cell;

use crate::api::pool::{Inner, Pool, with_shared};
use crate::fork::job;
use crate::sync::{Ticks, copies, per_thread};

/// Returns the number of workers of the global pool, or one if that has been stopped.
pub(crate) fn workers() -> usize {
    with_shared!(Pool::global(), shared => {
        if shared.idle.is_stopping() || shared.copy != copies() { 1 } else { shared.workers_in_use() }
    })
}

/// Runs a closure on this thread if it belongs to a pool, else on the global pool.
pub(crate) fn inside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if job::is_open() { f() } else { Pool::global().install(f) }
}

/// One loop of an external thread, which runs it alone so far.
pub(crate) struct Alone {
    pub(crate) start: Ticks,
    /// The nanoseconds that this thread spent in the loops just before this one, without help from a worker.
    pub(crate) before: f64,
}

/// Loops that follow each other more closely than this, in nanoseconds, count as one.
const GAP: f64 = 5_000.0;

/// The end of the last loop, and the time that it and the loops directly before it took.
#[derive(Clone, Copy)]
struct Last {
    end: Option<Ticks>,
    alone: f64,
}

per_thread! {
    static LAST: Cell<Last> = Cell::new(Last { end: None, alone: 0.0 });
}

impl Alone {
    pub(crate) fn begin() -> Self {
        let start = Ticks::now();
        let last = LAST.with(Cell::get);
        let close = last.end.is_some_and(|end| start.since(end) < GAP);
        Self { start, before: if close { last.alone } else { 0.0 } }
    }

    /// Returns whether a loop that will take `time` is worth sharing: with a worker that is looking for work, or,
    /// together with the loops before, by waking a worker, which takes `wake`.
    pub(crate) fn is_worth_a_visit(&self, time: f64, wake: f64) -> bool {
        with_shared!(Pool::global(), shared => {
            let is_up = shared.idle.has_searcher();
            !shared.idle.is_stopping()
                && shared.copy == copies()
                && (is_up || (time + self.before >= wake && !shared.idle.all_busy()))
        })
    }

    /// Notes that the loop has ended without help.
    pub(crate) fn end(&self) {
        let end = Ticks::now();
        let alone = self.before + end.since(self.start);
        LAST.with(|last| last.set(Last { end: Some(end), alone }));
    }
}
