//! The source whose items are sent by other threads.

use std::collections::VecDeque;
use std::num::NonZero;
use std::{fmt, mem};

use super::{Filled, Source};
use crate::panic::contain_each;
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::Same;
use crate::sync::{Arc, Mutex, lock};
use crate::task::Promise;
use crate::worker::wait;

/// Sends items to a pipeline that was made by [`Pipeline::fed`].
///
/// All clones send to the same pipeline. The run ends when the last of them has been dropped and every item
/// has been processed.
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

/// The source of the items that a [`Sender`] sends.
pub struct Feed<T>(Arc<Mutex<Queue<T>>>);

/// The queue between the [senders](Sender) and the [`Feed`].
pub struct Queue<T> {
    items: VecDeque<T>,
    capacity: usize,
    /// The number of senders that have not been dropped.
    senders: usize,
    /// Whether the pipeline is gone, or its run has ended: no item will be taken any more.
    closed: bool,
    /// The senders that wait for room.
    waiting: Vec<Promise<()>>,
    /// Whether the run has found the queue empty and waits for a notification.
    pending: bool,
    /// The run to notify, once there is one.
    control: Option<Arc<Control>>,
}

impl<T> Queue<T> {
    /// Drops the items, and has all senders fail from now on.
    fn close(queue: &Mutex<Self>) {
        let mut queue = lock(queue);
        queue.closed = true;
        queue.control = None;
        let (items, waiting) = (mem::take(&mut queue.items), mem::take(&mut queue.waiting));
        drop(queue);
        waiting.into_iter().for_each(|promise| promise.fulfil(Ok(Vec::new()), None));
        contain_each(items);
    }

    /// Returns the run that waits for a notification, if one does. The caller notifies it after it has
    /// released the lock of the queue.
    fn take_pending(&mut self) -> Option<Arc<Control>> {
        if mem::take(&mut self.pending) { self.control.clone() } else { None }
    }
}

/// An item could not be sent, because the run has ended or the pipeline was dropped.
///
/// The error returns the item.
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::Pipeline;
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
/// drop(pipeline);
/// assert_eq!(sender.send(7).unwrap_err().0, 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(
    /// The item that was not sent.
    pub T,
);

impl<T> Pipeline<Feed<T>> {
    /// Makes a pipeline whose items are sent by a [`Sender`].
    ///
    /// At most `capacity` items wait for the pipeline to take them. [`Sender::send`] waits while there are
    /// that many. The run ends when the last sender has been dropped and every item has been processed.
    ///
    /// A batch consists of the items that are there, up to the [size of a batch](Self::batch). The pipeline
    /// does not wait for a batch to be full.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let (sender, pipeline) = Pipeline::fed(NonZero::new(100).unwrap());
    /// let feeder = std::thread::spawn(move || (0..1000).try_for_each(|n| sender.send(n)));
    /// let mut sum = 0;
    /// pipeline.map(|n: u32| n * 2).run(&pool, |n| sum += n)?;
    /// feeder.join().unwrap()?;
    /// assert_eq!(sum, 999_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fed(capacity: NonZero<usize>) -> (Sender<T>, Self) {
        let queue = Arc::new(Mutex::new(Queue {
            items: VecDeque::new(),
            capacity: capacity.get(),
            senders: 1,
            closed: false,
            waiting: Vec::new(),
            pending: false,
            control: None,
        }));
        let feed = Feed(Arc::clone(&queue));
        (Sender(queue), Self { source: feed, steps: Same, config: Config::new() })
    }
}

impl<T> Sender<T> {
    /// Sends an item to the pipeline, and waits while there is no room for it.
    ///
    /// If a worker of the pipeline's own pool calls it, it processes items of the pipeline while there is no room,
    /// as far as there is something to process. So the caller must not hold a lock that a stage takes. If a
    /// worker of a pool has to wait, that worker's other tasks run on another thread meanwhile.
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
    /// Returns the item if the run has ended or the pipeline was dropped.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        let mut may_help = true;
        loop {
            let mut queue = lock(&self.0);
            if queue.closed {
                return Err(SendError(item));
            }
            if queue.items.len() < queue.capacity {
                queue.items.push_back(item);
                let control = queue.take_pending();
                drop(queue);
                if let Some(control) = control {
                    control.source_ready();
                }
                return Ok(());
            }
            if mem::take(&mut may_help) {
                let control = queue.control.clone();
                drop(queue);
                may_help = control.is_some_and(|control| control.help(&|| self.has_room()));
                continue;
            }
            let (promise, handle) = Promise::new();
            queue.waiting.push(promise);
            drop(queue);
            wait::wait(&handle, NO_POOL);
            may_help = true;
        }
    }
}

impl<T> Sender<T> {
    /// Returns whether a sender need not wait.
    fn has_room(&self) -> bool {
        let queue = lock(&self.0);
        queue.closed || queue.items.len() < queue.capacity
    }
}

/// The id of no pool: a sender waits for something that no pool runs.
const NO_POOL: usize = 0;

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        lock(&self.0).senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.senders -= 1;
        let control = if queue.senders == 0 { queue.take_pending() } else { None };
        drop(queue);
        if let Some(control) = control {
            control.source_ready();
        }
    }
}

impl<T> Sealed for Feed<T> {}

impl<T: Send> Source for Feed<T> {
    type Item = T;
    type Handle = Arc<Mutex<Queue<T>>>;

    fn fill(&mut self, batch: &mut Vec<T>, most: usize, _: &impl Fn() -> bool) -> Filled {
        let mut queue = lock(&self.0);
        let count = most.min(queue.items.len());
        batch.extend(queue.items.drain(..count));
        let waiting = mem::take(&mut queue.waiting);
        let filled = match (count, queue.senders) {
            (0, 0) => Filled::End,
            (0, _) => {
                queue.pending = true;
                Filled::Pending
            }
            _ => Filled::More,
        };
        drop(queue);
        waiting.into_iter().for_each(|promise| promise.fulfil(Ok(Vec::new()), None));
        filled
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        lock(&self.0).control = Some(Arc::clone(control));
        Arc::clone(&self.0)
    }

    fn close(queue: &Self::Handle) {
        Queue::close(queue);
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        Queue::close(&self.0);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pipeline has ended and takes no more items")
    }
}

impl<T> std::error::Error for SendError<T> {}
