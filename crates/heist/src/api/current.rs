//! What code can ask about the pool and the worker that it runs on.

use crate::worker::current::with_worker;

/// Returns the number of the worker that the calling thread is at the moment, from zero to one less than the number of
/// [workers](crate::Pool::workers). At any moment, no two threads of a pool have the same number.
///
/// Returns `None` on a thread of no pool, and on a thread of a pool that has no core, the right to run as a worker:
///
/// * A task that waits, for a task, a scope or another pool, may go on without a core when its wait is over, until a
///   worker gives it one. Meanwhile it is not one of the workers.
/// * The hooks of [`Builder::on_thread_start`](crate::Builder::on_thread_start) and
///   [`Builder::on_thread_stop`](crate::Builder::on_thread_stop) run before a thread has its first core, and after it had
///   its last one.
///
/// So the number may change at every wait, and a task may be another worker after a [`join`](crate::join()) than before
/// it. Use it for statistics, or to choose one of several places that are protected in other ways. It does not stay
/// the caller's own.
///
/// ```
/// assert_eq!(heist::worker_index(), None);
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let index = pool.install(heist::worker_index);
/// assert!(matches!(index, Some(0 | 1)));
/// # Ok::<(), heist::BuildError>(())
/// ```
pub fn worker_index() -> Option<usize> {
    with_worker(|worker| worker.worker_index()).flatten()
}
