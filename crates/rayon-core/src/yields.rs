//! A thread of a pool that has time for others.

use crate::registry::with_here;

/// Runs one thing that the pool of this thread has to do, if there is any: its own first. `None` on a thread that
/// belongs to no pool.
///
/// For loops that wait for something by looking. Where nothing was found, such a loop should give way to other
/// threads of the system as well.
///
/// ```
/// use rayon_core::Yield;
///
/// assert_eq!(rayon_core::yield_now(), None);
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// pool.install(|| {
///     let (tell, told) = std::sync::mpsc::channel();
///     rayon_core::spawn(move || tell.send(42).unwrap());
///     assert_eq!(rayon_core::yield_now(), Some(Yield::Executed));
///     assert_eq!(told.try_recv(), Ok(42));
///     assert_eq!(rayon_core::yield_now(), Some(Yield::Idle));
/// });
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn yield_now() -> Option<Yield> {
    with_here(|here| here?.registry.engine.yield_now().map(Yield::from_found))
}

/// [`yield_now`], but only for what this thread has to do itself.
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
    with_here(|here| here?.registry.engine.yield_local().map(Yield::from_found))
}

/// Whether [`yield_now`] or [`yield_local`] has run something.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// assert_eq!(pool.install(|| rayon_core::yield_now()), Some(rayon_core::Yield::Idle));
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// It has.
    Executed,
    /// There was nothing to run.
    Idle,
}

impl Yield {
    pub(crate) fn from_found(found: bool) -> Self {
        if found { Self::Executed } else { Self::Idle }
    }
}
