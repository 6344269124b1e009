//! `isolate`: a wait inside it runs only what was forked inside it.

use crate::fork::job;

/// Calls a closure. While a join or scope inside it waits, its thread runs nothing that was not forked inside.
///
/// A thread that waits for the other half of its [`join`](crate::join), or for its [`scope`](crate::scope),
/// normally runs other parts of the same task meanwhile, for example other parts of the same parallel loop. If
/// the thread holds a lock, such a part may want the same lock and would wait for the thread that it runs on; or
/// it may wait for something else that this thread would do next.
///
/// Inside `isolate`, the thread runs only what descends from the closure. If there is no such work, and there is
/// other work to do, another thread takes over the worker's core. The same holds for everything that is forked
/// inside, on any thread. Where the system refuses another thread, and no other worker is awake, the thread runs
/// any task: otherwise nothing would run at all.
///
/// ```
/// use std::sync::Mutex;
///
/// let shared = Mutex::new(vec![4, 3, 2, 1]);
/// heist::isolate(|| {
///     let mut numbers = shared.lock().unwrap();
///     let (low, high) = numbers.split_at_mut(2);
///     heist::join(|| low.sort(), || high.sort());
/// });
/// assert_eq!(shared.into_inner().unwrap(), [3, 4, 1, 2]);
/// ```
///
/// Prefer to release the lock before the join, where you can.
///
/// On a thread of a Rayon pool that runs on heist, `isolate` has no effect: such a thread keeps its core and runs
/// any task while it waits, as Rayon's threads do.
pub fn isolate<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    job::isolated(f)
}
