//! `yield_now`: a task lets others start first.

use crate::sync;
use crate::worker::current::with_worker;

/// Lets tasks start that were queued before, and returns afterwards.
///
/// In a task of a pool, the tasks that this thread has spawned and that have not started go to the injector, the queue for
/// tasks from outside. Then a marker goes to the end of that queue, and the task waits until a worker has come to it, as it
/// would wait for another task: its core goes to another thread meanwhile. So at least the oldest of the queued tasks has
/// started when this returns, unless that is [near](crate::TaskBuilder::near) another worker. Each of the others was taken by a worker, which starts it at once, or, with
/// [`Strategy::WorkStealing`](crate::Strategy::WorkStealing), after others of a batch of up to 32 that it has taken with it.
///
/// If nothing is queued, and on a thread of no pool, this yields the processor, as [`std::thread::yield_now`] does.
///
/// A yield to queued tasks takes as long as it takes to hand the core to another thread and to get one back, some ten
/// microseconds, besides the time of these tasks. Each task that yields keeps a thread meanwhile. So this is not for
/// tasks by the thousand: divide a long task into several, or use `Pool::spawn_future`, where a future that yields keeps
/// no thread. The marker is not counted as a task.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let waited = pool.spawn(|| {
///     let started = Arc::new(AtomicBool::new(false));
///     let other = Arc::clone(&started);
///     heist::spawn(move || other.store(true, Ordering::Relaxed));
///     // The only worker runs this task.
///     while !started.load(Ordering::Relaxed) {
///         heist::yield_now();
///     }
/// });
/// waited.join().unwrap();
/// # Ok::<(), heist::BuildError>(())
/// ```
pub fn yield_now() {
    let yielded = with_worker(|worker| worker.yield_to_queued());
    if yielded != Some(true) {
        sync::yield_now();
    }
}
