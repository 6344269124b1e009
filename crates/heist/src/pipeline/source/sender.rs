//! The senders of a fed pipeline: how they send, wait for room, and give up (steps F1, F2 and F5 of `../README.md`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, mem};

use super::queue::{Offer, Place, Queue};
use super::send_error::{SendError, SendTimeoutError, TrySendError};
use crate::api::handle::JoinHandle;
use crate::error::JoinError;
use crate::pipeline::control::Control;
use crate::sync::{Arc, Mutex, lock, pause, yield_now};
use crate::task::Awaited;
use crate::worker::current::with_worker;
use crate::worker::limited::Limited;
use crate::worker::wait;

/// Sends items to a pipeline that was made by [`Pipeline::fed`](super::super::Pipeline::fed).
///
/// All clones send to the same pipeline. The run ends when the last of them has been dropped and every item
/// has been processed.
///
/// Senders that wait for room are served in the order in which they began to wait, whether threads or futures wait.
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::Pipeline;
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let (sender, pipeline) = Pipeline::fed(NonZero::new(8).unwrap());
/// for n in 0..3 {
///     let sender = sender.clone();
///     pool.spawn(move || sender.send(n));
/// }
/// drop(sender);
/// let report = pipeline.run(&pool, |n| println!("{n}"))?;
/// assert_eq!(report.items, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sender<T>(Arc<Mutex<Queue<T>>>);

/// A thread that finds no room looks again this often before it gets into the line: at first after some pauses, then after yields of
/// its processor. Most senders find room then, and many may send several items in a row. To sleep and to be woken for each of them
/// takes ten times as long.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 10 };
/// After this many looks, the thread yields.
const LOOKS_WITHOUT_YIELD: u32 = 3;

/// What became of an item that a sender was to send, waiting if need be.
enum Attempt<T> {
    Sent,
    Closed(T),
    /// The sender is in the line, and this run may need its help.
    InLine(Place<T>, Option<Arc<Control>>),
}

impl<T> Sender<T> {
    pub(super) fn new(queue: Arc<Mutex<Queue<T>>>) -> Self {
        Self(queue)
    }

    /// Has all senders fail from now on, and the feed end when its items have been taken.
    pub(super) fn end(&self) {
        notify(Queue::end(&self.0));
    }

    /// Returns whether the run has ended or failed, or the pipeline was dropped.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.0).is_closed()
    }
}

impl<T: Send> Sender<T> {
    /// Sends an item to the pipeline, and waits while there is no room for it.
    ///
    /// If a worker of the pipeline's own pool calls it, it processes items of the pipeline while there is no room,
    /// as far as there is something to process. So the caller must not hold a lock that a stage takes. If a
    /// worker of a pool has to wait, that worker's other tasks run on another thread meanwhile.
    ///
    /// A stage may send to its own pipeline. A function that [weighs](crate::pipeline::Pipeline::weigh) items must not, because nothing is taken
    /// from the feed meanwhile: it would wait for itself.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let (sender, pipeline) = Pipeline::fed(NonZero::new(1).unwrap());
    /// let feeder = std::thread::spawn(move || {
    ///     sender.send("one")?;
    ///     sender.send("two")
    /// });
    /// let mut seen = Vec::new();
    /// pipeline.ordered().run(&pool, |text| seen.push(text))?;
    /// feeder.join().unwrap()?;
    /// assert_eq!(seen, ["one", "two"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item if the run has ended, has failed or was cancelled, or if the pipeline was dropped. A sender that waits is
    /// released at once, and does not depend on what the thread does that gets the results.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        match self.attempt_patiently(item) {
            Attempt::Sent => Ok(()),
            Attempt::Closed(item) => Err(SendError(item)),
            Attempt::InLine(place, control) => {
                help(control, &|| place.handle.is_done());
                wait::wait(&place.handle, wait::NO_POOL);
                outcome(place.handle.take())
            }
        }
    }

    /// Sends an item to the pipeline if there is room for it. Does not wait.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use heist::pipeline::{Pipeline, TrySendError};
    ///
    /// let (sender, pipeline) = Pipeline::fed(NonZero::new(1).unwrap());
    /// assert_eq!(sender.try_send(1), Ok(()));
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// drop(pipeline);
    /// assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item if there is no room, or if the run has ended or failed or the pipeline was dropped.
    pub fn try_send(&self, item: T) -> Result<(), TrySendError<T>> {
        let offer = lock(&self.0).offer(item);
        match offer {
            Offer::Taken(control) => {
                notify(control);
                Ok(())
            }
            Offer::Full(item) => Err(TrySendError::Full(item)),
            Offer::Closed(item) => Err(TrySendError::Closed(item)),
        }
    }

    /// Like [`send`](Self::send), but gives up after `timeout`.
    ///
    /// A worker of the pipeline's own pool, which processes batches of the pipeline meanwhile, looks at the time between
    /// two of them. A worker of a pool that cannot start a further thread may run another task while it waits, and returns
    /// when that has ended.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use std::time::Duration;
    /// use heist::pipeline::{Pipeline, SendTimeoutError};
    ///
    /// let (sender, pipeline) = Pipeline::fed(NonZero::new(1).unwrap());
    /// let moment = Duration::from_millis(1);
    /// assert_eq!(sender.send_timeout(1, moment), Ok(()));
    /// assert_eq!(sender.send_timeout(2, moment), Err(SendTimeoutError::Timeout(2)));
    /// # drop(pipeline);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item if there was no room in time, or if the run has ended or failed or the pipeline was dropped.
    pub fn send_timeout(&self, item: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        let (place, control) = match self.attempt_patiently(item) {
            Attempt::Sent => return Ok(()),
            Attempt::Closed(item) => return Err(SendTimeoutError::Closed(item)),
            Attempt::InLine(place, control) => (place, control),
        };
        let limited = Limited::new(&place.handle, timeout);
        help(control, &|| limited.is_done());
        if !limited.wait() {
            let withdrawn = lock(&self.0).leave_line(place.ticket);
            if let Some((item, answer)) = withdrawn {
                // The handle is dropped first: otherwise the drop of the answer would wake this thread itself.
                drop(place);
                drop(answer);
                return Err(SendTimeoutError::Timeout(item));
            }
            // Another thread has taken it out of the line, and is about to answer.
            limited.wait_on();
        }
        Ok(outcome(place.handle.take())?)
    }

    /// Sends an item to the pipeline, and waits asynchronously while there is no room for it. Works in any executor.
    ///
    /// The future does nothing before it is polled for the first time. From then on the sender is in the line of those
    /// that wait. If the future is dropped before the pipeline has taken over its item, the item is dropped, and the
    /// sender behind it is served instead. So an item may have been sent by a future that was dropped before it was
    /// polled again.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    /// let (sender, pipeline) = Pipeline::fed(NonZero::new(1).unwrap());
    /// runtime.spawn(async move {
    ///     for n in 1..=10 {
    ///         sender.send_async(n).await.unwrap();
    ///     }
    /// });
    /// let mut sum = 0;
    /// pipeline.run(&pool, |n| sum += n)?;
    /// assert_eq!(sum, 55);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future returns the item if the run has ended or failed or the pipeline was dropped.
    pub fn send_async(&self, item: T) -> SendFuture<'_, T> {
        SendFuture { sender: self, state: State::New(item) }
    }

    /// Sends an item, or gets into the line after some looks (F1, F2).
    fn attempt_patiently(&self, mut item: T) -> Attempt<T> {
        // A worker does not wait for something else to do, but helps.
        let looks = if with_worker(|_| ()).is_none() { LOOKS } else { 0 };
        for look in 0..looks {
            let offer = lock(&self.0).offer(item);
            item = match offer {
                Offer::Taken(control) => {
                    notify(control);
                    return Attempt::Sent;
                }
                Offer::Closed(item) => return Attempt::Closed(item),
                Offer::Full(item) => item,
            };
            if look < LOOKS_WITHOUT_YIELD {
                (0..1 << look).for_each(|_| pause());
            } else {
                yield_now();
            }
        }
        self.attempt(item)
    }

    /// Sends an item, or gets into the line (F1, F2).
    fn attempt(&self, item: T) -> Attempt<T> {
        let mut queue = lock(&self.0);
        match queue.offer(item) {
            Offer::Taken(control) => {
                drop(queue);
                notify(control);
                Attempt::Sent
            }
            Offer::Full(item) => {
                let place = queue.line_up(item);
                Attempt::InLine(place, queue.control())
            }
            Offer::Closed(item) => Attempt::Closed(item),
        }
    }
}

#[cfg(all(test, loom))]
impl<T: Send> Sender<T> {
    /// Gets into the line without a look whether there is room: the wrong way.
    pub(crate) fn send_unseen(&self, item: T) -> Result<(), SendError<T>> {
        let place = lock(&self.0).line_up(item);
        wait::wait(&place.handle, wait::NO_POOL);
        outcome(place.handle.take())
    }
}

/// Notifies a run that waits for items.
fn notify(control: Option<Arc<Control>>) {
    if let Some(control) = control {
        control.source_ready();
    }
}

/// Works for the run until there is `enough` room or nothing to do, if the calling thread is a worker of its pool (H).
fn help(control: Option<Arc<Control>>, enough: &dyn Fn() -> bool) {
    if let Some(control) = control {
        while !enough() && control.help(enough) {}
    }
}

/// Returns what a sender that has waited returns.
fn outcome<T>(answer: Result<Vec<T>, JoinError>) -> Result<(), SendError<T>> {
    let mut returned = answer.expect("the queue answers every sender in the line");
    returned.pop().map_or(Ok(()), |item| Err(SendError(item)))
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        lock(&self.0).add_sender();
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let control = lock(&self.0).remove_sender();
        notify(control);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// A future that sends an item to a pipeline: see [`Sender::send_async`].
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::{Pipeline, SendError};
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::new(1).unwrap());
/// let sent = smol::block_on(sender.send_async("room"));
/// assert_eq!(sent, Ok(()));
/// drop(pipeline);
/// assert_eq!(smol::block_on(sender.send_async("late")), Err(SendError("late")));
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct SendFuture<'s, T> {
    sender: &'s Sender<T>,
    state: State<T>,
}

enum State<T> {
    New(T),
    InLine { ticket: u64, handle: JoinHandle<Vec<T>> },
    Done,
}

impl<T: Send> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.state = match mem::replace(&mut this.state, State::Done) {
            State::New(item) => match this.sender.attempt(item) {
                Attempt::Sent => return Poll::Ready(Ok(())),
                Attempt::Closed(item) => return Poll::Ready(Err(SendError(item))),
                Attempt::InLine(Place { ticket, handle }, _) => {
                    State::InLine { ticket, handle: JoinHandle::new(handle, wait::NO_POOL) }
                }
            },
            in_line_or_done => in_line_or_done,
        };
        let State::InLine { handle, .. } = &mut this.state else {
            panic!("polled after the item was sent or returned")
        };
        // The ticket stays in the state meanwhile: the clone of the waker is the user's code, and may panic.
        let answer = std::task::ready!(Pin::new(handle).poll(context));
        this.state = State::Done;
        Poll::Ready(outcome(answer))
    }
}

/// Takes the sender out of the line (F5).
impl<T> Drop for SendFuture<'_, T> {
    fn drop(&mut self) {
        if let State::InLine { ticket, handle } = mem::replace(&mut self.state, State::Done) {
            let withdrawn = lock(&self.sender.0).leave_line(ticket);
            // The handle is dropped first: otherwise the drop of the answer would wake the task of this future.
            drop(handle);
            drop(withdrawn);
        }
    }
}

impl<T> Unpin for SendFuture<'_, T> {}

impl<T> fmt::Debug for SendFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture").finish_non_exhaustive()
    }
}
