//! Waits that run nothing else.

use crate::job;

/// Calls a closure in which waiting runs nothing else on this thread.
///
/// A thread that waits for the other half of its [`join`](crate::join), or for its
/// [`scope`](crate::scope), runs other fork-join work meanwhile. If it holds a lock, that other work may want
/// the same lock, and would wait for the thread that it runs on. Inside `isolate` that cannot happen: while
/// such a wait lasts, another thread takes this one's place in the pool. The same holds in everything that is
/// forked inside, on whichever thread.
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
/// Prefer to let go of the lock before the join, where you can: a wait in here can take as long as it takes to
/// wake a thread.
pub fn isolate<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    job::with_isolation(true, f)
}
