//! Waits that run nothing but what they wait for.

use crate::fork::job;

/// Calls a closure; waits inside run nothing on this thread that was not forked inside.
///
/// A thread that waits for the other half of its [`join`](crate::join), or for its
/// [`scope`](crate::scope), runs other parts of the same task meanwhile: of the same loop over many items, for
/// example. If it holds a lock, such a part may want the same lock, and would wait for the thread that it
/// runs on; or it waits for something else that this thread would do next. Inside `isolate` only what descends from the closure is run; if there is nothing of that kind, and
/// something else is to be done, another thread takes this one's place in the pool. The same
/// holds in everything that is forked inside, on whichever thread. Where the system refuses that other thread, and no other worker
/// is up, this one runs what there is all the same: nothing would go on otherwise.
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
/// Prefer to let go of the lock before the join, where you can.
///
/// On a thread of a Rayon pool that stands on heist it promises nothing: such a thread keeps its place, and runs whatever there is
/// while it waits, as Rayon's threads do.
pub fn isolate<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    job::isolated(f)
}
