//! Closures that nobody waits for.

use crate::registry::{Registry, contain, with_current};

/// Runs a closure some time, on the pool that this thread belongs to, or else on the global one.
///
/// A thread of the pool runs what it has spawned newest first; others take the oldest. For another order see
/// [`spawn_fifo`]; for closures that borrow, [`scope`](crate::scope()).
///
/// If it panics, the pool's [panic handler](crate::ThreadPoolBuilder::panic_handler) is told. Without one, the process
/// is aborted.
///
/// ```
/// let (tell, told) = std::sync::mpsc::channel();
/// rayon_core::spawn(move || tell.send(6 * 7).unwrap());
/// assert_eq!(told.recv(), Ok(42));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    with_current(|registry| registry.spawn(func));
}

/// [`spawn`], but a thread of the pool runs what it has spawned in this way oldest first.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// let (tell, told) = std::sync::mpsc::channel();
/// pool.install(|| {
///     for n in 0..3 {
///         let tell = tell.clone();
///         rayon_core::spawn_fifo(move || tell.send(n).unwrap());
///     }
/// });
/// drop(tell);
/// assert_eq!(told.iter().collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    with_current(|registry| registry.spawn_fifo(func));
}

impl Registry {
    pub(crate) fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: it borrows nothing, and panics are contained.
        unsafe { self.submit(move || contain(f)) };
    }

    pub(crate) fn spawn_fifo(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: it borrows nothing, and panics are contained.
        unsafe { self.submit_fifo(move || contain(f)) };
    }
}
