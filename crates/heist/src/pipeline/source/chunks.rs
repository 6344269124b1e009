//! Items that are put together in their order: [`Pipeline::chunks`].
//!
//! They are put together where they are taken from the source, because that is the only place where one thread at a time sees all of
//! them in order. A chunk is an item of the pipeline from there on, so that nothing else has to know of chunks: not the bounds, not
//! the order of the results, and not the stages.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::{Filled, Flush, Source};
use crate::panic::{contain, contain_each};
use crate::pipeline::Pipeline;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::sync::{Arc, Instant};

/// A source whose items are put together. See [`Pipeline::chunks`].
///
/// ```
/// use heist::pipeline::{Chunks, Items, Pipeline};
///
/// fn weeks(days: Vec<f64>) -> Pipeline<Chunks<Items<std::vec::IntoIter<f64>>>> {
///     Pipeline::new(days).chunks(7)
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(weeks(vec![0.5; 15]).run(&pool, |_| ())?.items, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Chunks<S: Source> {
    source: S,
    /// The number of items in a chunk, at most.
    size: usize,
    /// Whether the source says when a chunk is complete that has fewer items.
    is_timed: bool,
    /// The items of a chunk that is not complete.
    chunk: Vec<S::Item>,
    /// What comes after the last chunk.
    after: Option<Result<Filled, Box<dyn Any + Send>>>,
}

impl<S: Source> Chunks<S> {
    fn new(source: S, size: usize, is_timed: bool) -> Self {
        // Zero is an error when the run begins.
        Self { source, size: size.max(1), is_timed, chunk: Vec::new(), after: None }
    }

    /// Adds the chunk to the batch. The next one is expected to be as long.
    fn pass_on(&mut self, batch: &mut Vec<Vec<S::Item>>) {
        let length = if self.after.is_none() { self.chunk.len() } else { 0 };
        batch.push(mem::replace(&mut self.chunk, Vec::with_capacity(length)));
    }
}

impl<S: Source> Sealed for Chunks<S> {}

impl<S: Source> Source for Chunks<S> {
    type Item = Vec<S::Item>;
    type Handle = S::Handle;
    type Reader = S::Reader;

    fn fill(
        &mut self,
        batch: &mut Vec<Vec<S::Item>>,
        most: usize,
        stop: &impl Fn() -> bool,
    ) -> Filled {
        let full = batch.len() + most;
        while batch.len() < full {
            match self.after.take() {
                None => {}
                Some(Ok(filled)) => return filled,
                Some(Err(payload)) => resume_unwind(payload),
            }
            let before = self.chunk.len();
            let (source, chunk) = (&mut self.source, &mut self.chunk);
            let missing = self.size - before;
            let filled = catch_unwind(AssertUnwindSafe(|| source.fill(&mut *chunk, missing, stop)));
            let (length, is_pending) = (chunk.len(), matches!(filled, Ok(Filled::Pending)));
            match filled {
                // It was to stop.
                Ok(Filled::More) if length == before => return Filled::More,
                Ok(Filled::More | Filled::Pending) => {}
                // The last chunk is passed on first.
                ended => self.after = Some(ended),
            }
            let is_complete = self.after.is_some() || (self.is_timed && length > before);
            if length == self.size || (is_complete && length > 0) {
                self.pass_on(batch);
            }
            if is_pending {
                return Filled::Pending;
            }
        }
        Filled::More
    }

    fn settle(&mut self) {
        self.source.settle();
    }

    fn size(&self) -> Option<u64> {
        let items = self.source.size().filter(|_| !self.is_timed)?;
        Some(items.div_ceil(self.size as u64))
    }

    /// What the source is asked for at once is a chunk.
    fn set_batch(&mut self, _: usize) {
        self.source.set_batch(self.size);
    }

    fn deadline(&self) -> Option<Instant> {
        self.source.deadline()
    }

    fn take_readers(&mut self, readers: &mut Vec<S::Reader>) {
        self.source.take_readers(readers);
    }

    fn attach(&mut self, control: &Arc<Control>) -> S::Handle {
        self.source.attach(control)
    }

    fn close(handle: &S::Handle) {
        S::close(handle);
    }

    fn refuse(handle: &S::Handle) {
        S::refuse(handle);
    }

    fn drop_each(self) {
        let Self { source, chunk, after, .. } = self;
        source.drop_each();
        contain_each(chunk);
        contain(|| drop(after));
    }
}

impl<S: Source> fmt::Debug for Chunks<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<S: Source> Pipeline<S> {
    /// Puts each `items` consecutive items into a `Vec`: the first ones, the next ones, and so on. The last chunk may be shorter.
    /// (Stream processing calls these tumbling windows of a count.)
    ///
    /// A chunk consists of items that follow each other in the source, whatever batch they would be in, and is made before the
    /// first stage. From there on it is an item of the pipeline: stages are given whole chunks, and [`PipelineError::item`] and the
    /// [`Report`] count chunks. [`batch`](Self::batch) counts chunks as well. Unless that is set, a batch has as many chunks as
    /// contain 64 items, or one. A chunk that is not complete is not [in flight](Self::in_flight) and has no
    /// [weight](Self::weigh).
    ///
    /// If the source fails or panics, the items before that are the last chunk, which is processed as any other one.
    ///
    /// To process the items of a batch together, wherever the batch ends, use [`map_batch`](Self::map_batch).
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Rows are inserted a thousand at a time.
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let insert = |rows: Vec<u32>| rows.len(); // one statement
    /// let mut inserted = Vec::new();
    /// Pipeline::new(0..2500).chunks(1000).map(insert).ordered().run(&pool, |rows| inserted.push(rows))?;
    /// assert_eq!(inserted, [1000, 1000, 500]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The run fails with [`PipelineError::ZeroChunk`] if `items` is 0, and with a [`PipelineError::Misplaced`] if the pipeline has
    /// [weights](Self::weigh) or is [flushed](Self::flush_after) already.
    ///
    /// [`PipelineError::item`]: crate::pipeline::PipelineError::item
    /// [`PipelineError::ZeroChunk`]: crate::pipeline::PipelineError::ZeroChunk
    /// [`PipelineError::Misplaced`]: crate::pipeline::PipelineError::Misplaced
    /// [`Report`]: crate::pipeline::Report
    pub fn chunks(self, items: usize) -> Pipeline<Chunks<S>> {
        let Self { source, steps, mut config } = self;
        config.replace_source("chunks");
        config.set_chunk(items);
        Pipeline { source: Chunks::new(source, items, false), steps, config }
    }

    /// Like [`chunks`](Self::chunks), but a chunk is also complete when its first item has waited for `limit`. So a chunk has from
    /// one item to `items` of them: no chunk is empty.
    ///
    /// The time of an item begins when the source has yielded it, or a sender has sent it. It ends late if there is no room for
    /// another batch [in flight](Self::in_flight). A chunk is sent on at once: a batch has several only if these are there.
    ///
    /// As with [`flush_after`](Self::flush_after), an iterator or a reader is read by a thread of its own, up to one chunk and one
    /// item ahead. If the feed of a [fed](Pipeline::fed) pipeline has room for fewer items, a chunk has no more than these.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use std::time::Duration;
    /// use heist::pipeline::Pipeline;
    ///
    /// // Messages are sent to a phone together, if they come within a fifth of a second.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let (sender, messages) = Pipeline::fed(NonZero::new(100).unwrap());
    /// ["hello", "are you there?"].map(|text| sender.send(text).unwrap());
    /// drop(sender);
    /// let mut sent = Vec::new();
    /// messages
    ///     .chunks_timeout(20, Duration::from_millis(200))
    ///     .map(|texts| texts.join("\n"))
    ///     .run(&pool, |text| sent.push(text))?;
    /// assert_eq!(sent, ["hello\nare you there?"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chunks_timeout(self, items: usize, limit: Duration) -> Pipeline<Chunks<S::Flushed>>
    where
        S: Flush,
    {
        let Self { source, steps, mut config } = self;
        config.replace_source("chunks_timeout");
        config.set_chunk(items);
        config.flushes = true;
        Pipeline { source: Chunks::new(source.flushed(limit), items, true), steps, config }
    }
}
