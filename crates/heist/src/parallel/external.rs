//! External threads: threads of no pool, which take part in a short loop of the global pool.
//!
//! To move a loop to the pool and back takes ten microseconds and more, which is longer than many loops take. So an
//! external thread shares half of the loop, if a worker is looking for work, and runs the other half itself.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crate::api::pool::{Inner, Pool, with_shared};
use crate::error::JoinError;
use crate::fork::job;
use crate::panic::{AbortOnUnwind, contain};
use crate::sync::{Instant, per_thread};
use crate::task::{Awaited, Task, TaskHandle};
use crate::trace;
use crate::worker::current::AnyPool;
use crate::worker::outside::watch_outside;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::{Shared, count_end};

/// Returns the number of workers of the global pool, or one if that has been stopped.
pub(crate) fn workers() -> usize {
    with_shared!(Pool::global(), shared => {
        if shared.idle.is_stopping() { 1 } else { shared.config.workers }
    })
}

/// Runs a closure on the global pool.
pub(crate) fn install<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    Pool::global().install(f)
}

/// Runs a closure on this thread if it belongs to a pool, else on the global pool.
pub(crate) fn inside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if job::is_open() { f() } else { install(f) }
}

/// Returns a duration in nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs() as f64 * 1e9 + f64::from(time.subsec_nanos())
}

/// One loop of an external thread.
pub(crate) struct Visit {
    pub(crate) start: Instant,
    /// The nanoseconds that this thread spent in the loops just before this one, without help from a worker.
    before: f64,
}

/// Loops that follow each other more closely than this count as one.
const GAP: Duration = Duration::from_micros(5);

/// The end of the last loop, and the time that it and the loops directly before it took.
#[derive(Clone, Copy)]
struct Last {
    end: Option<Instant>,
    alone: f64,
}

per_thread! {
    static LAST: Cell<Last> = Cell::new(Last { end: None, alone: 0.0 });
}

impl Visit {
    pub(crate) fn begin() -> Self {
        let start = Instant::now();
        let last = LAST.with(Cell::get);
        let close = last.end.is_some_and(|end| start.saturating_duration_since(end) < GAP);
        Self { start, before: if close { last.alone } else { 0.0 } }
    }

    /// Returns whether a loop that will take `time` is worth sharing: with a worker that is looking for work, or,
    /// together with the loops before, by waking a worker, which takes `wake`.
    pub(crate) fn is_worth(&self, time: f64, wake: f64) -> bool {
        with_shared!(Pool::global(), shared => {
            let is_up = shared.idle.has_searcher();
            !shared.idle.is_stopping()
                && (is_up || (time + self.before >= wake && !shared.idle.all_busy()))
        })
    }

    /// Notes that the loop has ended without help.
    pub(crate) fn end_alone(&self) {
        let end = Instant::now();
        let alone = self.before + nanoseconds(end.saturating_duration_since(self.start));
        LAST.with(|last| last.set(Last { end: Some(end), alone }));
    }
}

/// A half that was offered to the pool, and may not have been taken yet.
pub(crate) struct Offer<'o>(&'o dyn Fn() -> bool);

impl Offer<'_> {
    pub(crate) fn is_taken(&self) -> bool {
        (self.0)()
    }
}

/// Like [`join`](crate::join), with the first closure on this thread, and the second on this thread or on the
/// pool.
pub(crate) fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Offer<'_>) -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    with_shared!(Pool::global(), shared => {
        let guard = AbortOnUnwind;
        // The root of the second closure is this call.
        let place = 0_u8;
        // SAFETY: what the closure and its result borrow outlives this call. The call does not return before the
        // task is done, and it does not unwind: the guard would abort.
        let (task, handle) = unsafe { Task::job((&raw const place).addr(), true, b) };
        shared.push_job(task);
        let is_taken = || handle.is_started();
        let left = catch_unwind(AssertUnwindSafe(|| a(&Offer(&is_taken))));
        finish_offered(shared, &handle);
        let right = handle.take();
        std::mem::forget(guard);
        match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(payload), right) => {
                contain(|| drop(right));
                resume_unwind(payload)
            }
            (Ok(_), Err(JoinError::Panicked(panic))) => panic.resume(),
            (Ok(_), Err(JoinError::Cancelled | JoinError::Stopped)) => {
                unreachable!("a job is never refused")
            }
        }
    })
}

/// Runs the offered half here if no worker has started it; else waits for it.
fn finish_offered<Q: PoolQueues, R>(shared: &Shared<Q>, handle: &TaskHandle<R>) {
    let Some(claimed) = handle.claim() else { return watch_outside(handle) };
    let end = trace::task(|| claimed.execute(&shared.config.on_panic));
    count_end(shared.ledger.of_non_workers(), end);
    claimed.done();
}
