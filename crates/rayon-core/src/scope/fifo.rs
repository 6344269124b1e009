//! `scope_fifo`: scopes whose closures run in the order in which they were spawned.

use std::fmt;
use std::sync::Arc;

use super::base::{ScopeBase, SharedPtr};
use crate::broadcast::BroadcastContext;
use crate::fifo::{self, Fifo};
use crate::registry::{Registry, run_in_pool, with_current_registry};

/// Like [`scope`](crate::scope()), but a thread runs what it has spawned in the scope oldest first.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
/// let order = std::sync::Mutex::new(Vec::new());
/// pool.install(|| {
///     rayon_core::scope_fifo(|scope| {
///         for n in 0..3 {
///             let order = &order;
///             scope.spawn_fifo(move |_| order.lock().unwrap().push(n));
///         }
///     })
/// });
/// assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
///
/// # Panics
///
/// Propagates panics like [`scope`](crate::scope()).
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    run_in_pool(|registry| scope_fifo_in(registry, op))
}

/// Like [`scope_fifo`], but the closure itself runs on the calling thread. What it spawns runs in the pool
/// that this thread belongs to, or otherwise in the global pool.
///
/// ```
/// let caller = std::thread::current().id();
/// let mut answer = 0;
/// rayon_core::in_place_scope_fifo(|scope| {
///     assert_eq!(std::thread::current().id(), caller);
///     scope.spawn_fifo(|_| answer = 42);
/// });
/// assert_eq!(answer, 42);
/// ```
///
/// # Panics
///
/// Propagates panics like [`scope`](crate::scope()).
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    with_current_registry(|registry| scope_fifo_in(registry, op))
}

/// Opens a scope whose closure runs on the calling thread, and whose spawns go to the given pool.
pub(crate) fn scope_fifo_in<'scope, OP, R>(registry: &Registry, op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    // SAFETY: the registry is borrowed for this call, and the scope ends within it.
    let base = unsafe { ScopeBase::new(registry) };
    let scope = ScopeFifo { base, fifos: Fifo::for_each(registry.threads()) };
    scope.base.complete(|| op(&scope))
}

/// Spawns closures that borrow, and that run in the order in which they were spawned. See [`scope_fifo`].
///
/// ```
/// let mut halves = [0; 2];
/// let (left, right) = halves.split_at_mut(1);
/// rayon_core::scope_fifo(|scope| {
///     scope.spawn_fifo(|_| left[0] = 1);
///     scope.spawn_fifo(|_| right[0] = 2);
/// });
/// assert_eq!(halves, [1, 2]);
/// ```
pub struct ScopeFifo<'scope> {
    base: ScopeBase<'scope>,
    /// A queue for each thread of the pool, with the jobs that it has spawned here. Empty when the scope
    /// ends.
    fifos: Box<[Fifo]>,
}

impl<'scope> ScopeFifo<'scope> {
    /// Runs a closure in the pool of the scope, at the latest before the scope ends. It runs after the
    /// closures that the calling thread has spawned here before, unless other threads take part.
    ///
    /// ```
    /// let text = String::from("borrowed");
    /// let mut length = 0;
    /// rayon_core::scope_fifo(|scope| scope.spawn_fifo(|_| length = text.len()));
    /// assert_eq!(length, 8);
    /// ```
    #[inline(never)]
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        let scope = SharedPtr::new(self);
        // SAFETY: the scope waits for this job before it ends.
        let job = self.base.job(move || body(unsafe { scope.get() }));
        let registry = self.base.registry();
        let Some(index) = registry.current_thread_index() else {
            // SAFETY: what the job borrows outlives the scope, which waits for it before it ends. Panics
            // are caught.
            unsafe { registry.engine.spawn(job) };
            return;
        };
        // SAFETY: what the job borrows outlives the scope, which waits for it before it ends.
        let job = unsafe { fifo::erase_lifetime(job) };
        self.fifos[index].push(job);
        let placeholder = move || {
            // SAFETY: the scope does not end before the job that the placeholder takes has run.
            let job = unsafe { scope.get() }.fifos[index].pop();
            job();
        };
        // SAFETY: the scope, which the placeholder borrows, is alive until its job has run. Panics are
        // caught.
        unsafe { registry.engine.spawn(placeholder) };
    }

    /// Calls a closure on every thread of the pool of the scope, at the latest before the scope ends.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// let sum = std::sync::atomic::AtomicUsize::new(0);
    /// pool.scope_fifo(|scope| {
    ///     scope.spawn_broadcast(|_, context| {
    ///         sum.fetch_add(context.index(), std::sync::atomic::Ordering::Relaxed);
    ///     });
    /// });
    /// assert_eq!(sum.into_inner(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let body = Arc::new(body);
        self.base.broadcast(|| {
            let (scope, body) = (SharedPtr::new(self), Arc::clone(&body));
            // SAFETY: the scope waits for this job before it ends.
            move || BroadcastContext::with(|context| body(unsafe { scope.get() }, context))
        });
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ScopeFifo");
        self.base.fields(debug.field("num_fifos", &self.fifos.len())).finish()
    }
}
