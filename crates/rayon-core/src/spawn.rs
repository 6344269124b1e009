//! `spawn`: closures that nothing waits for.

use crate::registry::{Registry, catch_and_report, with_current_registry};

/// Runs a closure later, in the pool that this thread belongs to, or otherwise in the global pool.
///
/// A thread of the pool runs what it has spawned newest first; other threads take the oldest. See
/// [`spawn_fifo`] for the opposite order, and [`scope`](crate::scope()) for closures that borrow.
///
/// If the closure panics, the [panic handler](crate::ThreadPoolBuilder::panic_handler) of the pool is
/// called. Without a handler the process is aborted.
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// rayon_core::spawn(move || sender.send(6 * 7).unwrap());
/// assert_eq!(receiver.recv(), Ok(42));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    with_current_registry(|registry| registry.spawn(func));
}

/// Like [`spawn`], but a thread of the pool runs what it has spawned with this function oldest first.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// pool.install(|| {
///     for n in 0..3 {
///         let sender = sender.clone();
///         rayon_core::spawn_fifo(move || sender.send(n).unwrap());
///     }
/// });
/// drop(sender);
/// assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    with_current_registry(|registry| registry.spawn_fifo(func));
}

impl Registry {
    pub(crate) fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: the closure borrows nothing, and its panics are caught.
        unsafe { self.spawn_job(move || catch_and_report(f)) };
    }

    pub(crate) fn spawn_fifo(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: the closure borrows nothing, and its panics are caught.
        unsafe { self.spawn_job_fifo(move || catch_and_report(f)) };
    }
}
