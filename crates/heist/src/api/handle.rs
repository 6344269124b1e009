//! `JoinHandle`: how the spawner of a task gets its result.

#[cfg(feature = "futures")]
use std::cell::OnceCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::JoinError;
use crate::fork::job;
use crate::sync::{Arc, is_left_behind, refuse_copy};
#[cfg(feature = "futures")]
use crate::task::Latest;
use crate::task::listener::Listener;
use crate::task::{Awaited, Claimed, Control, TaskHandle};
use crate::worker::wait::wait;

/// A handle to a task's result, which can be joined or awaited.
///
/// Dropping the handle detaches the task, which runs all the same. A handle may outlive its pool.
///
/// ```
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let handle = pool.spawn(|| "done");
/// assert_eq!(handle.join().unwrap(), "done");
/// # Ok::<(), heist::BuildError>(())
/// ```
pub struct JoinHandle<T> {
    /// `None` once a poll has returned the result.
    handle: Option<TaskHandle<T>>,
    /// The pool that the task was spawned on: `Shared::id`. Only compared.
    pool: usize,
    beside: Aside,
}

/// A [`Beside`], of which nothing is looked at but whether there is something, when the handle is dropped.
struct Aside(ManuallyDrop<Beside>);

impl Drop for Aside {
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.0, Beside::Nothing) {
            self.drop_something();
        }
    }
}

impl Aside {
    #[cold]
    #[inline(never)]
    fn drop_something(&mut self) {
        // SAFETY: only called when this is dropped.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl From<Beside> for Aside {
    #[inline(always)]
    fn from(beside: Beside) -> Self {
        Self(ManuallyDrop::new(beside))
    }
}

/// What a handle holds besides that of its task. One field, because most handles are joined or dropped with nothing in it.
enum Beside {
    Nothing,
    /// The listener that the first poll has left with the task.
    Polled(Arc<Listener>),
    /// The handle of a task with a control, and the listener of the first poll.
    Controlled {
        control: Arc<Control>,
        polled: Option<Arc<Listener>>,
    },
    /// The handle of a batch, or of a part of a scope: the group of its parts, the task that starts it, and the listener of the
    /// first poll.
    Batch {
        group: usize,
        starter: TaskHandle<()>,
        polled: Option<Arc<Listener>>,
    },
}

impl Beside {
    fn polled(&self) -> Option<&Arc<Listener>> {
        match self {
            Self::Nothing => None,
            Self::Polled(listener) => Some(listener),
            Self::Batch { polled, .. } | Self::Controlled { polled, .. } => polled.as_ref(),
        }
    }

    /// Keeps the listener of the first poll.
    fn keep(&mut self, listener: Arc<Listener>) {
        match self {
            Self::Batch { polled, .. } | Self::Controlled { polled, .. } => {
                *polled = Some(listener)
            }
            Self::Nothing | Self::Polled(_) => *self = Self::Polled(listener),
        }
    }
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(handle: TaskHandle<T>, pool: usize) -> Self {
        Self { handle: Some(handle), pool, beside: Beside::Nothing.into() }
    }

    /// Returns the handle of a task with that control.
    pub(crate) fn controlled(handle: TaskHandle<T>, control: Arc<Control>, pool: usize) -> Self {
        let beside = Beside::Controlled { control, polled: None };
        Self { handle: Some(handle), pool, beside: beside.into() }
    }

    /// Returns the handle of a batch, which `starter` starts; an empty batch has none.
    pub(crate) fn of_batch(
        handle: TaskHandle<T>,
        starter: Option<TaskHandle<()>>,
        pool: usize,
    ) -> Self {
        match starter {
            None => Self::new(handle, pool),
            Some(starter) => {
                let group = handle.id();
                Self::of_parts(handle, group, starter, pool)
            }
        }
    }

    /// Returns the handle of something whose parts have that group, and which `starter` starts.
    pub(crate) fn of_parts(
        handle: TaskHandle<T>,
        group: usize,
        starter: TaskHandle<()>,
        pool: usize,
    ) -> Self {
        let beside = Beside::Batch { group, starter, polled: None };
        Self { handle: Some(handle), pool, beside: beside.into() }
    }

    /// Waits for the task and returns its result.
    ///
    /// On a worker of the pool, a task that has not started runs right there, and a batch starts there. If the
    /// task is running on another worker, another thread goes on with this worker's other tasks meanwhile.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let sum = pool.spawn(|| (1..=10).sum::<u32>());
    /// assert_eq!(sum.join().unwrap(), 55);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the task panicked, was cancelled, or was refused because the pool had stopped.
    ///
    /// # Panics
    ///
    /// Panics if the handle was polled to completion before.
    pub fn join(mut self) -> Result<T, JoinError> {
        if self.will_not_run() {
            return Err(JoinError::Cancelled);
        }
        let handle = self.handle.take().expect("the result was given out by a poll");
        match &*self.beside.0 {
            Beside::Nothing => wait(&handle, self.pool),
            beside => wait(&Joined { handle: &handle, beside }, self.pool),
        }
        handle.take()
    }

    /// Like [`join`](Self::join), for what tasks do one after the other, of which the latest one is there.
    #[cfg(feature = "futures")]
    pub(super) fn join_by(mut self, latest: &Latest) -> Result<T, JoinError> {
        let handle = self.handle.take().expect("the result was given out by a poll");
        let whole = Joined { handle: &handle, beside: &self.beside.0 };
        wait(&JoinedBy { whole, latest, claimed: OnceCell::new() }, self.pool);
        handle.take()
    }

    /// Returns whether the result is available, so that [`join`](Self::join) would not wait.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let handle = pool.spawn(|| ());
    /// pool.stop();
    /// assert!(handle.is_finished());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(Awaited::is_done) || self.will_not_run()
    }

    /// Cancels the task. Returns `true` if it had not started, and will never run.
    ///
    /// Then [`join`](Self::join) returns [`JoinError::Cancelled`] at once. The closure is dropped when a worker comes to it. Of a
    /// batch, either all tasks are cancelled or none.
    ///
    /// A task that is running is not interrupted. If it was spawned by a [`TaskBuilder`](crate::TaskBuilder), it can ask
    /// [`is_cancelled`](crate::is_cancelled) from now on, and end early; its result is what it returns.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let (begin, begun) = mpsc::channel();
    /// let (gate, opened) = mpsc::channel::<()>();
    /// let running = pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
    /// begun.recv().unwrap();
    ///
    /// let queued = pool.spawn(|| unreachable!("the only worker is busy"));
    /// assert!(queued.cancel());
    /// assert!(matches!(queued.join(), Err(heist::JoinError::Cancelled)));
    ///
    /// assert!(!running.cancel(), "it has started");
    /// drop(gate);
    /// assert!(running.join().unwrap());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        if let Beside::Controlled { control, .. } = &*self.beside.0 {
            control.cancel();
        }
        self.revoke()
    }

    /// Makes sure that the task does not run, if it has not started. Returns whether it will not.
    fn revoke(&self) -> bool {
        match &*self.beside.0 {
            Beside::Batch { starter, .. } => starter.revoke(),
            _ => self.handle.as_ref().is_some_and(TaskHandle::revoke),
        }
    }

    /// Returns whether the task was cancelled before it started, by this handle or by its token.
    fn will_not_run(&self) -> bool {
        match &*self.beside.0 {
            Beside::Batch { starter, .. } => starter.is_revoked(),
            // The worker that comes to it would find the same.
            Beside::Controlled { control, .. } if control.is_token_cancelled() => self.revoke(),
            _ => self.handle.as_ref().is_some_and(TaskHandle::is_revoked),
        }
    }

    /// Cancels the task, as [`cancel`](Self::cancel) does, when what this returns is dropped: for a request whose client may go
    /// away.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let (begin, begun) = std::sync::mpsc::channel();
    /// let (gate, opened) = std::sync::mpsc::channel::<()>();
    /// pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
    /// begun.recv().unwrap();
    ///
    /// let request = pool.spawn(|| unreachable!("nobody waits for it any more")).abort_on_drop();
    /// drop(request);
    /// drop(gate);
    /// pool.stop();
    /// assert_eq!(pool.stats().total.cancellations, 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn abort_on_drop(self) -> AbortOnDrop<T> {
        AbortOnDrop(self)
    }
}

/// A handle to a task that is cancelled when the handle is dropped: see [`JoinHandle::abort_on_drop`].
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let handle = pool.spawn(|| 42).abort_on_drop();
/// assert_eq!(handle.join().unwrap(), 42);
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the task"]
pub struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    /// Waits for the task and returns its result, as [`JoinHandle::join`] does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// assert_eq!(pool.spawn(|| 42).abort_on_drop().join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the task panicked, was cancelled, or was refused because the pool had stopped.
    ///
    /// # Panics
    ///
    /// Panics if the handle was polled to completion before.
    pub fn join(self) -> Result<T, JoinError> {
        self.detach().join()
    }

    /// Returns the handle, which no longer cancels the task.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let guarded = pool.spawn(|| 42).abort_on_drop();
    /// let handle = guarded.detach();
    /// assert_eq!(handle.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn detach(mut self) -> JoinHandle<T> {
        let nothing = JoinHandle { handle: None, pool: 0, beside: Beside::Nothing.into() };
        std::mem::replace(&mut self.0, nothing)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Awaits the task, as [`JoinHandle`] does.
///
/// ```
/// use std::future::Future;
/// use std::task::{Context, Poll, Waker};
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let mut handle = std::pin::pin!(pool.spawn(|| 42).abort_on_drop());
/// pool.stop();
/// let mut context = Context::from_waker(Waker::noop());
/// let Poll::Ready(result) = handle.as_mut().poll(&mut context) else { unreachable!() };
/// assert_eq!(result.unwrap(), 42);
/// # Ok::<(), heist::BuildError>(())
/// ```
impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.get_mut().0).poll(context)
    }
}

/// Awaits the task, in any executor.
///
/// ```
/// use std::future::Future;
/// use std::task::{Context, Poll, Waker};
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let mut handle = std::pin::pin!(pool.spawn(|| 42));
/// pool.stop();
/// let mut context = Context::from_waker(Waker::noop());
/// let Poll::Ready(result) = handle.as_mut().poll(&mut context) else { unreachable!() };
/// assert_eq!(result.unwrap(), 42);
/// # Ok::<(), heist::BuildError>(())
/// ```
impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.will_not_run() {
            this.handle = None;
            return Poll::Ready(Err(JoinError::Cancelled));
        }
        let handle = this.handle.as_ref().expect("polled after the result was given out");
        let pending = match this.beside.0.polled() {
            _ if handle.is_done() => false,
            None => {
                let listener = Arc::new(Listener::future(context.waker()));
                this.beside.0.keep(Arc::clone(&listener));
                handle.listen(listener)
            }
            Some(listener) => {
                listener.set_waker(context.waker());
                // If the task has ended before that, it may have notified the previous waker. It sets its state to
                // done before it looks for a listener.
                !handle.is_done()
            }
        };
        if pending {
            if is_left_behind(this.pool) {
                refuse_copy();
            }
            return Poll::Pending;
        }
        let handle = this.handle.take().expect("looked at above");
        Poll::Ready(handle.take())
    }
}

/// A thread's view of a batch, of a task with a control, or of something that already has the listener of a future.
struct Joined<'h, T> {
    handle: &'h TaskHandle<T>,
    beside: &'h Beside,
}

impl<T> Awaited for Joined<'_, T> {
    fn id(&self) -> usize {
        match self.beside {
            Beside::Controlled { control, .. } => job::root_of(control),
            Beside::Batch { group, .. } => *group,
            Beside::Nothing | Beside::Polled(_) => self.handle.id(),
        }
    }

    fn is_done(&self) -> bool {
        self.handle.is_done()
    }

    fn task_id(&self) -> usize {
        match self.beside {
            Beside::Batch { starter, .. } => starter.id(),
            _ => self.handle.id(),
        }
    }

    fn listen(&self, listener: Arc<Listener>) -> bool {
        let Some(polled) = self.beside.polled() else { return self.handle.listen(listener) };
        polled.set_thread(listener);
        !self.handle.is_done()
    }

    fn claim(&self) -> Option<Claimed<'_>> {
        match self.beside {
            Beside::Batch { starter, .. } => starter.claim(),
            _ => self.handle.claim(),
        }
    }
}

/// A thread's view of what tasks do one after the other.
#[cfg(feature = "futures")]
struct JoinedBy<'h, T> {
    whole: Joined<'h, T>,
    latest: &'h Latest,
    /// The task that was the latest one at the first claim, if there was one. There is one claim in a wait: later tasks come behind
    /// what is queued.
    claimed: OnceCell<Option<TaskHandle<()>>>,
}

#[cfg(feature = "futures")]
impl<T> Awaited for JoinedBy<'_, T> {
    fn id(&self) -> usize {
        self.whole.id()
    }

    fn is_done(&self) -> bool {
        self.whole.is_done()
    }

    fn listen(&self, listener: Arc<Listener>) -> bool {
        self.whole.listen(listener)
    }

    fn claim(&self) -> Option<Claimed<'_>> {
        let is_first = self.claimed.get().is_none();
        let task = self.claimed.get_or_init(|| self.latest.take());
        task.as_ref().filter(|_| is_first).and_then(Awaited::claim)
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}
