//! `broadcast`: a closure that runs on every thread of a pool.

use std::fmt;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use heist::engine::Latch;

use crate::registry::{
    CurrentThread, Registry, catch_and_report, with_current_registry, with_current_thread,
};
use crate::unwind::catch;

/// Calls a closure on every thread of the pool that the current thread belongs to, or otherwise of the
/// global pool, and returns the results in the order of the threads. See
/// [`ThreadPool::broadcast`](crate::ThreadPool::broadcast).
///
/// ```
/// let indices = rayon_core::broadcast(|context| context.index());
/// assert_eq!(indices, (0..rayon_core::current_num_threads()).collect::<Vec<_>>());
/// ```
///
/// # Panics
///
/// Propagates the panic of one of the calls after all of them have ended.
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    with_current_registry(|registry| registry.broadcast(op))
}

/// Calls a closure later on every thread of the pool that the current thread belongs to, or otherwise of
/// the global pool. Does not wait for the calls. Panics are handled as in [`spawn`](crate::spawn()).
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// rayon_core::spawn_broadcast(move |context| sender.send(context.index()).unwrap());
/// assert_eq!(receiver.iter().count(), rayon_core::current_num_threads());
/// ```
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    with_current_registry(|registry| registry.spawn_broadcast(op));
}

/// Tells a broadcast closure on which thread it runs.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
/// let shares = pool.broadcast(|context| (context.index(), context.num_threads()));
/// assert_eq!(shares, [(0, 2), (1, 2)]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct BroadcastContext<'a> {
    thread: CurrentThread<'a>,
    /// Makes the context `!Send` and `!Sync`, and invariant in the lifetime, as in stock rayon-core.
    _marker: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    /// Calls `f` with the context of the current thread, which belongs to a pool.
    pub(crate) fn with<R>(f: impl FnOnce(BroadcastContext<'_>) -> R) -> R {
        with_current_thread(|thread| {
            let thread = thread.expect("a broadcast runs on the threads of a pool");
            f(BroadcastContext { thread, _marker: PhantomData })
        })
    }

    /// Returns the index of this thread in the pool, from zero.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// assert_eq!(pool.broadcast(|context| context.index()), [0, 1, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn index(&self) -> usize {
        self.thread.index
    }

    /// Returns the number of threads of the pool, each of which calls the closure.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// assert_eq!(pool.broadcast(|context| context.num_threads()), [2, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.thread.registry.threads()
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index())
            .field("num_threads", &self.num_threads())
            .field("pool_id", &self.thread.registry.engine.id())
            .finish()
    }
}

impl Registry {
    pub(crate) fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        // In parts, so that the frame that stays on the stack while other jobs run is small.
        let latch = Latch::new();
        // SAFETY: this function waits for the latch, and does not panic before that. The closure and the latch stay
        // in place until then.
        let results = unsafe { self.start_calls(&op, &latch) };
        latch.wait();
        outcome(results)
    }

    /// Calls `op` on every thread. The latch counts the calls, which write to the boxes of the results.
    ///
    /// # Safety
    ///
    /// The closure, the latch and the results are alive and in place until the latch has been waited for.
    #[inline(never)]
    unsafe fn start_calls<OP, R>(&self, op: &OP, latch: &Latch) -> Results<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        let mut results: Results<R> = (0..self.threads()).map(|_| None).collect();
        let calls = results.iter_mut().map(|result| {
            latch.one_more();
            let call =
                Call { op: &raw const *op, result: &raw mut *result, latch: &raw const *latch };
            // SAFETY: the latch counts the call, and the closure, the result and the latch are alive and in
            // place until the latch has been waited for, by the promise of the caller.
            move || unsafe { call.run() }
        });
        // SAFETY: the caller waits for the latch, which counts the calls.
        unsafe { self.engine.broadcast(calls) };
        results
    }

    pub(crate) fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        let op = Arc::new(op);
        let calls = (0..self.threads()).map(|_| {
            let op = Arc::clone(&op);
            move || catch_and_report(move || BroadcastContext::with(&*op))
        });
        // SAFETY: the calls borrow nothing, and their panics are caught.
        unsafe { self.engine.broadcast(calls) };
    }
}

/// The results of a broadcast, in the order of the threads.
type Results<R> = Box<[Option<thread::Result<R>>]>;

/// Returns the values, or continues one of the panics.
#[inline(never)]
fn outcome<R>(results: Results<R>) -> Vec<R> {
    let results = results.into_vec().into_iter();
    match results.map(|result| result.expect("the latch waits for every call")).collect() {
        Ok(values) => values,
        Err(payload) => resume_unwind(payload),
    }
}

/// The call of one thread in a broadcast that waits. The fields are pointers, because what they point to
/// may be freed as soon as the latch has counted this call as done.
struct Call<OP, R> {
    op: *const OP,
    result: *mut Option<thread::Result<R>>,
    latch: *const Latch,
}

// SAFETY: the closure is shared (`OP: Sync`), the result is sent (`R: Send`), and a latch is made to be
// used from several threads.
unsafe impl<OP: Sync, R: Send> Send for Call<OP, R> {}

impl<OP, R> Call<OP, R>
where
    OP: Fn(BroadcastContext<'_>) -> R,
{
    /// Calls the closure, stores the result, and counts the call as done.
    ///
    /// # Safety
    ///
    /// 1. The closure, the result and the latch are alive until the latch has counted this call as done.
    /// 2. The latch counts this call.
    /// 3. No other call accesses the result.
    unsafe fn run(self) {
        // SAFETY: 1. says that the closure is alive.
        let op = unsafe { &*self.op };
        let result = catch(|| BroadcastContext::with(op));
        // SAFETY: 1. says that the result is alive, and 3. that access is exclusive.
        unsafe { *self.result = Some(result) };
        // SAFETY: 1. and 2., and the call is consumed, so it is counted as done once.
        unsafe { Latch::done(self.latch) };
    }
}
