//! `scope`: any number of closures that borrow, and a call that waits for all of them.

mod base;
mod fifo;

pub(crate) use fifo::scope_fifo_in;
pub use fifo::{ScopeFifo, in_place_scope_fifo, scope_fifo};

use std::fmt;
use std::sync::Arc;

use crate::broadcast::BroadcastContext;
use crate::registry::{Registry, run_in_pool, with_current_registry};
use base::{ScopeBase, SharedPtr};

/// Calls a closure that can spawn closures which borrow, and waits for all of them.
///
/// All of them, including the first, run in the pool that the current thread belongs to, or otherwise in
/// the global pool. If two closures are enough, [`join`](crate::join()) costs less.
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
/// A thread runs what it has spawned newest first; other threads take the oldest. While a thread waits for
/// the end of the scope, it runs any job of the pool.
///
/// # Panics
///
/// Propagates the first panic of the closure or of a spawned closure, after all of them have ended.
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    run_in_pool(|registry| scope_in(registry, op))
}

/// Like [`scope`], but the closure itself runs on the calling thread. What it spawns runs in the pool that
/// this thread belongs to, or otherwise in the global pool.
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
/// Propagates panics like [`scope`].
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    with_current_registry(|registry| scope_in(registry, op))
}

/// Opens a scope whose closure runs on the calling thread, and whose spawns go to the given pool.
pub(crate) fn scope_in<'scope, OP, R>(registry: &Registry, op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    // SAFETY: the registry is borrowed for this call, and the scope ends within it.
    let scope = Scope { base: unsafe { ScopeBase::new(registry) } };
    scope.base.complete(|| op(&scope))
}

/// Spawns closures that borrow. See [`scope()`].
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
    base: ScopeBase<'scope>,
}

impl<'scope> Scope<'scope> {
    /// Runs a closure in the pool of the scope, at the latest before the scope ends. The closure may borrow
    /// anything that outlives the scope, and may spawn further closures.
    ///
    /// ```
    /// let text = String::from("borrowed");
    /// let mut length = 0;
    /// rayon_core::scope(|scope| scope.spawn(|_| length = text.len()));
    /// assert_eq!(length, 8);
    /// ```
    #[inline(never)]
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        let scope = SharedPtr::new(self);
        // SAFETY: the scope waits for this job before it ends.
        let job = self.base.job(move || body(unsafe { scope.get() }));
        // SAFETY: 1. panics are caught. 2. what the job borrows outlives the scope, which waits for it
        // before it ends.
        unsafe { self.base.registry().spawn_job(job) };
    }

    /// Calls a closure on every thread of the pool of the scope, at the latest before the scope ends.
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
            let (scope, body) = (SharedPtr::new(self), Arc::clone(&body));
            // SAFETY: the scope waits for this job before it ends.
            move || BroadcastContext::with(|context| body(unsafe { scope.get() }, context))
        });
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fields(&mut f.debug_struct("Scope")).finish()
    }
}
