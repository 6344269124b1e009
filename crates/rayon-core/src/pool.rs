//! `ThreadPool`, and functions that describe the current thread.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::broadcast::BroadcastContext;
use crate::builder::ThreadPoolBuilder;
use crate::error::ThreadPoolBuildError;
use crate::join::join;
use crate::registry::{Registry, with_current_thread};
use crate::scope::{Scope, ScopeFifo, scope_fifo_in, scope_in};
use crate::thread::ThreadSpawn;
use crate::yields::Yield;

/// A pool of threads. [`ThreadPoolBuilder`] builds it.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
/// let (left, right) = pool.install(|| rayon_core::join(|| 1 + 2, || 3 + 4));
/// assert_eq!((left, right), (3, 7));
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
///
/// When the pool is dropped, its threads run what is left to run, and then end. The drop does not wait for
/// them.
pub struct ThreadPool {
    registry: Arc<Registry>,
}

impl ThreadPool {
    /// The deprecated name of [`ThreadPoolBuilder::build`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::ThreadPool::new(rayon_core::Configuration::new().num_threads(1))?;
    /// assert_eq!(pool.install(|| 6 * 7), 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases.
    #[deprecated(note = "Use `ThreadPoolBuilder::build`")]
    #[expect(deprecated, reason = "the function and its argument are both deprecated")]
    pub fn new(configuration: crate::Configuration) -> Result<ThreadPool, Box<dyn Error>> {
        Self::build(configuration.into_builder()).map_err(Box::from)
    }

    pub(crate) fn build<S: ThreadSpawn>(
        builder: ThreadPoolBuilder<S>,
    ) -> Result<Self, ThreadPoolBuildError> {
        Registry::build(builder).map(|(registry, _)| Self { registry })
    }

    /// Runs a closure on a thread of the pool, waits for it, and returns its result. The closure may
    /// borrow. Functions of this crate that it calls use this pool.
    ///
    /// On a thread of the pool, the closure is called directly. A thread of another pool runs other jobs of
    /// its own pool while it waits.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let mut numbers = [3, 1, 2];
    /// pool.install(|| numbers.sort());
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates the panic of the closure.
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.registry.engine.run(|_| op())
    }

    /// Calls a closure on every thread of the pool, waits for all calls, and returns their results in the
    /// order of the threads. The closure may borrow.
    ///
    /// Each thread makes the call after it has run what it has spawned itself, and before it looks for work
    /// elsewhere.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// assert_eq!(pool.broadcast(|context| context.index() * 10), [0, 10, 20]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates the panic of one of the calls after all of them have ended.
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        self.registry.broadcast(op)
    }

    /// Returns the number of threads of the pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// assert_eq!(pool.current_num_threads(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn current_num_threads(&self) -> usize {
        self.registry.threads()
    }

    /// Returns the index of the current thread in the pool, from zero, or `None` if it is not one of its
    /// threads.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// assert_eq!(pool.current_thread_index(), None);
    /// assert_eq!(pool.install(|| pool.current_thread_index()), Some(0));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.registry.current_thread_index()
    }

    /// Returns whether the current thread has spawned jobs that no thread has taken yet, or `None` if it is
    /// not a thread of the pool. The answer may be outdated.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// assert_eq!(pool.current_thread_has_pending_tasks(), None);
    /// pool.install(|| {
    ///     assert_eq!(pool.current_thread_has_pending_tasks(), Some(false));
    ///     rayon_core::spawn(|| ());
    ///     assert_eq!(pool.current_thread_has_pending_tasks(), Some(true));
    /// });
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.registry.engine.has_pending()
    }

    /// Calls [`join`](crate::join()) in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// assert_eq!(pool.join(|| 1 + 1, || 2 + 2), (2, 4));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates panics like [`join`](crate::join()).
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| join(oper_a, oper_b))
    }

    /// Calls [`scope`](crate::scope()) in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let mut squares = [0; 4];
    /// pool.scope(|scope| {
    ///     for (n, square) in squares.iter_mut().enumerate() {
    ///         scope.spawn(move |_| *square = n * n);
    ///     }
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates panics like [`scope`](crate::scope()).
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope_in(&self.registry, op))
    }

    /// Calls [`scope_fifo`](crate::scope_fifo) in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let mut answer = 0;
    /// pool.scope_fifo(|scope| scope.spawn_fifo(|_| answer = 42));
    /// assert_eq!(answer, 42);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates panics like [`scope`](crate::scope()).
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope_fifo_in(&self.registry, op))
    }

    /// Like [`in_place_scope`](crate::in_place_scope), but spawns go to this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let mut index = None;
    /// pool.in_place_scope(|scope| {
    ///     assert_eq!(pool.current_thread_index(), None);
    ///     scope.spawn(|_| index = pool.current_thread_index());
    /// });
    /// assert!(index.is_some());
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates panics like [`scope`](crate::scope()).
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        scope_in(&self.registry, op)
    }

    /// Like [`in_place_scope_fifo`](crate::in_place_scope_fifo), but spawns go to this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let mut answer = 0;
    /// pool.in_place_scope_fifo(|scope| scope.spawn_fifo(|_| answer = 42));
    /// assert_eq!(answer, 42);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Propagates panics like [`scope`](crate::scope()).
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        scope_fifo_in(&self.registry, op)
    }

    /// Like [`spawn`](crate::spawn()), in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn(move || sender.send(42).unwrap());
    /// assert_eq!(receiver.recv(), Ok(42));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry.spawn(op);
    }

    /// Like [`spawn_fifo`](crate::spawn_fifo), in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn_fifo(move || sender.send(42).unwrap());
    /// assert_eq!(receiver.recv(), Ok(42));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry.spawn_fifo(op);
    }

    /// Like [`spawn_broadcast`](crate::spawn_broadcast), in this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn_broadcast(move |context| sender.send(context.index()).unwrap());
    /// assert_eq!(receiver.iter().sum::<usize>(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        self.registry.spawn_broadcast(op);
    }

    /// Like [`yield_now`](crate::yield_now), but returns `None` unless the current thread is one of this
    /// pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// assert_eq!(pool.yield_now(), None);
    /// assert_eq!(pool.install(|| pool.yield_now()), Some(rayon_core::Yield::Idle));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn yield_now(&self) -> Option<Yield> {
        self.registry.engine.yield_now().map(Yield::from_found)
    }

    /// Like [`yield_local`](crate::yield_local), but returns `None` unless the current thread is one of
    /// this pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// assert_eq!(pool.yield_local(), None);
    /// assert_eq!(pool.install(|| pool.yield_local()), Some(rayon_core::Yield::Idle));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn yield_local(&self) -> Option<Yield> {
        self.registry.engine.yield_local().map(Yield::from_found)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.registry.engine.close();
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .field("id", &self.registry.engine.id())
            .finish()
    }
}

/// Returns the index of the current thread in its pool, from zero, or `None` if it belongs to no pool.
///
/// ```
/// assert_eq!(rayon_core::current_thread_index(), None);
/// assert!(rayon_core::scope(|_| rayon_core::current_thread_index()).is_some());
/// ```
#[inline]
pub fn current_thread_index() -> Option<usize> {
    with_current_thread(|thread| Some(thread?.index))
}

/// Returns whether the current thread has spawned jobs that no thread has taken yet, or `None` if it
/// belongs to no pool. The answer may be outdated.
///
/// ```
/// assert_eq!(rayon_core::current_thread_has_pending_tasks(), None);
/// assert!(rayon_core::scope(|_| rayon_core::current_thread_has_pending_tasks()).is_some());
/// ```
#[inline]
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    with_current_thread(|thread| thread?.registry.engine.has_pending())
}
