//! The source whose items are sent by other threads.

use std::collections::VecDeque;
use std::num::NonZero;
use std::{fmt, mem};

use super::queue::{Found, Queue};
use super::sender::Sender;
use super::{Filled, NoReader, Source};
use crate::panic::contain_each;
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::Same;
use crate::sync::{Arc, Instant, Mutex, lock};
use crate::task::Promise;

/// The source of the items that a [`Sender`] sends.
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::{Feed, Pipeline};
///
/// /// What waits for a consumer, whoever sends it.
/// struct Inbox(Pipeline<Feed<String>>);
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::new(10).unwrap());
/// let inbox = Inbox(pipeline);
/// sender.send("a letter".to_owned())?;
/// drop(sender);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(inbox.0.run(&pool, |_| ())?.items, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Feed<T> {
    pub(super) queue: Arc<Mutex<Queue<T>>>,
    /// Items that were taken from the queue together, and are passed on one by one. They still take up room there.
    staged: VecDeque<T>,
    /// The number of items that were passed on since, and whose room has not been released.
    passed_on: usize,
    /// The senders that have been admitted and not answered yet. It is empty while the feed is not used.
    admitted: Vec<Promise<T>>,
    /// The number of items in a batch.
    batch: usize,
}

impl<T> Pipeline<Feed<T>> {
    /// Makes a pipeline whose items are sent by a [`Sender`].
    ///
    /// At most `capacity` items wait for the pipeline to take them. [`Sender::send`] waits while there are
    /// that many. The run ends when the last sender has been dropped and every item has been processed.
    ///
    /// A batch consists of the items that are there, up to the [size of a batch](Self::batch). The pipeline
    /// does not wait for a batch to be full, unless [`flush_after`](Self::flush_after) says so.
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
        let (sender, feed) = Feed::new(capacity.get());
        (sender, Self { source: feed, steps: Same, config: Config::new() })
    }
}

impl<T> Feed<T> {
    pub(super) fn new(capacity: usize) -> (Sender<T>, Self) {
        let queue = Arc::new(Mutex::new(Queue::new(capacity)));
        let sender = Sender::new(Arc::clone(&queue));
        let (staged, admitted) = (VecDeque::new(), Vec::new());
        (sender, Self { queue, staged, passed_on: 0, admitted, batch: 1 })
    }

    /// Tells the senders that were admitted that their items are in the queue. The caller has released the lock.
    fn answer_admitted(&mut self) {
        self.admitted.drain(..).for_each(|answer| answer.fulfil(Ok(Vec::new()), None));
    }
}

impl<T> Sealed for Feed<T> {}

impl<T: Send> Source for Feed<T> {
    type Item = T;
    type Handle = Arc<Mutex<Queue<T>>>;
    type Reader = NoReader;

    fn fill(&mut self, batch: &mut Vec<T>, most: usize, _: &impl Fn() -> bool) -> Filled {
        let mut queue = lock(&self.queue);
        if !queue.is_due(most) {
            return Filled::Pending;
        }
        let found = queue.take(most, batch, &mut self.admitted);
        drop(queue);
        self.answer_admitted();
        found.into()
    }

    fn next(&mut self, into: &mut Vec<T>, _: &impl Fn() -> bool) -> Filled {
        if self.staged.is_empty() {
            let mut queue = lock(&self.queue);
            // Senders are admitted first: whether there are enough items for a batch is only noticed when one is sent.
            queue.release(mem::take(&mut self.passed_on), &mut self.admitted);
            let found = match queue.is_due(self.batch) {
                true => queue.stage(&mut self.staged),
                false => Found::Nothing,
            };
            drop(queue);
            self.answer_admitted();
            if found != Found::Items {
                return found.into();
            }
        }
        into.extend(self.staged.pop_front());
        self.passed_on += 1;
        Filled::More
    }

    fn settle(&mut self) {
        if self.passed_on > 0 {
            lock(&self.queue).release(self.passed_on, &mut self.admitted);
            self.passed_on = 0;
            self.answer_admitted();
        }
    }

    fn set_batch(&mut self, items: usize) {
        self.batch = items;
    }

    fn deadline(&self) -> Option<Instant> {
        lock(&self.queue).deadline()
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        lock(&self.queue).attach(control);
        Arc::clone(&self.queue)
    }

    fn close(queue: &Self::Handle) {
        Queue::close(queue);
    }

    fn refuse(queue: &Self::Handle) {
        Queue::refuse(queue);
    }
}

impl From<Found> for Filled {
    fn from(found: Found) -> Self {
        match found {
            Found::Items => Self::More,
            Found::Nothing => Self::Pending,
            Found::End => Self::End,
        }
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        Queue::close(&self.queue);
        contain_each(self.staged.drain(..));
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}
