//! `JoinHandle`: how the spawner of a task gets its result.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::JoinError;
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::{Awaited, Claimed, TaskHandle};
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
    /// The listener that the first poll has left with the task.
    polled: Option<Arc<Listener>>,
    /// The task that starts the batch, if this is the handle of one.
    starter: Option<TaskHandle<()>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(handle: TaskHandle<T>, pool: usize) -> Self {
        Self { handle: Some(handle), pool, polled: None, starter: None }
    }

    /// Returns the handle of a batch, which `starter` starts.
    pub(crate) fn of_batch(
        handle: TaskHandle<T>,
        starter: Option<TaskHandle<()>>,
        pool: usize,
    ) -> Self {
        Self { handle: Some(handle), pool, polled: None, starter }
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
        let handle = self.handle.take().expect("the result was given out by a poll");
        match (&self.polled, &self.starter) {
            (None, None) => wait(&handle, self.pool),
            (polled, starter) => {
                let (polled, starter) = (polled.as_deref(), starter.as_ref());
                wait(&Joined { handle: &handle, polled, starter }, self.pool);
            }
        }
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
        self.handle.as_ref().is_none_or(Awaited::is_done)
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
        let handle = this.handle.as_ref().expect("polled after the result was given out");
        let pending = match &this.polled {
            _ if handle.is_done() => false,
            None => {
                let listener = Arc::new(Listener::future(context.waker()));
                this.polled = Some(Arc::clone(&listener));
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
            return Poll::Pending;
        }
        let handle = this.handle.take().expect("looked at above");
        Poll::Ready(handle.take())
    }
}

/// A thread's view of a batch, or of something that already has the listener of a future.
struct Joined<'h, T> {
    handle: &'h TaskHandle<T>,
    polled: Option<&'h Listener>,
    starter: Option<&'h TaskHandle<()>>,
}

impl<T> Awaited for Joined<'_, T> {
    fn id(&self) -> usize {
        self.handle.id()
    }

    fn is_done(&self) -> bool {
        self.handle.is_done()
    }

    fn starter(&self) -> Option<&TaskHandle<()>> {
        self.starter
    }

    fn listen(&self, listener: Arc<Listener>) -> bool {
        let Some(polled) = self.polled else { return self.handle.listen(listener) };
        polled.set_thread(listener);
        !self.handle.is_done()
    }

    fn claim(&self) -> Option<Claimed<'_>> {
        self.handle.claim()
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}
