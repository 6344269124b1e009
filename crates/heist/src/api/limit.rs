//! Admission control: a bound on the tasks that a pool queues, and spawning without waiting for room.

use std::fmt;

use crate::api::batch::{self, Unstarted};
use crate::api::builder::Builder;
use crate::api::current::PoolHandle;
use crate::api::handle::JoinHandle;
use crate::api::pool::{Inner, Pool, with_shared};
use crate::api::task::current_priority;
use crate::worker::admission::Admission;
use crate::worker::current::submit_with;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;

impl Builder {
    /// Sets the largest number of queued tasks: tasks that were spawned and have not started. By default there is no bound.
    ///
    /// In a pool that has as many of them, [`Pool::spawn`] waits until there is room, and [`Pool::try_spawn`] returns
    /// [`Full`]. Spawners that wait are admitted in the order in which they came, and no `try_spawn` overtakes them.
    ///
    /// * A task counts from its admission until its closure starts to run, or is dropped without having run. A running task
    ///   does not count, even if it waits.
    /// * A spawn that waits inside a task of a pool waits as a [`join`](crate::JoinHandle::join) does: another thread goes on
    ///   with the worker's other tasks. So a task may spawn far more tasks than the bound, even on one worker. Each spawn that
    ///   waits needs a thread meanwhile. If no other thread is at hand, because many tasks wait, the spawn does not wait, and
    ///   exceeds the bound instead. So the bound is strict for threads outside of the pool, which bring in new work, and soft
    ///   for tasks, which go on with work that was admitted. A task that must not exceed it uses [`Pool::try_spawn`]: if the
    ///   pool is full, the closure can be called on the spot.
    /// * [`Pool::spawn_batch`] waits until there is room for one task. Then all its closures are admitted, even if they exceed
    ///   the bound. They count as queued until they start.
    /// * Futures are not bounded: they wait for their wake-ups outside of any queue.
    /// * Parts of tasks that have started are not bounded: closures of [`join`](crate::join()) and [`scope`](crate::scope()),
    ///   parallel loops, pipelines. Neither are [`Pool::install`] and [`Pool::broadcast`], whose callers wait for the result.
    /// * A stop wakes the threads outside of the pool that wait for room, and refuses what they spawn. Tasks of the pool go
    ///   on to wait for room, because a stop waits for what they spawn.
    /// * Two other kinds of spawns never wait, and exceed the bound instead: those of the hooks [`on_thread_start`],
    ///   [`on_thread_stop`] and [`thread_name`], and, in a pool that has as many threads as it [may have], those of tasks that
    ///   run on top of a spawn that waits.
    ///
    /// With a bound, each spawn and each start of a task takes a lock that the whole pool shares. Without one, a spawn costs
    /// what it did.
    ///
    /// [`on_thread_start`]: Self::on_thread_start
    /// [`on_thread_stop`]: Self::on_thread_stop
    /// [`thread_name`]: Self::thread_name
    /// [may have]: Self::max_threads
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).max_queued(2).build()?;
    /// let sum: u32 = (0..100).map(|n| pool.spawn(move || n)).map(|task| task.join().unwrap()).sum();
    /// assert_eq!(sum, 4950);
    ///
    /// let none = heist::Pool::builder().max_queued(0).build();
    /// assert!(matches!(none, Err(heist::BuildError::ZeroQueued)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn max_queued(mut self, tasks: usize) -> Self {
        self.max_queued = Some(tasks);
        self
    }
}

impl Pool {
    /// Spawns a task that runs the closure, unless the pool has as many queued tasks as it may have: then returns the closure.
    /// Without [`Builder::max_queued`] it always succeeds.
    ///
    /// After a [`stop`](Self::stop) it does what [`spawn`](Self::spawn) does: the closure is dropped, and the handle returns
    /// an error.
    ///
    /// ```
    /// use heist::{Full, Pool};
    ///
    /// let pool = Pool::builder().workers(1).max_queued(1).build()?;
    /// let (begin, begun) = std::sync::mpsc::channel();
    /// let (gate, opened) = std::sync::mpsc::channel::<()>();
    /// pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
    /// begun.recv().unwrap();
    ///
    /// // One task runs, and one is queued.
    /// let queued = pool.try_spawn(|| 1).unwrap();
    /// let Err(Full(closure)) = pool.try_spawn(|| 2) else { unreachable!() };
    /// assert_eq!(closure(), 2);
    /// drop(gate);
    /// assert_eq!(queued.join().unwrap(), 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the closure if the pool is full.
    pub fn try_spawn<F, T>(&self, f: F) -> Result<JoinHandle<T>, Full<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let has_admission = with_shared!(self, shared => shared.config.admission.is_some());
        if has_admission { self.task().try_spawn(f) } else { Ok(self.spawn(f)) }
    }
}

impl PoolHandle {
    /// Spawns a task on the pool, unless that is full, as [`Pool::try_spawn`] does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.handle().try_spawn(|| 6 * 7).expect("there is no bound");
    /// assert_eq!(handle.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the closure if the pool is full.
    pub fn try_spawn<F, T>(&self, f: F) -> Result<JoinHandle<T>, Full<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.any_pool().admission().is_some() {
            self.task().try_spawn(f)
        } else {
            Ok(self.spawn(f))
        }
    }
}

/// Spawns a batch, with the priority of the task that spawns it.
pub(super) fn batch_on<Q, F, T>(
    shared: &Shared<Q>,
    tasks: impl Iterator<Item = F>,
) -> JoinHandle<Vec<T>>
where
    Q: PoolQueues,
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let priority = current_priority();
    let push = |(handle, unstarted): (_, Option<Unstarted>)| {
        let starter = unstarted.map(|Unstarted { task, starter, count }| {
            submit_with(shared, priority, task, count);
            starter
        });
        JoinHandle::of_batch(handle, starter, shared.id())
    };
    let hook = &shared.config.on_panic;
    let admission: Option<&Admission> = shared.config.admission.as_deref();
    push(match admission {
        None => batch::new(tasks, hook, priority),
        Some(admission) => batch::new(admission.batch(shared.id(), tasks), hook, priority),
    })
}

/// The pool has as many queued tasks as it may have: see [`Pool::try_spawn`] and [`Builder::max_queued`]. It holds the closure
/// that was to be spawned.
///
/// ```
/// use heist::{Full, Pool};
///
/// /// Spawns the closure, or calls it here if the pool is full.
/// fn spawn_or_call(pool: &Pool, f: impl FnOnce() + Send + 'static) {
///     if let Err(Full(f)) = pool.try_spawn(f) {
///         f();
///     }
/// }
///
/// let pool = Pool::builder().workers(1).max_queued(10).build()?;
/// (0..100).for_each(|_| spawn_or_call(&pool, || ()));
/// # Ok::<(), heist::BuildError>(())
/// ```
pub struct Full<F>(pub F);

impl<F> fmt::Debug for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Full").finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the pool has as many queued tasks as it may have: call the closure here, try again when tasks have started, \
             let Pool::spawn wait for room, or raise Builder::max_queued",
        )
    }
}

impl<F> std::error::Error for Full<F> {}
