//! `TaskBuilder`: spawns a task with a priority, or one that can be cancelled. `near` has where it runs.

use std::any::type_name;
use std::fmt;

use crate::api::current::PoolHandle;
use crate::api::handle::JoinHandle;
use crate::api::limit::Full;
use crate::api::near::count_run;
use crate::api::pool::{Inner, Pool, with_shared};
use crate::cancel::CancelToken;
use crate::fork::job;
use crate::priority::Priority;
use crate::sync::Arc;
use crate::task::{Control, Task};
use crate::trace::rename;
use crate::worker::current::AnyPool;
use crate::worker::inbox::Affinity;

impl Pool {
    /// Returns a builder for a task of this pool: with a priority, or one that a token can cancel.
    ///
    /// ```
    /// use heist::{CancelToken, Pool, Priority};
    ///
    /// let pool = Pool::builder().workers(2).build()?;
    /// let token = CancelToken::new();
    /// let task = pool.task().priority(Priority::High).cancel_on(&token).spawn(|| 6 * 7);
    /// assert_eq!(task.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        with_shared!(self, shared => TaskBuilder::new(&**shared))
    }
}

impl PoolHandle {
    /// Returns a builder for a task of this pool, as [`Pool::task`] does.
    ///
    /// ```
    /// use heist::{Pool, Priority};
    ///
    /// let pool = Pool::builder().workers(2).build()?;
    /// let task = pool.handle().task().priority(Priority::Low).spawn(heist::current_priority);
    /// assert_eq!(task.join().unwrap(), Priority::Low);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::new(self.any_pool())
    }
}

/// Spawns a task with a priority, near a worker, or one that a token can cancel: see [`Pool::task`].
///
/// ```
/// use heist::{CancelToken, JoinError, Pool};
///
/// let pool = Pool::builder().workers(2).build()?;
/// let token = CancelToken::new();
/// token.cancel();
/// let task = pool.task().cancel_on(&token).spawn(|| unreachable!("it was cancelled before it started"));
/// assert!(matches!(task.join(), Err(JoinError::Cancelled)));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `spawn` is called"]
#[derive(Clone)]
pub struct TaskBuilder<'p> {
    pub(super) pool: &'p dyn AnyPool,
    pub(super) priority: Option<Priority>,
    pub(super) token: Option<CancelToken>,
    pub(super) name: Option<&'static str>,
    pub(super) near: Option<Affinity>,
}

impl<'p> TaskBuilder<'p> {
    pub(super) fn new(pool: &'p dyn AnyPool) -> Self {
        Self { pool, priority: None, token: None, name: None, near: None }
    }

    /// Sets the priority of the task. Without this, the task has the priority of the task that spawns it, or
    /// [`Priority::Normal`].
    ///
    /// ```
    /// use heist::{Pool, Priority};
    ///
    /// let pool = Pool::builder().workers(2).build()?;
    /// let here = pool.handle();
    /// let inherited = pool.task().priority(Priority::High).spawn(move || {
    ///     here.spawn(heist::current_priority).join().unwrap()
    /// });
    /// assert_eq!(inherited.join().unwrap(), Priority::High);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Lets the token cancel the task.
    ///
    /// If the token is cancelled before the task has started, the task does not run: its closure is dropped when a worker comes
    /// to it, and its handle returns [`JoinError::Cancelled`](crate::JoinError::Cancelled). To cancel a token takes the same time
    /// however many tasks it cancels. A task that is running can ask [`is_cancelled`], and end early.
    ///
    /// What the task spawns is not cancelled with it, unless it is spawned with the same token or with a
    /// [child](CancelToken::child) of it.
    ///
    /// ```
    /// use heist::{CancelToken, Pool};
    ///
    /// let pool = Pool::builder().workers(1).build()?;
    /// let token = CancelToken::new();
    /// let steps = pool.task().cancel_on(&token).spawn(|| {
    ///     let mut steps = 0_u64;
    ///     while !heist::is_cancelled() {
    ///         steps += 1;
    ///     }
    ///     steps
    /// });
    /// token.cancel();
    /// // It was cancelled before it started, or has ended early.
    /// drop(steps.join());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// Sets the name of the task in [traces](crate::trace). Without this, the task has the name of the closure's type.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).trace(1_000).build()?;
    /// pool.task().name("load the level").spawn(|| ());
    /// pool.stop();
    ///
    /// let trace = pool.trace_snapshot().unwrap();
    /// let names: Vec<_> = trace.threads[0].events.iter().filter_map(|event| event.name).collect();
    /// assert_eq!(names, ["load the level"]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Spawns the task. If the pool has as many queued tasks as it [may have](crate::Builder::max_queued), this waits until there
    /// is room.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.task().spawn(|| 6 * 7).join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn<F, T>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.pool.admission() {
            None => self.submit(type_name::<F>(), f),
            Some(admission) => {
                let admitted = admission.admit(self.pool.id(), f);
                self.submit(type_name::<F>(), move || admitted.run())
            }
        }
    }

    /// Spawns the task, unless the pool has as many queued tasks as it may have, as [`Pool::try_spawn`] does.
    ///
    /// ```
    /// use heist::{Pool, Priority};
    ///
    /// let pool = Pool::builder().workers(1).max_queued(8).build()?;
    /// let task = pool.task().priority(Priority::Low).try_spawn(|| 6 * 7).expect("nothing is queued");
    /// assert_eq!(task.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the closure if the pool is full.
    pub fn try_spawn<F, T>(self, f: F) -> Result<JoinHandle<T>, Full<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let Some(admission) = self.pool.admission() else { return Ok(self.spawn(f)) };
        let admitted = admission.try_admit(self.pool.id(), f).map_err(Full)?;
        Ok(self.submit(type_name::<F>(), move || admitted.run()))
    }

    /// Pushes a task that runs a closure, which was admitted. `type_name` is the task's name if none was set.
    fn submit<F, T>(self, type_name: &'static str, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let priority = self.priority.unwrap_or_else(current_priority);
        let name = self.name.unwrap_or(type_name);
        let near = self.worker_for(priority);
        let control = Arc::new(Control::new(priority, self.token).near(near));
        let (task, handle) = Task::controlled(Arc::clone(&control), move |control| {
            rename(|| name);
            count_run(control);
            job::controlled(control, f)
        });
        match near {
            None => self.pool.submit(priority, task, 1),
            Some(worker) => self.pool.submit_near(worker, task),
        }
        JoinHandle::controlled(handle, control, self.pool.id())
    }
}

impl fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("priority", &self.priority)
            .field("token", &self.token)
            .field("name", &self.name)
            .field("near", &self.near)
            .finish_non_exhaustive()
    }
}

/// Returns the priority of the task that the calling code is a part of, on whatever thread it runs. Code that is a part of no
/// task has [`Priority::Normal`].
///
/// ```
/// use heist::Priority;
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let task = pool.task().priority(Priority::High).spawn(|| {
///     heist::join(heist::current_priority, heist::current_priority)
/// });
/// assert_eq!(task.join().unwrap(), (Priority::High, Priority::High));
/// assert_eq!(heist::current_priority(), Priority::Normal);
/// # Ok::<(), heist::BuildError>(())
/// ```
pub fn current_priority() -> Priority {
    job::control(|control| control.priority).unwrap_or_default()
}

/// Returns whether the task that the calling code is a part of was cancelled: by the token of its
/// [`TaskBuilder`], or by [`JoinHandle::cancel`]. A long task asks this now and then, and ends early. Within
/// [`CancelToken::run`], it also returns whether that token was cancelled.
///
/// Every part of the task can ask, on whatever thread it runs: what it forks, and the parts of its scopes. Tasks that were
/// spawned without a builder, and code that is a part of no task, are never cancelled once they run.
///
/// ```
/// use std::sync::mpsc;
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let (begin, begun) = mpsc::channel();
/// let task = pool.task().spawn(move || {
///     begin.send(()).unwrap();
///     while !heist::is_cancelled() {
///         std::thread::yield_now();
///     }
///     "ended early"
/// });
/// begun.recv().unwrap();
/// assert!(!task.cancel(), "it has started");
/// assert_eq!(task.join().unwrap(), "ended early");
/// # Ok::<(), heist::BuildError>(())
/// ```
pub fn is_cancelled() -> bool {
    job::find_control(|control| control.is_cancelled().then_some(())).is_some()
}
