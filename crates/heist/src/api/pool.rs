//! What the user holds: a pool, whatever its strategy.

use std::fmt;

use crate::api::batch;
use crate::api::builder::Builder;
use crate::api::handle::JoinHandle;
use crate::api::join::join;
use crate::api::scope::{Scope, scope};
use crate::error::JoinError;
use crate::fork::job;
use crate::panic::AbortOnUnwind;
use crate::queues::{Global, Locked, Stealing, Strategy};
use crate::stats::Stats;
use crate::sync::Arc;
use crate::task::Task;
use crate::trace::{Log, Trace};
use crate::worker::current::{AnyPool, current_pool, with_worker_thread};
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;

/// Worker threads that run tasks.
///
/// ```
/// let pool = heist::Pool::builder().workers(4).build()?;
/// let squares: Vec<_> = (0..10).map(|n| pool.spawn(move || n * n)).collect();
/// let sum: i32 = squares.into_iter().map(|handle| handle.join().unwrap()).sum();
/// assert_eq!(sum, 285);
/// # Ok::<(), heist::BuildError>(())
/// ```
///
/// Dropping a pool stops it, as [`stop`](Self::stop) does. On a thread of the pool itself, where waiting
/// for the end would wait for ever, a drop only asks for the stop.
pub struct Pool(pub(crate) Inner);

/// The pool's shared part. The strategy is known here once; everything behind it is generic.
pub(crate) enum Inner {
    Stealing(Arc<Shared<Stealing>>),
    Locked(Arc<Shared<Locked>>),
    Global(Arc<Shared<Global>>),
}

/// The same expression for each strategy.
macro_rules! with_shared {
    ($pool:expr, $shared:ident => $body:expr) => {
        match &$pool.0 {
            Inner::Stealing($shared) => $body,
            Inner::Locked($shared) => $body,
            Inner::Global($shared) => $body,
        }
    };
}

pub(crate) use with_shared;

impl Pool {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(inner)
    }

    /// Sets out to build a pool.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.workers(), 2);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Runs a closure on the pool.
    ///
    /// From a task of the pool, the new task goes to the worker's own deque; from elsewhere it goes through
    /// the injector. After a [`stop`](Self::stop) it is dropped, and the handle says so.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.spawn(|| 6 * 7);
    /// assert_eq!(handle.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    #[inline]
    pub fn spawn<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        with_shared!(self, shared => spawn_on(shared, f))
    }

    /// Runs many closures on the pool, for less than as many calls of [`spawn`](Self::spawn). Each is
    /// a task of its own: it can be stolen, it is counted, and its panic is its own.
    ///
    /// The results come in the order of the closures. If some of them failed, the first failure in
    /// that order is the error.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let squares = pool.spawn_batch((0..5).map(|n| move || n * n));
    /// assert_eq!(squares.join().unwrap(), [0, 1, 4, 9, 16]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn_batch<I, F, T>(&self, tasks: I) -> JoinHandle<Vec<T>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let tasks = tasks.into_iter();
        with_shared!(self, shared => {
            let (detached, handle, count) = batch::new(tasks, &shared.config.on_panic);
            if let Some(detached) = detached {
                submit(shared, detached, count);
            }
            JoinHandle::new(handle, shared.id())
        })
    }

    /// Runs a closure on the pool, waits for it, and returns its value. It may borrow.
    ///
    /// On a thread of the pool the closure is just called.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut numbers = [3, 1, 2];
    /// pool.install(|| numbers.sort());
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// With the panic of the closure; and if the pool has stopped.
    pub fn install<F, R>(&self, f: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        with_shared!(self, shared => {
            // A thread that has left the pool is none of its any more, but for the name.
            if current_pool() == shared.id() && job::is_open() {
                return f();
            }
            let guard = AbortOnUnwind;
            // SAFETY: what it borrows outlives this call, which does not return before the task is done,
            // and does not unwind: the guard would see to that.
            let (task, handle) = unsafe { Task::new(f) };
            shared.push_remote_unless_stopping(task, 1);
            let outcome = JoinHandle::new(handle, shared.id()).join();
            std::mem::forget(guard);
            match outcome {
                Ok(value) => value,
                Err(JoinError::Panicked(panic)) => panic.resume(),
                Err(JoinError::Cancelled | JoinError::Stopped) => {
                    panic!("Pool::install: the pool has stopped; install before the stop, or on another pool")
                }
            }
        })
    }

    /// [`join`](crate::join), on this pool.
    ///
    /// On a thread of another pool, or of none, it waits meanwhile, as [`install`](Self::install) does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.join(|| 1 + 1, || 2 + 2), (2, 4));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`join`](crate::join); and if the pool has stopped.
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| join(a, b))
    }

    /// [`scope`](crate::scope), on this pool.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut squares = [0; 4];
    /// pool.scope(|scope| {
    ///     for (n, square) in squares.iter_mut().enumerate() {
    ///         scope.spawn(move |_| *square = n * n);
    ///     }
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`scope`](crate::scope); and if the pool has stopped.
    pub fn scope<'scope, F, R>(&self, f: F) -> R
    where
        F: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope(f))
    }

    /// How many workers there are.
    ///
    /// ```
    /// assert_eq!(heist::Pool::builder().workers(3).build()?.workers(), 3);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn workers(&self) -> usize {
        with_shared!(self, shared => shared.config.workers)
    }

    /// How the pool keeps its tasks.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// assert_eq!(pool.strategy(), heist::Strategy::WorkStealing);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn strategy(&self) -> Strategy {
        match &self.0 {
            Inner::Stealing(_) => Strategy::WorkStealing,
            Inner::Locked(_) => Strategy::LockedDeques,
            Inner::Global(_) => Strategy::GlobalQueue,
        }
    }

    /// What the pool has done so far.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// pool.spawn(|| ());
    /// pool.stop();
    /// assert_eq!(pool.stats().total.tasks_completed, 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        with_shared!(self, shared => shared.ledger.read())
    }

    /// What its threads have done lately, if the pool keeps a [trace](crate::trace): see [`Builder::trace`]. The threads are not
    /// disturbed; what they do meanwhile may or may not be in it.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).trace(1000).build()?;
    /// pool.stop();
    /// assert_eq!(pool.trace_snapshot().unwrap().threads.len(), 2);
    ///
    /// let pool = heist::Pool::builder().workers(2).trace(0).build()?;
    /// assert!(pool.trace_snapshot().is_none());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn trace_snapshot(&self) -> Option<Trace> {
        with_shared!(self, shared => shared.config.trace.as_deref().map(Log::read))
    }

    /// Stops the pool when everything that was submitted is done, and what that spawns, and waits
    /// for it. The threads are gone when this returns.
    ///
    /// A pool that has stopped stays so; stopping it again does nothing. Several threads may call
    /// this at once: all of them wait. A task of another pool may call it as well, and keeps its
    /// worker waiting.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.spawn(|| 1);
    /// pool.stop();
    /// assert_eq!(handle.join().unwrap(), 1);
    /// assert!(pool.spawn(|| 2).join().is_err());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// On a thread of the pool itself, which would wait for its own end.
    pub fn stop(&self) {
        self.must_be_elsewhere("stop");
        with_shared!(self, shared => {
            shared.close();
            shared.join_threads();
        });
    }

    /// Stops the pool as soon as what is running is done, and waits for it. What has not started is
    /// cancelled: its closure is dropped, and its handle yields [`JoinError::Cancelled`].
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let (begin, begun) = std::sync::mpsc::channel();
    /// let (gate, opened) = std::sync::mpsc::channel::<()>();
    /// let running = pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
    /// let waiting = pool.spawn(|| ());
    /// begun.recv().unwrap();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| pool.stop_now());
    ///     while !pool.spawn(|| ()).is_finished() { // until it is refused
    ///         std::thread::yield_now();
    ///     }
    ///     drop(gate);
    /// });
    /// assert!(running.join().unwrap());
    /// assert!(matches!(waiting.join(), Err(heist::JoinError::Cancelled)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// On a thread of the pool itself, which would wait for its own end.
    pub fn stop_now(&self) {
        self.must_be_elsewhere("stop_now");
        with_shared!(self, shared => {
            shared.cancel();
            shared.close();
            shared.join_threads();
        });
    }

    /// For those who may outlive the pool.
    pub(crate) fn any_pool(&self) -> Arc<dyn AnyPool> {
        with_shared!(self, shared => Arc::clone(shared) as _)
    }

    fn must_be_elsewhere(&self, what: &str) {
        let here = with_shared!(self, shared => current_pool() == shared.id());
        assert!(
            !here,
            "Pool::{what} was called by a task of the same pool, and would wait for itself: call it \
             from a thread outside of the pool"
        );
    }
}

#[inline]
fn spawn_on<Q: PoolQueues, F, T>(shared: &Shared<Q>, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: it borrows nothing.
    let (task, handle) = unsafe { Task::new(f) };
    submit(shared, task, 1);
    JoinHandle::new(handle, shared.id())
}

/// To the worker's own deque, or through the injector.
#[inline(always)]
fn submit<Q: PoolQueues>(shared: &Shared<Q>, task: Task, count: u64) {
    let mut task = Some(task);
    with_worker_thread(shared, |thread| thread.push_local(task.take().expect("once"), count));
    if let Some(task) = task {
        shared.push_remote_unless_stopping(task, count);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("workers", &self.workers())
            .field("strategy", &self.strategy())
            .finish_non_exhaustive()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        with_shared!(self, shared => {
            shared.close();
            if current_pool() != shared.id() {
                shared.join_threads();
            }
        });
    }
}
