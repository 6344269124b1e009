//! Many closures that borrow, and an end that waits for all of them.

mod base;
mod fifo;

pub(crate) use fifo::open_fifo;
pub use fifo::{ScopeFifo, in_place_scope_fifo, scope_fifo};

use std::fmt;
use std::sync::Arc;

use crate::broadcast::BroadcastContext;
use crate::registry::{Registry, run_inside, with_current};
use base::{Base, Pointer};

/// Runs a closure that may spawn others which borrow, and waits for all of them.
///
/// It uses the pool that this thread belongs to, or else the global one: the closure runs there too. Where two closures
/// are enough, [`join`](crate::join()) costs less.
///
/// ```
/// let mut numbers = [1, 2, 3, 4];
/// rayon_core::scope(|scope| {
///     for number in &mut numbers {
///         scope.spawn(move |_| *number *= 10);
///     }
/// });
/// assert_eq!(numbers, [10, 20, 30, 40]);
/// ```
///
/// A thread runs what it has spawned newest first, others take the oldest. While it waits for the end of the scope, it
/// runs whatever there is.
///
/// # Panics
///
/// With the panic that came first, of the closure or of one that was spawned, after all of them have ended.
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    run_inside(|registry| open(registry, op))
}

/// [`scope`], but the closure itself runs on the calling thread. What it spawns goes to the pool that this thread
/// belongs to, or else to the global one.
///
/// ```
/// let caller = std::thread::current().id();
/// let mut answer = 0;
/// rayon_core::in_place_scope(|scope| {
///     assert_eq!(std::thread::current().id(), caller);
///     scope.spawn(|_| answer = 42);
/// });
/// assert_eq!(answer, 42);
/// ```
///
/// # Panics
///
/// As [`scope`].
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    with_current(|registry| open(registry, op))
}

/// On the calling thread, for spawns to the given pool.
pub(crate) fn open<'scope, OP, R>(registry: &Registry, op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    // SAFETY: it is there during this call, which ends the scope.
    let scope = Scope { base: unsafe { Base::new(registry) } };
    scope.base.complete(|| op(&scope))
}

/// Where closures that borrow are spawned: see [`scope()`].
///
/// ```
/// let total = std::sync::atomic::AtomicU32::new(0);
/// rayon_core::scope(|scope| {
///     scope.spawn(|scope| {
///         total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         scope.spawn(|_| {
///             total.fetch_add(2, std::sync::atomic::Ordering::Relaxed);
///         });
///     });
/// });
/// assert_eq!(total.into_inner(), 3);
/// ```
pub struct Scope<'scope> {
    base: Base<'scope>,
}

impl<'scope> Scope<'scope> {
    /// Runs a closure on the pool of the scope, at the latest before the scope ends. It may borrow whatever outlives
    /// the scope, and may itself spawn.
    ///
    /// ```
    /// let text = String::from("borrowed");
    /// let mut length = 0;
    /// rayon_core::scope(|scope| scope.spawn(|_| length = text.len()));
    /// assert_eq!(length, 8);
    /// ```
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        let scope = Pointer::new(self);
        // SAFETY: the scope's end waits for this.
        let job = self.base.job(move || body(unsafe { scope.get() }));
        // SAFETY: what it borrows outlives the scope, whose end waits for it; panics are caught.
        unsafe { self.base.registry().submit(job) };
    }

    /// Calls a closure on every thread of the scope's pool, at the latest before the scope ends.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// let sum = std::sync::atomic::AtomicUsize::new(0);
    /// pool.scope(|scope| {
    ///     scope.spawn_broadcast(|_, context| {
    ///         sum.fetch_add(context.index(), std::sync::atomic::Ordering::Relaxed);
    ///     });
    /// });
    /// assert_eq!(sum.into_inner(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let body = Arc::new(body);
        self.base.broadcast(|| {
            let (scope, body) = (Pointer::new(self), Arc::clone(&body));
            // SAFETY: the scope's end waits for this.
            move || BroadcastContext::with(|context| body(unsafe { scope.get() }, context))
        });
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fields(&mut f.debug_struct("Scope")).finish()
    }
}
