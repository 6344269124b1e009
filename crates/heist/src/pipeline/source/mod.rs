//! Where the items of a pipeline come from: iterators (`iter`), readers (`lines`), streams (`stream`) and senders (`sender`, `queue`,
//! `feed`), each with weights or without (`weighed`). Several sources can be one (`merge`), and items be put together (`chunks`).
//! `flush` reads sources on threads of their own. `batcher` cuts the items into batches, and `pull` is how a thread of the run does
//! so. `parts` takes a pipeline apart for heist-cluster.

mod batcher;
mod chunks;
mod feed;
mod flush;
mod iter;
mod lines;
mod merge;
mod parts;
mod pull;
mod queue;
mod send_error;
mod sender;
#[cfg(feature = "futures")]
mod stream;
mod weighed;

use super::control::Control;
use super::run::BoxError;
use super::sealed::Sealed;
use crate::panic::contain;
use crate::sync::{Arc, Instant};
pub(super) use batcher::Batcher;
pub use chunks::Chunks;
pub use feed::Feed;
pub use flush::{Flush, ReadAhead};
pub use iter::{Items, Tried};
pub use lines::{BlockLines, LineBlock, LineBlocks, LineError, LineText, Lines};
pub use merge::{Either, Merge};
pub use parts::{Applied, Batches, Cut, Numbered, Parts, Stages};
pub use send_error::{SendError, SendTimeoutError, TrySendError};
pub use sender::{SendFuture, Sender};
#[cfg(feature = "futures")]
pub use stream::{StreamItems, TriedStream};
pub use weighed::Weighed;

/// The source of a pipeline's items.
///
/// Sources are made by [`Pipeline::new`](super::Pipeline::new) and the other constructors of
/// [`Pipeline`](super::Pipeline). The trait cannot be implemented outside of this crate.
///
/// ```
/// use heist::Pool;
/// use heist::pipeline::{Pipeline, PipelineError, Source};
///
/// /// Counts the items of a pipeline without stages, whatever its source.
/// fn count<S>(pool: &Pool, pipeline: Pipeline<S>) -> Result<u64, PipelineError>
/// where
///     S: Source + Send,
///     S::Item: Send,
/// {
///     Ok(pipeline.run(pool, |_| ())?.items)
/// }
///
/// let pool = Pool::builder().workers(2).build()?;
/// assert_eq!(count(&pool, Pipeline::new(0..10))?, 10);
/// assert_eq!(count(&pool, Pipeline::lines("a\nb\n".as_bytes()))?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: Sealed {
    /// The type of the items.
    type Item;

    /// Whether each item has a weight.
    #[doc(hidden)]
    const WEIGHED: bool = false;

    /// Adds at least one item and at most `most` items to a batch, unless there are none or it is to `stop`.
    /// It may block, panic, and run the user's code.
    #[doc(hidden)]
    fn fill(
        &mut self,
        batch: &mut Vec<Self::Item>,
        most: usize,
        stop: &impl Fn() -> bool,
    ) -> Filled;

    /// Adds the next item, if there is one, for a batch that is cut by weight, unless it is to `stop`.
    #[doc(hidden)]
    fn next(&mut self, into: &mut Vec<Self::Item>, stop: &impl Fn() -> bool) -> Filled {
        self.fill(into, 1, stop)
    }

    /// Tells the source that no further item is taken for now. Called after some calls of `next`.
    #[doc(hidden)]
    fn settle(&mut self) {}

    /// Returns how many items the source has at most, if it knows.
    #[doc(hidden)]
    fn size(&self) -> Option<u64> {
        None
    }

    /// Tells the source the number of items in a batch. Called once, before the run.
    #[doc(hidden)]
    fn set_batch(&mut self, _: usize) {}

    /// Returns when the source, which has said [`Filled::Pending`], has items for a batch even if no other one comes.
    #[doc(hidden)]
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What a thread of its own does while the run lasts: [`NoReader`], or `FeedingReader`.
    #[doc(hidden)]
    type Reader: Reader;

    /// Adds what threads of their own are to do. Called once, when the run begins.
    #[doc(hidden)]
    fn take_readers(&mut self, _: &mut Vec<Self::Reader>) {}

    /// Returns how many sources this one consists of that have not ended.
    #[doc(hidden)]
    fn parts(&self) -> usize {
        1
    }

    /// Returns the weight of an item.
    #[doc(hidden)]
    fn weight(&self, _: &Self::Item) -> u64 {
        0
    }

    /// Reaches the senders of the source when the run has ended, whichever thread has the source.
    #[doc(hidden)]
    type Handle: Send + Sync;

    /// Tells the source which run to notify of new items after a [`Filled::Pending`].
    #[doc(hidden)]
    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle;

    /// Tells the senders of the source that the run has ended.
    #[doc(hidden)]
    fn close(_: &Self::Handle) {}

    /// Has the senders of the source fail, because the run has failed. It drops no item.
    #[doc(hidden)]
    fn refuse(_: &Self::Handle) {}

    /// Drops the parts of the source one by one, because the drop of each may panic. The panics end here.
    #[doc(hidden)]
    fn drop_each(self)
    where
        Self: Sized,
    {
        contain(|| drop(self));
    }
}

/// What a thread does that belongs to a source.
#[doc(hidden)]
pub trait Reader: Send {
    /// Reads the source to its end, or until the run has ended. Panics of the user's code end here.
    fn read(self);
}

/// The reader of a source that needs no thread.
#[doc(hidden)]
#[derive(Debug)]
pub enum NoReader {}

impl Reader for NoReader {
    fn read(self) {
        match self {}
    }
}

/// What a source says after it has added items to a batch.
#[derive(Debug)]
pub enum Filled {
    /// There may be more items. If none was added, the source was to stop.
    More,
    /// There are no items at the moment. The source will notify the run when there are some, or when it has
    /// ended.
    Pending,
    /// There are no more items.
    End,
    /// The source failed, and there are no more items. If only one item was asked for, none was added: a failure that is
    /// found behind an item comes with the next call.
    Failed(BoxError),
}
