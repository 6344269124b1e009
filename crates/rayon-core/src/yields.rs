//! `yield_now` and `yield_local`: run one job while waiting for something else.

use crate::registry::with_current_thread;

/// Runs one job of the pool that the current thread belongs to, if there is one. The jobs of the current
/// thread come first. Returns `None` on a thread that belongs to no pool.
///
/// This is for loops that poll for something. If there was no job to run, such a loop should also yield to
/// the other threads of the system.
///
/// ```
/// use rayon_core::Yield;
///
/// assert_eq!(rayon_core::yield_now(), None);
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// pool.install(|| {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     rayon_core::spawn(move || sender.send(42).unwrap());
///     assert_eq!(rayon_core::yield_now(), Some(Yield::Executed));
///     assert_eq!(receiver.try_recv(), Ok(42));
///     assert_eq!(rayon_core::yield_now(), Some(Yield::Idle));
/// });
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn yield_now() -> Option<Yield> {
    with_current_thread(|thread| thread?.registry.engine.yield_now().map(Yield::from_found))
}

/// Like [`yield_now`], but runs only jobs of the current thread.
///
/// ```
/// use rayon_core::Yield;
///
/// assert_eq!(rayon_core::yield_local(), None);
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// pool.install(|| {
///     rayon_core::spawn(|| ());
///     assert_eq!(rayon_core::yield_local(), Some(Yield::Executed));
///     assert_eq!(rayon_core::yield_local(), Some(Yield::Idle));
/// });
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn yield_local() -> Option<Yield> {
    with_current_thread(|thread| thread?.registry.engine.yield_local().map(Yield::from_found))
}

/// The outcome of [`yield_now`] or [`yield_local`].
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// assert_eq!(pool.install(|| rayon_core::yield_now()), Some(rayon_core::Yield::Idle));
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A job was run.
    Executed,
    /// There was no job to run.
    Idle,
}

impl Yield {
    pub(crate) fn from_found(found: bool) -> Self {
        if found { Self::Executed } else { Self::Idle }
    }
}
