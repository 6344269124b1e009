//! `Pool`: the handle to a pool, whatever its strategy.

use std::fmt;

use crate::api::builder::Builder;
use crate::api::current::PoolHandle;
use crate::api::handle::JoinHandle;
use crate::api::join::join;
use crate::api::limit::batch_on;
use crate::api::scope::{Scope, scope};
use crate::api::task::TaskBuilder;
use crate::error::JoinError;
use crate::fork::job;
use crate::panic::{AbortOnUnwind, contain};
use crate::queues::{Global, Locked, Stealing, Strategy};
use crate::stats::Stats;
use crate::sync::{Arc, copies, is_left_behind, refuse_copy, unsize_arc};
use crate::task::{Task, TaskHandle};
use crate::trace::{Log, Trace};
use crate::worker::admission::Admission;
use crate::worker::current::{AnyPool, current_pool, submit};
use crate::worker::dump::PoolDump;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;

/// A pool of worker threads that run tasks.
///
/// ```
/// let pool = heist::Pool::builder().workers(4).build()?;
/// let squares: Vec<_> = (0..10).map(|n| pool.spawn(move || n * n)).collect();
/// let sum: i32 = squares.into_iter().map(|handle| handle.join().unwrap()).sum();
/// assert_eq!(sum, 285);
/// # Ok::<(), heist::BuildError>(())
/// ```
///
/// Dropping a pool stops it, as [`stop`](Self::stop) does. On a thread of the pool itself, where waiting for the
/// end would be a deadlock, a drop only requests the stop.
///
/// # Forked processes
///
/// A child of `fork()` has a copy of the pool, but none of its threads. There, a drop does nothing. Whatever would need the threads
/// panics: spawns, installs, stops, and waits for tasks that have not ended. A pool that is built in the child works. A child that
/// was forked by a task must call `exec` or `_exit`: it is aborted if it returns to the pool, or waits for another thread.
pub struct Pool(pub(crate) Inner);

/// The shared state of a pool. The strategy is distinguished only here; everything behind it is generic.
pub(crate) enum Inner {
    Stealing(Arc<Shared<Stealing>>),
    Locked(Arc<Shared<Locked>>),
    Global(Arc<Shared<Global>>),
}

/// Evaluates the same expression for each strategy.
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

    /// Returns a builder for a pool.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.workers(), 2);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Spawns a task that runs the closure.
    ///
    /// A task of the pool pushes the new task to its thread's own deque; other threads push it to the injector. After
    /// a [`stop`](Self::stop) the closure is dropped, and the handle returns an error. If the pool has as many queued tasks as
    /// [`Builder::max_queued`] allows, this waits until there is room; [`try_spawn`](Self::try_spawn) does not.
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

    /// Spawns many tasks at once, which costs less than as many calls of [`spawn`](Self::spawn). Each closure is a
    /// task of its own: it can be stolen, it is counted, and its panic does not affect the others.
    ///
    /// The results are in the order of the closures. If some tasks failed, the error is the first failure in that
    /// order.
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
        with_shared!(self, shared => batch_on(shared, tasks))
    }

    /// Runs a closure on the pool, waits for it, and returns its result. The closure may borrow.
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
    /// Panics with the panic of the closure, and if the pool has stopped.
    pub fn install<F, R>(&self, f: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        with_shared!(self, shared => install_on(&**shared, shared.id(), f))
    }

    /// Runs [`join`](crate::join) on this pool.
    ///
    /// A thread of another pool, or of none, waits meanwhile, as in [`install`](Self::install).
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.join(|| 1 + 1, || 2 + 2), (2, 4));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics as [`join`](crate::join) does, and if the pool has stopped.
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| join(a, b))
    }

    /// Runs [`scope`](crate::scope) on this pool.
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
    /// Panics as [`scope`](crate::scope) does, and if the pool has stopped.
    pub fn scope<'scope, F, R>(&self, f: F) -> R
    where
        F: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope(f))
    }

    /// Returns the number of workers.
    ///
    /// ```
    /// assert_eq!(heist::Pool::builder().workers(3).build()?.workers(), 3);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn workers(&self) -> usize {
        with_shared!(self, shared => shared.workers_in_use())
    }

    /// Returns the strategy of the pool.
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

    /// Returns the counters of the pool as they are now.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// pool.spawn(|| ());
    /// pool.stop();
    /// assert_eq!(pool.stats().total.tasks_completed, 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        with_shared!(self, shared => shared.stats())
    }

    /// Returns what the pool does at the moment, as a text for people: for a program that hangs. The text says which
    /// threads have a core and which wait for one, how many workers sleep, and how long the queues are. If the pool keeps a
    /// [trace](crate::trace), the text also has the last five events of each thread, the oldest first, with how long ago
    /// they were. Its form may change in any version.
    ///
    /// It can be called on any thread at any time, and does not disturb the pool. It waits for no task and for no lock
    /// that a thread holds for more than a moment; where another thread was in the way, the text says "locked". The
    /// numbers are read one after the other, and need not fit together if the pool goes on meanwhile.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let (begin, begun) = std::sync::mpsc::channel();
    /// let (gate, opened) = std::sync::mpsc::channel::<()>();
    /// pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
    /// pool.spawn(|| ());
    /// begun.recv().unwrap();
    ///
    /// // One task runs, and one is in the queue.
    /// let text = pool.dump().to_string();
    /// assert!(text.contains("tasks: 2 submitted, 2 of them not ended"), "{text}");
    /// assert!(text.contains("thread 0: worker 0"), "{text}");
    /// drop(gate);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn dump(&self) -> PoolDump {
        with_shared!(self, shared => shared.dump())
    }

    /// Returns what the pool's threads have done lately, if the pool keeps a [trace](crate::trace): see
    /// [`Builder::trace`]. The threads are not disturbed; what they do meanwhile may or may not be included.
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

    /// Stops the pool gracefully: waits until every submitted task is done, and everything that those spawn. The
    /// threads have ended when this returns.
    ///
    /// A stopped pool cannot be started again; stopping it again does nothing. Several threads may call this at the
    /// same time: all of them wait. A task of another pool may call it as well; its worker waits meanwhile.
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
    /// Panics on a thread of the pool itself, which would wait for its own end.
    pub fn stop(&self) {
        self.must_be_elsewhere("stop");
        with_shared!(self, shared => {
            shared.close();
            shared.join_threads();
        });
    }

    /// Stops the pool as soon as the running tasks are done, and waits for that. Tasks that have not started are
    /// cancelled: their closures are dropped, and their handles return [`JoinError::Cancelled`].
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
    /// Panics on a thread of the pool itself, which would wait for its own end.
    pub fn stop_now(&self) {
        self.must_be_elsewhere("stop_now");
        with_shared!(self, shared => {
            shared.cancel();
            shared.close();
            shared.join_threads();
        });
    }

    /// Returns a handle to the pool, for code that may outlive it.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.handle();
    /// let answer = std::thread::spawn(move || handle.spawn(|| 42).join().unwrap());
    /// assert_eq!(answer.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn handle(&self) -> PoolHandle {
        PoolHandle::new(self.any_pool())
    }

    /// Panics in a copy of the process in which the pool was built.
    pub(crate) fn must_be_here(&self) {
        with_shared!(self, shared => shared.must_be_here());
    }

    /// Returns the pool for code that may outlive it.
    pub(crate) fn any_pool(&self) -> Arc<dyn AnyPool> {
        with_shared!(self, shared => unsize_arc!(Arc::clone(shared)))
    }

    fn must_be_elsewhere(&self, what: &str) {
        self.must_be_here();
        let here = with_shared!(self, shared => current_pool() == shared.id());
        assert!(
            !here,
            "Pool::{what} was called by a task of the same pool, and would wait for itself: call it \
             from a thread outside of the pool"
        );
    }
}

/// Runs a closure on the pool, which has that id, and waits for it. If the pool has a hook for contexts, it runs in that of the
/// calling thread.
pub(super) fn install_on<F, R>(pool: &dyn AnyPool, id: usize, f: F) -> R
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    // A thread that has left the pool still has its id, but no jobs.
    if current_pool() == id && job::is_open() {
        return f();
    }
    let (mut f, mut result) = (Some(f), None);
    let mut call = || result = f.take().map(|f| f());
    match install_elsewhere(pool, task_for::<F>, &mut call) {
        Ok(()) => result.expect("it was called"),
        Err(JoinError::Panicked(panic)) => panic.resume(),
        Err(JoinError::Cancelled | JoinError::Stopped) => {
            contain(|| drop(f));
            panic!(
                "Pool::install: the pool has stopped; install before the stop, or on another pool"
            )
        }
    }
}

/// A closure that is called once, whatever its type. What is generic over closures would be compiled for each of them.
type Erased<'f> = &'f mut (dyn FnMut() + Send);

/// Returns a task that has the name of `F` in traces.
///
/// # Safety
///
/// The closure stays valid until the task is done.
unsafe fn task_for<F>(closure: Erased<'_>) -> (Task, TaskHandle<()>) {
    // SAFETY: the caller's promise.
    unsafe { Task::named::<F, _, _>(closure) }
}

/// Runs a closure on the pool, of which the calling thread is no part, as the task that `task` makes, and waits for it.
fn install_elsewhere(
    pool: &dyn AnyPool,
    task: unsafe fn(Erased<'_>) -> (Task, TaskHandle<()>),
    f: Erased<'_>,
) -> Result<(), JoinError> {
    let mut captured = pool.admission().and_then(Admission::capture);
    if is_left_behind(pool.id()) {
        refuse_copy();
    }
    let outer = job::root();
    let mut call = || {
        let mut in_context = || match captured.take() {
            None => f(),
            Some(captured) => captured.around(&mut *f),
        };
        // What runs on the pool is a part of the task that calls this, which waits for it.
        if job::has_flag(outer) { job::isolated_as(outer, in_context) } else { in_context() }
    };
    let guard = AbortOnUnwind;
    // SAFETY: the closure, and what it borrows, outlive this call. The call does not return before the task is done, and it
    // does not unwind: the guard would abort.
    let (task, handle) = unsafe { task(&mut call) };
    pool.push_remote_if_open(task);
    let outcome = JoinHandle::new(handle, pool.id()).join();
    // There still if the task was refused.
    contain(|| drop(captured));
    std::mem::forget(guard);
    outcome
}

#[inline]
fn spawn_on<Q: PoolQueues, F, T>(shared: &Shared<Q>, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if job::is_controlled() || shared.config.admission.is_some() {
        return spawn_by_builder(shared, f);
    }
    // SAFETY: the closure is `'static`, so it borrows nothing.
    let (task, handle) = unsafe { Task::new(f) };
    submit(shared, task, 1);
    JoinHandle::new(handle, shared.id())
}

/// Spawns a task that has the priority of the task that spawns it, or on a pool that does more at a spawn than to push the task.
#[cold]
#[inline(never)]
fn spawn_by_builder<F, T>(pool: &dyn AnyPool, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    TaskBuilder::new(pool).spawn(f)
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
            if shared.copy != copies() {
                // A copy of the process has none of its threads.
                return;
            }
            shared.close();
            if current_pool() != shared.id() {
                shared.join_threads();
            }
        });
    }
}
