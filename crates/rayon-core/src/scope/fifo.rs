//! Scopes whose closures run in the order in which they were spawned.

use std::fmt;
use std::sync::Arc;

use super::base::{Base, Pointer};
use crate::broadcast::BroadcastContext;
use crate::fifo::{self, Fifo};
use crate::registry::{Registry, run_inside, with_current};

/// [`scope`](crate::scope()), but a thread runs what it has spawned there oldest first.
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
/// As [`scope`](crate::scope()).
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    run_inside(|registry| open_fifo(registry, op))
}

/// [`scope_fifo`], but the closure itself runs on the calling thread. What it spawns goes to the pool that this thread
/// belongs to, or else to the global one.
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
/// As [`scope`](crate::scope()).
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    with_current(|registry| open_fifo(registry, op))
}

/// On the calling thread, for spawns to the given pool.
pub(crate) fn open_fifo<'scope, OP, R>(registry: &Registry, op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    // SAFETY: it is there during this call, which ends the scope.
    let base = unsafe { Base::new(registry) };
    let scope = ScopeFifo { base, fifos: Fifo::for_each(registry.threads()) };
    scope.base.complete(|| op(&scope))
}

/// Where closures that borrow are spawned, to be run in that order: see [`scope_fifo`].
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
    base: Base<'scope>,
    /// For each thread of the pool, what it has spawned here. Empty when the scope ends.
    fifos: Box<[Fifo]>,
}

impl<'scope> ScopeFifo<'scope> {
    /// Runs a closure on the pool of the scope, at the latest before the scope ends, and after those that the calling
    /// thread has spawned here before, unless other threads take part.
    ///
    /// ```
    /// let text = String::from("borrowed");
    /// let mut length = 0;
    /// rayon_core::scope_fifo(|scope| scope.spawn_fifo(|_| length = text.len()));
    /// assert_eq!(length, 8);
    /// ```
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        let scope = Pointer::new(self);
        // SAFETY: the scope's end waits for this.
        let job = self.base.job(move || body(unsafe { scope.get() }));
        let registry = self.base.registry();
        let Some(index) = registry.index_here() else {
            // SAFETY: what it borrows outlives the scope, whose end waits for it; panics are caught.
            unsafe { registry.engine.spawn(job) };
            return;
        };
        // SAFETY: what it borrows outlives the scope, whose end waits for it.
        let job = unsafe { fifo::boxed(job) };
        self.fifos[index].push(job);
        let stand_in = move || {
            // SAFETY: the end of the scope waits for the job that this is about to take.
            let job = unsafe { scope.get() }.fifos[index].pop();
            job();
        };
        // SAFETY: the scope, which it borrows, is there until its job has run; panics are caught.
        unsafe { registry.engine.spawn(stand_in) };
    }

    /// Calls a closure on every thread of the scope's pool, at the latest before the scope ends.
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
            let (scope, body) = (Pointer::new(self), Arc::clone(&body));
            // SAFETY: the scope's end waits for this.
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
