//! Items that are sent by hand.

use std::collections::VecDeque;
use std::num::NonZero;
use std::{fmt, mem};

use super::Pipeline;
use super::control::Control;
use super::plan::Plan;
use super::sealed::Sealed;
use super::source::{Filled, Source};
use super::stage::Same;
use crate::panic::contain;
use crate::sync::{Arc, Mutex, lock};
use crate::task::Promise;
use crate::worker::wait;

/// Feeds a [fed](super::Pipeline::fed) pipeline. Clones feed the same one; when the last of them is gone, the run comes
/// to its end.
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

/// Where what a [`Sender`] sends comes out.
pub struct Feed<T>(Arc<Mutex<Queue<T>>>);

/// Between the two.
pub struct Queue<T> {
    items: VecDeque<T>,
    capacity: usize,
    senders: usize,
    /// Is nobody there to take anything any more?
    closed: bool,
    /// Those who wait for room.
    waiting: Vec<Promise<()>>,
    /// Does the pipeline wait to be told that there is something?
    dry: bool,
    control: Option<Arc<Control>>,
}

impl<T> Queue<T> {
    /// Nobody will take anything any more.
    fn close(queue: &Mutex<Self>) {
        let mut queue = lock(queue);
        queue.closed = true;
        queue.control = None;
        let (items, waiting) = (mem::take(&mut queue.items), mem::take(&mut queue.waiting));
        drop(queue);
        waiting.into_iter().for_each(|promise| promise.fulfil(Ok(Vec::new()), None));
        contain(|| drop(items));
    }

    /// Somebody has said that there was nothing: whom to tell otherwise.
    fn ring(&mut self) -> Option<Arc<Control>> {
        if mem::take(&mut self.dry) { self.control.clone() } else { None }
    }
}

/// The run has ended, or the pipeline was dropped: nobody will take it. It is given back.
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
    /// What was not taken.
    pub T,
);

impl<T> Pipeline<Feed<T>> {
    /// Fed by hand. At most `capacity` items wait to be taken; then [`Sender::send`] waits. The run ends when the last
    /// sender is gone.
    ///
    /// A batch is what is there, at most [as much as a batch can have](Self::batch): nothing waits for it to be full.
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
            dry: false,
            control: None,
        }));
        let feed = Feed(Arc::clone(&queue));
        (Sender(queue), Self { source: feed, steps: Same, plan: Plan::new() })
    }
}

impl<T> Sender<T> {
    /// Gives an item to the pipeline, and waits if there is no room for it. On a thread of a pool, that worker's other
    /// tasks go on meanwhile, on another thread.
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
    /// If the run has ended, with the item.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        loop {
            let mut queue = lock(&self.0);
            if queue.closed {
                return Err(SendError(item));
            }
            if queue.items.len() < queue.capacity {
                queue.items.push_back(item);
                let control = queue.ring();
                drop(queue);
                if let Some(control) = control {
                    control.ring();
                }
                return Ok(());
            }
            let (promise, handle) = Promise::new();
            queue.waiting.push(promise);
            drop(queue);
            wait::wait(&handle, NO_POOL);
        }
    }
}

/// Nobody's, for who waits for something that no pool runs.
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
        let control = if queue.senders == 0 { queue.ring() } else { None };
        drop(queue);
        if let Some(control) = control {
            control.ring();
        }
    }
}

impl<T> Sealed for Feed<T> {}

impl<T: Send> Source for Feed<T> {
    type Item = T;
    type Handle = Arc<Mutex<Queue<T>>>;

    fn fill(&mut self, batch: &mut Vec<T>, most: usize) -> Filled {
        let mut queue = lock(&self.0);
        let count = most.min(queue.items.len());
        batch.extend(queue.items.drain(..count));
        let waiting = mem::take(&mut queue.waiting);
        let filled = match (count, queue.senders) {
            (0, 0) => Filled::End,
            (0, _) => {
                queue.dry = true;
                Filled::Dry
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
