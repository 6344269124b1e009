//! `spawn_future`: futures that the workers of a pool poll, and their handles. `runs` says how they are polled.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::current::PoolHandle;
use crate::api::handle::JoinHandle;
use crate::api::pool::Pool;
use crate::api::runs::{FutureState, Settings, start};
use crate::api::task::{TaskBuilder, current_priority};
use crate::error::JoinError;
use crate::fork::job;
use crate::sync::Arc;
use crate::task::Control;
use crate::worker::current::{AnyPool, with_worker};

impl Pool {
    /// Spawns a future, which the workers of the pool poll. Needs the feature `futures`.
    ///
    /// The future is polled on a worker as soon as it is spawned, and again after each wake-up, which may come from any
    /// thread. Its polls have the priority of the task that spawns it; [`TaskBuilder::spawn_future`] sets another one. Each of these polls is a task of the pool: it is counted as submitted when the future is woken, and as
    /// completed when the poll returns. Wake-ups before the next poll are one.
    ///
    /// # Fairness
    ///
    /// A future that is spawned or woken goes to the injector, behind the tasks that came from outside before, even if
    /// it is woken by a worker or wakes itself while it is polled. So a future that always wakes itself keeps no other
    /// future and no task from starting, and it is polled again after a bounded number of other starts: a worker
    /// with tasks of its own takes one from the injector after at most 251 of them. A future that does not return
    /// from a poll keeps its worker, as a long task does. It may wait for tasks and fork meanwhile, as a task may.
    ///
    /// There is one exception: a task that [joins](FutureHandle::join) the future when it is queued polls it at once, ahead of
    /// what was queued before. That happens once for each join, so that it keeps nothing from starting either.
    ///
    /// # The end of the pool
    ///
    /// After a [`stop`](Self::stop), futures that were spawned before can still be woken and polled as long as something
    /// runs or is queued. When nothing is left to run, the pool ends, and futures that are still pending are dropped:
    /// the pool cannot know whether somebody will ever wake them. (A task that joins such a future keeps the pool from ending.)
    /// Their handles return [`JoinError::Cancelled`]. To have
    /// the results of futures that wait for something outside of the pool, join them before the stop. A wake-up that
    /// comes after the end drops the future on the thread that wakes it. [`stop_now`](Self::stop_now) drops all futures
    /// that are not being polled.
    ///
    /// A future that is spawned after the stop, from outside of the pool, is dropped, and its handle returns
    /// [`JoinError::Stopped`].
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let words = pool.spawn(|| "two words");
    /// let count = pool.spawn_future(async { words.await.unwrap().split(' ').count() });
    /// assert_eq!(count.join().unwrap(), 2);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> FutureHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(self.any_pool(), future)
    }
}

impl PoolHandle {
    /// Spawns a future on the pool, as [`Pool::spawn_future`] does. Needs the feature `futures`.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let future = pool.handle().spawn_future(async { 6 * 7 });
    /// assert_eq!(future.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> FutureHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(self.owned_pool(), future)
    }
}

/// Spawns a future on the pool that this thread belongs to, or else on the [global](Pool::global) one, as
/// [`Pool::spawn_future`] does. Needs the feature `futures`.
///
/// ```
/// let sum = heist::spawn_future(async {
///     let first = heist::spawn_future(async { 1 });
///     first.await.unwrap() + 2
/// });
/// assert_eq!(sum.join().unwrap(), 3);
/// ```
pub fn spawn_future<F>(future: F) -> FutureHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let here = with_worker(|worker| worker.owned_pool());
    spawn_on(here.unwrap_or_else(|| Pool::global().any_pool()), future)
}

impl TaskBuilder<'_> {
    /// Spawns a future, as [`Pool::spawn_future`] does, with the settings of the builder. Needs the feature `futures`.
    ///
    /// * Each of its polls has the priority, and so has what it spawns.
    /// * When the token is cancelled, the future is dropped, as by [`FutureHandle::cancel`]. A poll can ask
    ///   [`is_cancelled`](crate::is_cancelled).
    /// * The name is that of its polls in traces.
    /// * [`near`](Self::near) and [`near_key`](Self::near_key) count workers when the future is spawned. Each poll is a near
    ///   task: whenever the future is woken, it goes to the inbox of its worker, behind what is queued there. If that worker has
    ///   retired, it goes to that of another one. A task that joins the future may poll it elsewhere.
    /// * [`Builder::max_queued`](crate::Builder::max_queued) does not count futures.
    ///
    /// ```
    /// use heist::{CancelToken, JoinError, Pool, Priority};
    ///
    /// let pool = Pool::builder().workers(2).build()?;
    /// let urgent = pool.task().priority(Priority::High).spawn_future(async { heist::current_priority() });
    /// assert_eq!(urgent.join().unwrap(), Priority::High);
    ///
    /// let token = CancelToken::new();
    /// let endless = pool.task().cancel_on(&token).spawn_future(std::future::pending::<()>());
    /// token.cancel();
    /// assert!(matches!(endless.join(), Err(JoinError::Cancelled)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn_future<F>(self, future: F) -> FutureHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let priority = self.priority.unwrap_or_else(current_priority);
        let near = self.worker_for(priority);
        let control = Arc::new(Control::new(priority, self.token.clone()).near(near));
        spawn_with(
            self.pool.owned(),
            Settings { control, token: self.token, name: self.name },
            future,
        )
    }
}

/// A handle to a future that a pool polls, which can be joined or awaited: see [`Pool::spawn_future`].
///
/// Dropping the handle detaches the future, which is polled all the same. A panic of a detached future goes to
/// [`Builder::on_panic`](crate::Builder::on_panic). A handle may outlive its pool.
///
/// ```
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let first = pool.spawn_future(async { 20 });
/// let sum = pool.spawn_future(async { first.await.unwrap() + 1 });
/// assert_eq!(sum.join().unwrap(), 21);
/// # Ok::<(), heist::BuildError>(())
/// ```
pub struct FutureHandle<T> {
    /// A promise has several results; this one has one.
    result: JoinHandle<Vec<T>>,
    state: Arc<FutureState<T>>,
}

impl<T> FutureHandle<T> {
    /// Waits for the future and returns its result.
    ///
    /// On a worker of the pool, a future that is queued for a poll, because it was spawned or woken, is polled right there, as
    /// [`JoinHandle::join`] runs a task that has not started. If that poll does not end it, or if it is polled elsewhere at
    /// the moment, another thread goes on with this worker's other tasks meanwhile, the next polls of the future among them.
    /// The worker runs only what a poll of the awaited future forks.
    ///
    /// # Limits
    ///
    /// A task that joins a future which waits for something keeps a thread until the future has ended. So a program in which
    /// thousands of tasks and polls do that at the same time needs thousands of threads, and beyond the first few the pool
    /// starts them slowly. In a future, await the handle instead of joining it: a future that waits keeps no thread.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let outer = pool.spawn(|| heist::spawn_future(async { 1 }).join().unwrap());
    /// assert_eq!(outer.join().unwrap(), 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the future panicked, if it was cancelled, by [`cancel`](Self::cancel) or by the end of the
    /// pool, or if it was refused because the pool had stopped.
    ///
    /// # Panics
    ///
    /// Panics if the handle was polled to completion before.
    pub fn join(self) -> Result<T, JoinError> {
        let Self { result, state } = self;
        result.join_by(&state.latest).map(only)
    }

    /// Returns whether the result is available, so that [`join`](Self::join) would not wait.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let handle = pool.spawn_future(async {});
    /// pool.stop();
    /// assert!(handle.is_finished());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.result.is_finished()
    }

    /// Cancels the future: it is not polled again. A worker drops it, and then the handle returns
    /// [`JoinError::Cancelled`].
    ///
    /// A future that is being polled is cancelled after that poll, unless that was the last one. If it has ended, this
    /// has no effect.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let handle = pool.spawn_future(std::future::pending::<()>());
    /// handle.cancel();
    /// assert!(matches!(handle.join(), Err(heist::JoinError::Cancelled)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn cancel(&self) {
        self.state.cancel();
    }
}

/// Awaits the result of the future, in any executor.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let handle = pool.spawn_future(async { "done" });
/// assert_eq!(heist::block_on(handle).unwrap(), "done");
/// # Ok::<(), heist::BuildError>(())
/// ```
impl<T> Future for FutureHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = &mut self.get_mut().result;
        Pin::new(result).poll(context).map(|result| result.map(only))
    }
}

impl<T> Unpin for FutureHandle<T> {}

impl<T> fmt::Debug for FutureHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

fn only<T>(mut results: Vec<T>) -> T {
    results.pop().expect("a future has one result")
}

fn spawn_on<F>(pool: Arc<dyn AnyPool>, future: F) -> FutureHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if job::is_controlled() {
        // It has the priority of the task that spawns it.
        let control = Arc::new(Control::new(current_priority(), None));
        return spawn_with(pool, Settings { control, token: None, name: None }, future);
    }
    let id = pool.id();
    let (handle, state) = start(pool, None, future);
    FutureHandle { result: JoinHandle::new(handle, id), state }
}

fn spawn_with<F>(pool: Arc<dyn AnyPool>, settings: Settings, future: F) -> FutureHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (id, control) = (pool.id(), Arc::clone(&settings.control));
    let (handle, state) = start(pool, Some(settings), future);
    FutureHandle { result: JoinHandle::controlled(handle, control, id), state }
}
