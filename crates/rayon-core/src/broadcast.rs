//! The same closure on every thread.

use std::fmt;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use heist::engine::Latch;

use crate::registry::{Here, Registry, contain, with_current, with_here};
use crate::unwind::catch;

/// Calls a closure on every thread of the pool that this thread belongs to, or else of the global one, and returns
/// what it has returned, in the order of the threads. See [`ThreadPool::broadcast`](crate::ThreadPool::broadcast).
///
/// ```
/// let indices = rayon_core::broadcast(|context| context.index());
/// assert_eq!(indices, (0..rayon_core::current_num_threads()).collect::<Vec<_>>());
/// ```
///
/// # Panics
///
/// With the panic of one of the calls, after all of them have ended.
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    with_current(|registry| registry.broadcast(op))
}

/// Calls a closure some time on every thread of the pool that this thread belongs to, or else of the global one.
/// A panic is treated as [`spawn`](crate::spawn())'s is.
///
/// ```
/// let (tell, told) = std::sync::mpsc::channel();
/// rayon_core::spawn_broadcast(move |context| tell.send(context.index()).unwrap());
/// assert_eq!(told.iter().count(), rayon_core::current_num_threads());
/// ```
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    with_current(|registry| registry.spawn_broadcast(op));
}

/// Tells a closure that is broadcast where it runs.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
/// let shares = pool.broadcast(|context| (context.index(), context.num_threads()));
/// assert_eq!(shares, [(0, 2), (1, 2)]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct BroadcastContext<'a> {
    here: Here<'a>,
    /// Of one thread, and of one call.
    _marker: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    /// On a thread of a pool.
    pub(crate) fn with<R>(f: impl FnOnce(BroadcastContext<'_>) -> R) -> R {
        with_here(|here| {
            let here = here.expect("a broadcast runs on the threads of a pool");
            f(BroadcastContext { here, _marker: PhantomData })
        })
    }

    /// The number of this thread in the pool, from zero.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// assert_eq!(pool.broadcast(|context| context.index()), [0, 1, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn index(&self) -> usize {
        self.here.index
    }

    /// How many threads are called on.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// assert_eq!(pool.broadcast(|context| context.num_threads()), [2, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.here.registry.threads()
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index())
            .field("num_threads", &self.num_threads())
            .field("pool_id", &self.here.registry.engine.id())
            .finish()
    }
}

impl Registry {
    pub(crate) fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        let threads = self.threads();
        let mut results: Vec<Option<thread::Result<R>>> = (0..threads).map(|_| None).collect();
        let latch = Latch::new();
        let calls = results.iter_mut().map(|result| {
            latch.one_more();
            let call =
                Call { op: &raw const op, result: &raw mut *result, latch: &raw const latch };
            // SAFETY: counted; all of it stays in place until the latch has been waited for.
            move || unsafe { call.run() }
        });
        // SAFETY: this function goes on to wait for the latch, which counts them, and does not panic before.
        unsafe { self.engine.broadcast(calls) };
        latch.wait();
        let results = results.into_iter().map(|result| result.expect("every call is counted"));
        match results.collect() {
            Ok(results) => results,
            Err(payload) => resume_unwind(payload),
        }
    }

    pub(crate) fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        let op = Arc::new(op);
        let calls = (0..self.threads()).map(|_| {
            let op = Arc::clone(&op);
            move || contain(move || BroadcastContext::with(&*op))
        });
        // SAFETY: they borrow nothing, and panics are contained.
        unsafe { self.engine.broadcast(calls) };
    }
}

/// What one thread does in a broadcast that is waited for. Pointers, as what they point to may be gone when the
/// latch has been told.
struct Call<OP, R> {
    op: *const OP,
    result: *mut Option<thread::Result<R>>,
    latch: *const Latch,
}

// SAFETY: the closure is shared, the result moved, and the latch made for it.
unsafe impl<OP: Sync, R: Send> Send for Call<OP, R> {}

impl<OP, R> Call<OP, R>
where
    OP: Fn(BroadcastContext<'_>) -> R,
{
    /// # Safety
    ///
    /// The closure and the latch are there, and count this call; the place of the result is its own.
    unsafe fn run(self) {
        // SAFETY: there, as the caller says.
        let op = unsafe { &*self.op };
        let result = catch(|| BroadcastContext::with(op));
        // SAFETY: there, and nobody else's, as the caller says.
        unsafe { *self.result = Some(result) };
        // SAFETY: counted, as the caller says, and this is consumed.
        unsafe { Latch::done(self.latch) };
    }
}
