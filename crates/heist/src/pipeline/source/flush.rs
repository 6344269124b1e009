//! Sources whose batches are sent on before they are full: [`Pipeline::flush_after`].
//!
//! The feed of the [senders](super::Sender) knows how old its items are ([`Queue::is_due`]). Any other source may block while it
//! has yielded some of the items of a batch. So a thread of its own reads it, and sends what it yields to a feed (steps F8 and F9 of
//! `../README.md`). Merged sources have a thread each.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use std::{fmt, mem};

use super::lines::{LineBlocks, LineText, Lines};
use super::queue::Queue;
use super::{Either, Feed, Filled, Items, Merge, Reader, Sender, Source, Tried, Weighed};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::BoxError;
use crate::sync::{Arc, Instant, Mutex, lock};

/// A source for which [`Pipeline::flush_after`] can be set: every one whose items may be sent to another thread. The trait cannot
/// be implemented outside of this crate.
#[diagnostic::on_unimplemented(
    message = "the items of `{Self}` cannot be flushed",
    note = "a stream cannot be, nor a feed that is merged with other sources: send the items to one feed, with clones of its `Sender`"
)]
pub trait Flush: Source {
    /// The source that does not hold items back.
    type Flushed: Source<Item = Self::Item>;

    /// Returns the source that yields a batch that is not full when its oldest item is as old as the limit.
    #[doc(hidden)]
    fn flushed(self, limit: Duration) -> Self::Flushed;
}

impl<T: Send> Flush for Feed<T> {
    type Flushed = Self;

    fn flushed(self, limit: Duration) -> Self {
        lock(&self.queue).set_age_limit(limit);
        self
    }
}

impl<S, W> Flush for Weighed<S, W>
where
    S: Flush,
    W: Fn(&S::Item) -> usize,
{
    type Flushed = Weighed<S::Flushed, W>;

    fn flushed(self, limit: Duration) -> Self::Flushed {
        Weighed { source: self.source.flushed(limit), weigh: self.weigh }
    }
}

impl<S> Flush for ReadAhead<S>
where
    S: Split + Send,
    S::Item: Send,
{
    type Flushed = Self;

    fn flushed(mut self, limit: Duration) -> Self {
        self.feed = self.feed.flushed(limit);
        self
    }
}

/// A source that threads of their own can read, because it is never [`Pending`](Filled::Pending).
#[doc(hidden)]
pub trait Split: Source {
    /// What one thread reads.
    type Part: Source<Item = Self::Item> + Send;

    /// Adds the sources that this one consists of.
    fn split(self, parts: &mut Vec<Self::Part>);
}

/// Implements [`Flush`] for a source that may block.
macro_rules! read_ahead {
    ($([$($parameter:tt)*] $source:ty, $item:ty;)*) => {$(
        impl<$($parameter)*> Split for $source
        where
            Self: Source<Item = $item> + Send,
            $item: Send,
        {
            type Part = Self;

            fn split(self, parts: &mut Vec<Self>) {
                parts.push(self);
            }
        }

        impl<$($parameter)*> Flush for $source
        where
            Self: Source<Item = $item> + Send,
            $item: Send,
        {
            type Flushed = ReadAhead<Self>;

            fn flushed(self, limit: Duration) -> ReadAhead<Self> {
                ReadAhead::new(self).flushed(limit)
            }
        }
    )*};
}

read_ahead! {
    [I: Iterator] Items<I>, I::Item;
    [I: Iterator<Item = Result<T, E>>, T, E: Into<BoxError>] Tried<I>, T;
    [R: std::io::Read] Lines<R>, String;
    [R: std::io::Read, L: LineText + ?Sized] LineBlocks<R, L>, super::LineBlock<L>;
}

impl<S> Split for Merge<S>
where
    S: Split,
{
    type Part = S::Part;

    fn split(self, parts: &mut Vec<S::Part>) {
        self.into_sources().into_iter().for_each(|source| source.split(parts));
    }
}

impl<A, B> Split for Either<A, B>
where
    A: Split,
    B: Split<Item = A::Item>,
{
    type Part = Either<A::Part, B::Part>;

    fn split(self, parts: &mut Vec<Self::Part>) {
        /// Adds the parts of one of the two.
        fn add<S: Split, P>(source: S, parts: &mut Vec<P>, part: impl Fn(S::Part) -> P) {
            let mut own = Vec::new();
            source.split(&mut own);
            parts.extend(own.into_iter().map(part));
        }
        match self {
            Self::Left(source) => add(source, parts, Either::Left),
            Self::Right(source) => add(source, parts, Either::Right),
        }
    }
}

/// Each of the sources is read on a thread of its own.
impl<S> Flush for Merge<S>
where
    S: Split + Send,
    S::Item: Send,
{
    type Flushed = ReadAhead<Self>;

    fn flushed(self, limit: Duration) -> ReadAhead<Self> {
        ReadAhead::new(self).flushed(limit)
    }
}

/// A source that is read on a thread of its own. See [`Pipeline::flush_after`].
pub struct ReadAhead<S: Source> {
    /// What was read.
    feed: Feed<S::Item>,
    /// The source, and what sends its items, until the run begins.
    unread: Option<(S, Sender<S::Item>)>,
    end: Arc<Ending>,
}

/// How the source has ended.
enum End {
    Whole,
    Failed(BoxError),
    Panicked(Box<dyn Any + Send>),
}

/// How the source has ended, or the first of several sources that has failed. What nobody asks for is dropped without a panic.
struct Ending(Mutex<End>);

impl Ending {
    /// Notes how a source has ended. Returns whether it has failed.
    fn note(&self, ended: End) -> bool {
        let has_failed = !matches!(ended, End::Whole);
        let mut end = lock(&self.0);
        let unwanted = match *end {
            End::Whole => mem::replace(&mut *end, ended),
            End::Failed(_) | End::Panicked(_) => ended,
        };
        drop(end);
        contain(|| drop(unwanted));
        has_failed
    }

    fn take(&self) -> End {
        mem::replace(&mut *lock(&self.0), End::Whole)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let end = self.take();
        contain(|| drop(end));
    }
}

/// Reads a source, and sends its items.
#[doc(hidden)]
pub struct FeedingReader<S: Source> {
    /// It is there until the reader is dropped.
    source: Option<S>,
    sender: Sender<S::Item>,
    /// Set before the sender is dropped.
    end: Arc<Ending>,
}

impl<S: Source> ReadAhead<S> {
    fn new(source: S) -> Self {
        let (sender, feed) = Feed::new(1);
        Self { feed, unread: Some((source, sender)), end: Arc::new(Ending(Mutex::new(End::Whole))) }
    }

    /// Returns the source itself, before the run. heist-cluster starts no reader, and cuts batches on a thread of its own.
    fn unread(&mut self) -> Option<&mut S> {
        self.unread.as_mut().map(|(source, _)| source)
    }

    /// Returns what the source has said at its end, all of whose items were taken.
    fn end(&self) -> Filled {
        match self.end.take() {
            End::Whole => Filled::End,
            End::Failed(error) => Filled::Failed(error),
            End::Panicked(payload) => resume_unwind(payload),
        }
    }
}

impl<S> FeedingReader<S>
where
    S: Source + Send,
    S::Item: Send,
{
    /// Sends the items of the source until it has ended, or until nobody wants them any more.
    fn send_all(&mut self) -> End {
        let Some(source) = &mut self.source else { return End::Whole };
        let sender = &self.sender;
        let mut next = Vec::with_capacity(1);
        loop {
            // A reader may go on for ever without a line end.
            let filled = source.fill(&mut next, 1, &|| sender.is_closed());
            let is_open = match next.pop().map(|item| sender.send(item)) {
                Some(Ok(())) => true,
                Some(Err(unsent)) => {
                    contain(|| drop(unsent));
                    false
                }
                None => !sender.is_closed(),
            };
            match filled {
                _ if !is_open => return End::Whole,
                Filled::More => {}
                Filled::Failed(error) => return End::Failed(error),
                Filled::End | Filled::Pending => return End::Whole,
            }
        }
    }
}

impl<S> Reader for FeedingReader<S>
where
    S: Source + Send,
    S::Item: Send,
{
    fn read(mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.send_all()));
        // F9.
        if self.end.note(ended.unwrap_or_else(End::Panicked)) {
            self.sender.end();
        }
    }
}

/// Drops the source. Its panics end here.
impl<S: Source> Drop for FeedingReader<S> {
    fn drop(&mut self) {
        if let Some(source) = self.source.take() {
            source.drop_each();
        }
    }
}

impl<S: Source> Sealed for ReadAhead<S> {}

impl<S> Source for ReadAhead<S>
where
    S: Split + Send,
    S::Item: Send,
{
    type Item = S::Item;
    type Handle = Arc<Mutex<Queue<S::Item>>>;
    type Reader = FeedingReader<S::Part>;

    fn fill(&mut self, batch: &mut Vec<S::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        if let Some(source) = self.unread() {
            return source.fill(batch, most, stop);
        }
        match self.feed.fill(batch, most, stop) {
            Filled::End => self.end(),
            filled => filled,
        }
    }

    fn next(&mut self, into: &mut Vec<S::Item>, stop: &impl Fn() -> bool) -> Filled {
        if let Some(source) = self.unread() {
            return source.next(into, stop);
        }
        match self.feed.next(into, stop) {
            Filled::End => self.end(),
            filled => filled,
        }
    }

    fn settle(&mut self) {
        self.feed.settle();
    }

    fn size(&self) -> Option<u64> {
        self.unread.as_ref()?.0.size()
    }

    /// No more is read ahead than fits into a batch.
    fn set_batch(&mut self, items: usize) {
        lock(&self.feed.queue).set_capacity(items.max(1));
        self.feed.set_batch(items);
    }

    fn deadline(&self) -> Option<Instant> {
        self.feed.deadline()
    }

    fn take_readers(&mut self, readers: &mut Vec<FeedingReader<S::Part>>) {
        let Some((source, sender)) = self.unread.take() else { return };
        let mut parts = Vec::new();
        source.split(&mut parts);
        readers.extend(parts.into_iter().map(|part| FeedingReader {
            source: Some(part),
            sender: sender.clone(),
            end: Arc::clone(&self.end),
        }));
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        self.feed.attach(control)
    }

    fn close(queue: &Self::Handle) {
        Queue::close(queue);
    }

    fn refuse(queue: &Self::Handle) {
        Queue::refuse(queue);
    }

    fn drop_each(self) {
        let Self { feed, unread, end } = self;
        feed.drop_each();
        if let Some((source, _)) = unread {
            source.drop_each();
        }
        drop(end);
    }
}

impl<S: Source> fmt::Debug for ReadAhead<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").finish_non_exhaustive()
    }
}

impl<S: Source> fmt::Debug for FeedingReader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedingReader").finish_non_exhaustive()
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Sends a [batch](Self::batch) on that is not full when its oldest item has waited for `limit`.
    ///
    /// Without it, a batch of an iterator or a reader is processed when it is full, however slowly the items come, and a batch of
    /// a [fed](Pipeline::fed) pipeline as soon as a worker is free, however few there are. With it, both wait for more items, but
    /// no longer than that. So slow items have their results in time, and items that come together are processed together, by
    /// [`map_batch`](Self::map_batch) for example.
    ///
    /// The source is then given batches by a thread of its own, as with [`Distribution::Hybrid`] unless another
    /// [distribution](Self::distribute) is set. An iterator or a reader has a second thread, which reads it. It may have read a batch
    /// and one item more than are [in flight](Self::in_flight). If the pipeline has [weights](Self::weigh), a batch may be sent on
    /// sooner. Of [merged](Self::merge) iterators and readers, each is read by a thread of its own, and may have read one item more.
    ///
    /// [`Distribution::Hybrid`]: crate::pipeline::Distribution::Hybrid
    ///
    /// ```
    /// use std::num::NonZero;
    /// use std::time::Duration;
    /// use heist::pipeline::Pipeline;
    ///
    /// // Readings are stored 100 at a time, or as many as have come after 5 ms.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let (sender, readings) = Pipeline::fed(NonZero::new(1000).unwrap());
    /// let (stored, is_stored) = std::sync::mpsc::channel();
    /// let sensor = std::thread::spawn(move || {
    ///     sender.send(21.5).unwrap();
    ///     // Nothing else comes, and the sender stays open. The reading is stored nevertheless.
    ///     is_stored.recv().unwrap()
    /// });
    /// readings
    ///     .batch(100)
    ///     .flush_after(Duration::from_millis(5))
    ///     .map_batch(|rows: &mut Vec<f64>| rows.drain(..).collect::<Vec<_>>())
    ///     .run(&pool, |rows| stored.send(rows).unwrap())?;
    /// assert_eq!(sensor.join().unwrap(), [21.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The output of another program is shown while it runs:
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::process::{Command, Stdio};
    /// use std::time::Duration;
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut program = Command::new("sh").args(["-c", "echo one; echo two"]).stdout(Stdio::piped()).spawn()?;
    /// let lines = Pipeline::lines(program.stdout.take().unwrap()).flush_after(Duration::from_millis(50));
    /// let mut shown = Vec::new();
    /// lines.ordered().run(&pool, |line| shown.push(line))?;
    /// assert_eq!(shown, ["one", "two"]);
    /// # program.wait()?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_after(self, limit: Duration) -> Pipeline<S::Flushed, G>
    where
        S: Flush,
    {
        let Self { source, steps, mut config } = self;
        config.flushes = true;
        Pipeline { source: source.flushed(limit), steps, config }
    }
}
