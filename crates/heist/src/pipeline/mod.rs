//! Processes streams of items on the workers of a pool, in batches.
//!
//! A [`Pipeline`] takes items from an iterator, a reader or a [`Sender`], cuts them into batches, and
//! processes the batches on the workers of a pool. It passes the results to a closure on the calling thread,
//! or returns them through an iterator. They come in the order of the items, or as soon as they are ready.
//!
//! ```
//! use heist::pipeline::Pipeline;
//!
//! let pool = heist::Pool::builder().workers(4).build()?;
//! let text = "one\ntwo\nthree\nfour\n";
//! let mut lengths = Vec::new();
//! let report = Pipeline::lines(text.as_bytes())
//!     .batch(2)
//!     .map(|line: String| line.len())
//!     .ordered()
//!     .run(&pool, |length| lengths.push(length))?;
//! assert_eq!(lengths, [3, 3, 5, 4]);
//! assert_eq!(report.batches, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! * Each item is processed once. An item is [in flight](Pipeline::in_flight) from the moment it is taken
//!   from the source until its results are delivered. The number of batches in flight never exceeds its
//!   bound, so that memory use does not grow with the length of the input.
//! * The first error or panic, in the source, a stage or the sink, ends the run with a [`PipelineError`] that
//!   says where it occurred, unless [`on_error`](Pipeline::on_error) says otherwise for the errors of a stage. If the
//!   pipeline is [ordered](Pipeline::ordered), every result of the batches before the one that failed has been
//!   delivered. (If the source failed, so have those of the items before it, and if the sink failed, those before.)
//! * Items, results and functions that the run has no more use for are dropped one by one, also while a function of
//!   the user panics. If a drop panics, the others happen nevertheless. (A source that owns several items is dropped as
//!   one value, and so is the iterator that a function of [`flat_map`](Pipeline::flat_map) has returned: if two of the
//!   items panic, the process aborts, as it does when a `Vec` of them is dropped.)
//! * There is no polling. While the source or the sink blocks, the pipeline uses no processor time. It keeps
//!   no worker of the pool waiting, except for the one that is inside of a blocking source.
//! * If the consuming thread has waited for a result for longer than a millisecond, it gets the next one at
//!   once. Under load, a result is held back for at most a millisecond, so that the thread is not woken for
//!   each batch.
//!
//! # Sources and sinks
//!
//! | items come from | |
//! |---|---|
//! | an iterator, also one of results | [`Pipeline::new`], [`Pipeline::try_new`] |
//! | the lines of a reader, one by one or in blocks | [`Pipeline::lines`], [`Pipeline::line_blocks`] |
//! | threads and tasks that send them | [`Pipeline::fed`] |
//! | a `Stream`, with the feature `futures` | `Pipeline::from_stream`, `Pipeline::try_from_stream` |
//! | several sources in turn | [`Pipeline::merge`], [`Pipeline::merge_all`] |
//!
//! [`Pipeline::chunks`] and [`Pipeline::chunks_timeout`] put consecutive items together. Results go to a closure
//! ([`Pipeline::run`], [`Pipeline::try_run`]), to two of them ([`Pipeline::tee`]), to an iterator ([`Pipeline::results`]), or, with the
//! feature `futures`, to an async closure (`Pipeline::run_async`) or a `Stream` (`Results::into_stream`).
//!
//! # Choosing a distribution
//!
//! Use [`Distribution::Pull`], unless the source blocks for long. Then use one of those that run the source
//! on a thread of its own.

// The path of an item: `source` cuts batches, `dispatch` gets them to the workers, `run` processes them by
// the `steps`, and `deliver` gets the results to the consumer. `control` is what all of these agree on, and README.md is its
// protocol. It is a module of its own because it knows nothing about items and results.
mod bits;
mod config;
mod control;
mod deliver;
mod dispatch;
mod error;
mod progress;
mod report;
mod run;
mod source;
pub mod steps;

use crate::api::pool::Pool;
use crate::cancel::CancelToken;
#[doc(hidden)]
pub use deliver::Outcome;
#[cfg(feature = "futures")]
pub use deliver::ResultStream;
pub use deliver::{Results, Tee};
pub use dispatch::Distribution;
pub use error::{PipelineError, Stage};
pub use progress::Progress;
pub use report::{Report, WorkerReport};
#[doc(hidden)]
pub use source::{Applied, Batches, Cut, Numbered, Parts, Stages};
pub use source::{
    BlockLines, Chunks, Either, Feed, Flush, Items, LineBlock, LineBlocks, LineError, LineText,
    Lines, Merge, ReadAhead, SendError, SendFuture, SendTimeoutError, Sender, Source, Tried,
    TrySendError, Weighed,
};
#[cfg(feature = "futures")]
pub use source::{StreamItems, TriedStream};
pub use steps::{Dead, DeadLetter, Retry, Same, Skip, Steps, Stop};

use config::Config;
use steps::BoxError;

/// The parts of the protocol that the models explore.
#[cfg(all(test, loom))]
pub(crate) mod models {
    use super::control::Token;
    pub(crate) use super::control::{
        AfterPull, Control, Delivered, NextPull, PullPermission, Pulled, Rules, SleepKind,
        TaskFactory, Turn,
    };
    use super::deliver::BatchEntry;
    pub(crate) use super::source::{Feed, SendError, Sender, Source};

    /// Returns a token for some batch.
    pub(crate) fn token() -> Token {
        let entry = BatchEntry { number: 0, weight: 0, first: 0, items: 1, results: 0 };
        Token { section: 1, group: 0, entry }
    }

    /// Returns a feed with room for one item, and its sender.
    pub(crate) fn fed<T>() -> (Sender<T>, Feed<T>) {
        let (sender, pipeline) = super::Pipeline::fed(std::num::NonZero::<usize>::MIN);
        (sender, pipeline.source)
    }
}

/// Keeps traits from being implemented outside of this crate.
mod sealed {
    pub trait Sealed {}
}

/// A source of items, the stages that process them on a pool, and the settings. See the [module](self).
///
/// Nothing happens until the pipeline is [run](Self::run) or [iterated over](Self::results).
///
/// ```
/// use heist::pipeline::Pipeline;
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut squares = Vec::new();
/// Pipeline::new(1..=5).map(|n| n * n).ordered().run(&pool, |square| squares.push(square))?;
/// assert_eq!(squares, [1, 4, 9, 16, 25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a pipeline does nothing until it is run"]
pub struct Pipeline<S, G = Same> {
    source: S,
    steps: G,
    config: Config,
}

impl<S: Source, G> Pipeline<S, G> {
    /// Sets the largest number of items in a batch. The default is 64. A batch should be some microseconds of
    /// work.
    ///
    /// When the items come from an iterator, only the last batch is shorter. If the iterator yields items
    /// rarely, use 1 or [`flush_after`](Self::flush_after): a batch is not processed before it is full.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(0..25).batch(10).run(&pool, |_| ())?;
    /// assert_eq!(report.batches, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch(mut self, items: usize) -> Self {
        self.config.set_batch(items);
        self
    }

    /// Sets the largest number of batches in flight. The default is 256, or 64 for each worker of the pool if that is
    /// more (96 if results are delivered in [order](Self::ordered)).
    ///
    /// A batch is in flight from before its first item is taken from the source until its last result has
    /// been delivered. If a batch takes long in an [ordered](Self::ordered) pipeline, the batches after it
    /// wait, and they count as well. The default may be much memory if an item is large, as a
    /// [block of lines](Pipeline::line_blocks) is: set fewer, or [weigh](Self::weigh) the items.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(0..100).batch(1).in_flight(3).run(&pool, |_| ())?;
    /// assert!(report.largest_in_flight <= 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_flight(mut self, batches: usize) -> Self {
        self.config.in_flight = Some(batches);
        self
    }

    /// Sets how batches get to the workers. The default is [`Distribution::Pull`].
    ///
    /// ```
    /// use heist::pipeline::{Distribution, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(0..100).distribute(Distribution::Hybrid).run(&pool, |_| ())?;
    /// assert_eq!(report.items, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn distribute(mut self, distribution: Distribution) -> Self {
        self.config.distribution = distribution;
        self
    }

    /// Sets whether a worker that has nothing to do takes batches from the queue of another worker. The
    /// default is `true`. With `false`, each worker processes only its own batches. This is meant for
    /// comparisons.
    ///
    /// ```
    /// use heist::pipeline::{Distribution, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let pipeline = Pipeline::new(0..10).batch(1).distribute(Distribution::RoundRobin).steal(false);
    /// let report = pipeline.run(&pool, |_| ())?;
    /// assert!(report.per_worker.iter().all(|worker| worker.batches == 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn steal(mut self, steals: bool) -> Self {
        self.config.steals = steals;
        self
    }

    /// Delivers the results in the order of the items. By default, they are delivered as soon as they are
    /// ready.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let mut results = Vec::new();
    /// Pipeline::new(0..1000).batch(7).ordered().run(&pool, |n| results.push(n))?;
    /// assert!(results.is_sorted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ordered(mut self) -> Self {
        self.config.ordered = true;
        self
    }

    /// Ends the run when the token is cancelled. Calls of the user's functions that have begun are finished. No
    /// further item is taken from the source, processed or passed to the sink: all of them are dropped, even
    /// in the middle of a batch.
    ///
    /// The run ends at once if it waits: for senders, for room or for results. A call of the user's code is not
    /// interrupted. So if a function of a stage, the iterator, or the reader blocks, [`run`](Self::run) ends
    /// when that call returns, because it may borrow from the caller.
    ///
    /// Where a source may block for ever, as the standard input does, read it on a thread of your own and send what it
    /// returns: the run then waits for the [sender](Self::fed), and not for the source. Or use
    /// [`results`](Self::results), which does not wait.
    ///
    /// ```no_run
    /// use std::num::NonZero;
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let stop = heist::CancelToken::new(); // cancelled by the handler of Ctrl-C
    /// let (sender, lines) = Pipeline::fed(NonZero::new(1000).unwrap());
    /// std::thread::spawn(move || {
    ///     // Ends when the input does, or with the first line after the end of the run.
    ///     std::io::stdin().lines().try_for_each(|line| sender.send(line).ok())
    /// });
    /// lines.cancel_on(&stop).try_map(|line| line).run(&pool, |line| println!("{line}"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, PipelineError};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let token = heist::CancelToken::new();
    /// let endless = Pipeline::new(0_u64..).cancel_on(&token);
    /// let error = endless.run(&pool, |n| if n == 1000 { token.cancel() }).unwrap_err();
    /// assert!(matches!(error, PipelineError::Cancelled { .. }));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.config.token = Some(token.clone());
        self
    }
}

impl<S, G> Pipeline<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Runs the pipeline to its end, and passes each result to the sink on the calling thread.
    ///
    /// If a worker of a pool calls it, that worker's other tasks run on another thread meanwhile.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut sum = 0;
    /// Pipeline::new(0..1000).map(|n| n % 7).run(&pool, |n| sum += n)?;
    /// assert_eq!(sum, 2997);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] if the settings are invalid, if the source, a stage or the sink fails or
    /// panics, or if the run is cancelled.
    pub fn run(self, pool: &Pool, mut sink: impl FnMut(G::Out)) -> Result<Report, PipelineError> {
        self.try_run(pool, move |result| {
            sink(result);
            Ok::<(), BoxError>(())
        })
    }

    /// Like [`run`](Self::run), with a sink that may fail. Its error ends the run.
    ///
    /// ```
    /// use std::io::Write;
    /// use heist::pipeline::{Pipeline, Stage};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut small = [0_u8; 4];
    /// let mut file = &mut small[..];
    /// let lines = Pipeline::new(0..10).batch(1).ordered();
    /// let error = lines.try_run(&pool, |n| write!(file, "{n}.")).unwrap_err();
    /// assert_eq!((error.stage(), error.batch()), (Some(Stage::Sink), Some(2)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] if the settings are invalid, if the source, a stage or the sink fails or
    /// panics, or if the run is cancelled.
    pub fn try_run<E>(
        self,
        pool: &Pool,
        sink: impl FnMut(G::Out) -> Result<(), E>,
    ) -> Result<Report, PipelineError>
    where
        E: Into<BoxError>,
    {
        self.config.check()?;
        run::run_to_end(self, pool, sink)
    }

    /// Starts the pipeline, and returns an iterator over its results. The pool processes batches ahead of the
    /// iterator, until the bound of what may be [in flight](Self::in_flight) is reached.
    ///
    /// Dropping the iterator ends the run, without waiting for it. Items that are being processed are finished,
    /// and the other ones are dropped.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let squares = Pipeline::new(1_u64..).map(|n| n * n).ordered().results(&pool)?;
    /// let large = squares.map(Result::unwrap).find(|square| *square > 500);
    /// assert_eq!(large, Some(529));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] if the settings are invalid.
    pub fn results(self, pool: &Pool) -> Result<Results<G::Out>, PipelineError>
    where
        S: 'static,
        S::Item: 'static,
        G: 'static,
        G::Out: 'static,
    {
        self.config.check()?;
        Ok(Results::start(self, pool.any_pool()))
    }
}

/// Runs the pipeline on the pool that this thread belongs to, or else on the [global](Pool::global) one. If
/// the settings are invalid, the first item is the error.
///
/// ```
/// use heist::pipeline::Pipeline;
///
/// let mut sum = 0;
/// for square in Pipeline::new(1..=4).map(|n| n * n) {
///     sum += square?;
/// }
/// assert_eq!(sum, 30);
/// # Ok::<(), heist::pipeline::PipelineError>(())
/// ```
impl<S, G> IntoIterator for Pipeline<S, G>
where
    S: Source + Send + 'static,
    S::Item: Send + 'static,
    G: Steps<S::Item> + 'static,
    G::Out: Send + 'static,
{
    type Item = Result<G::Out, PipelineError>;
    type IntoIter = Results<G::Out>;

    fn into_iter(self) -> Results<G::Out> {
        Results::start_here(self)
    }
}
