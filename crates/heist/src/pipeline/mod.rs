//! Streams of items through the workers of a pool, in batches.
//!
//! A [`Pipeline`] takes items from an iterator, a reader or a [`Sender`], cuts them into batches, has the workers of a
//! pool process them, and gives the results to a closure on the thread that called, or to an iterator: as they come, or
//! in the order of the items.
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
//! # What holds
//!
//! * Each item is processed once. What is [in flight](Pipeline::in_flight), that is to say taken from the source while
//!   its results are not delivered, never exceeds its bound; so memory does not grow with the length of the input.
//! * The first error or panic, in the source, a stage or the sink, ends the run with a [`PipelineError`] that says
//!   where. In order, everything before it has been delivered.
//! * Nothing ticks: while the source blocks, or the sink, the pipeline uses no processor time, and no worker of the
//!   pool waits for it, but for the one that is inside of a source which blocks.
//! * A result is delivered at once if the thread that waits for it had to wait for long; under load, after at most
//!   a millisecond, so that it is not woken for each of them.
//!
//! # Which distribution
//!
//! [`Distribution::Pull`], unless the source blocks for long: then one of those that give it a thread of its own.

// In the order in which an item meets them.
mod plan;
mod error;
mod report;

mod source;
mod feed;
mod cut;
mod lane;
mod desk;
mod control;
mod asleep;
mod frame;
mod producer;
mod pull;
mod stage;
mod driver;
mod mail;
mod deliver;
mod run;
mod results;

use crate::api::pool::Pool;
use crate::cancel::CancelToken;
pub use error::{PipelineError, Stage};
pub use feed::{Feed, SendError, Sender};
pub use plan::Distribution;
pub use report::{Report, WorkerReport};
pub use results::Results;
pub use source::{Items, Source, Tried, Weighed};
pub use stage::{Map, MapBatch, Same, Steps, TryMap};

use plan::Plan;
use stage::Complaint;

/// What the models look at.
#[cfg(all(test, loom))]
pub(crate) mod models {
    pub(crate) use super::control::Control;
    pub(crate) use super::desk::{After, Catch, Freed, Hire, Rules};
}

/// Nobody outside can implement what has this above it.
mod sealed {
    pub trait Sealed {}
}

/// Items on their way through a pool: see the [module](self).
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
    plan: Plan,
}

impl<S: Source, G> Pipeline<S, G> {
    /// At most so many items in a batch: 64, if you do not say. It should be some microseconds of work.
    ///
    /// From an iterator, a batch is only shorter at the end: where items are few and far between, take 1.
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
        self.plan.batch = items;
        self
    }

    /// At most so many batches in flight: 256, if you do not say.
    ///
    /// A batch is in flight from before its first item is taken from the source until its last result has been
    /// delivered. If a batch takes its time in an [ordered](Self::ordered) pipeline, those after it wait, and count.
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
        self.plan.in_flight = batches;
        self
    }

    /// How batches get to the workers: [`Distribution::Pull`], if you do not say.
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
        self.plan.distribution = distribution;
        self
    }

    /// May a worker that has nothing to do take batches from another's queue? Yes, if you do not say. Without it, each
    /// does what was given to it: for comparison.
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
        self.plan.steals = steals;
        self
    }

    /// Results come in the order of the items. If not, they come when they are there.
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
        self.plan.ordered = true;
        self
    }

    /// Ends the run when the token is cancelled: batches that are running end, and those that are not are dropped.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, PipelineError};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let token = heist::CancelToken::new();
    /// let endless = Pipeline::new(0_u64..).cancel_on(&token);
    /// let error = endless.run(&pool, |n| if n == 1000 { token.cancel() }).unwrap_err();
    /// assert!(matches!(error, PipelineError::Cancelled));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.plan.token = Some(token.clone());
        self
    }

    /// Bounds the weight in flight as well: bytes, for example. A batch ends where the next item would go beyond the
    /// limit. An item that is heavier than the limit goes alone. One item more than that may be out of the source: the one
    /// that has been weighed, and for which there is no room yet.
    ///
    /// Where results are not [ordered](Self::ordered), heavy batches are processed before light ones, so that none of
    /// them is left for the end.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let pages = (1..100).map(|n| vec![0_u8; n * 100]);
    /// let report = Pipeline::new(pages).weigh(|page| page.len(), 20_000).run(&pool, |_| ())?;
    /// assert!(report.largest_weight <= 20_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weigh<W>(self, weigh: W, limit: usize) -> Pipeline<Weighed<S, W>, G>
    where
        W: Fn(&S::Item) -> usize,
    {
        let Self { source, steps, mut plan } = self;
        plan.weight = Some(limit);
        Pipeline { source: Weighed { source, weigh }, steps, plan }
    }

    /// Does something with each item, on the pool. It may be called again, for what is to be done with the results: on
    /// the same worker, right away.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut results = Vec::new();
    /// let words = Pipeline::new(1..=3).map(|n| n * 10).map(|n| n.to_string());
    /// words.ordered().run(&pool, |word| results.push(word))?;
    /// assert_eq!(results, ["10", "20", "30"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map<F, U>(self, f: F) -> Pipeline<S, Map<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> U + Send + Sync,
    {
        let Self { source, steps, plan } = self;
        Pipeline { source, steps: Map { before: steps, f }, plan }
    }

    /// Does something with each item that may fail. An error ends the run, and says in which batch.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let parsed = Pipeline::new(["1", "two", "3"]).batch(1).try_map(|text| text.parse::<u32>());
    /// let error = parsed.ordered().run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.to_string(), "map 1 failed in batch 1: invalid digit found in string");
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_map<F, U, E>(self, f: F) -> Pipeline<S, TryMap<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Result<U, E> + Send + Sync,
        E: Into<Complaint>,
    {
        let Self { source, steps, plan } = self;
        Pipeline { source, steps: TryMap { before: steps, f }, plan }
    }
}

impl<S: Source> Pipeline<S> {
    /// Does something with each batch as a whole: one result for each. What it leaves in the batch is dropped.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let sums = Pipeline::new(1..=100).batch(25).map_batch(|batch| batch.iter().sum::<u32>());
    /// let mut results = Vec::new();
    /// sums.ordered().run(&pool, |sum| results.push(sum))?;
    /// assert_eq!(results, [325, 950, 1575, 2200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_batch<F, U>(self, f: F) -> Pipeline<S, MapBatch<F>>
    where
        F: Fn(&mut Vec<S::Item>) -> U + Send + Sync,
    {
        let Self { source, plan, .. } = self;
        Pipeline { source, steps: MapBatch { f }, plan }
    }
}

impl<S, G> Pipeline<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Runs it to its end, and gives each result to the sink, on this thread.
    ///
    /// On a thread of the pool, that worker's other tasks go on meanwhile, on another thread.
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
    /// See [`PipelineError`].
    pub fn run(self, pool: &Pool, mut sink: impl FnMut(G::Out)) -> Result<Report, PipelineError> {
        self.try_run(pool, move |result| {
            sink(result);
            Ok::<(), Complaint>(())
        })
    }

    /// [`run`](Self::run), with a sink that may fail: its error ends the run.
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
    /// See [`PipelineError`].
    pub fn try_run<E>(
        self,
        pool: &Pool,
        sink: impl FnMut(G::Out) -> Result<(), E>,
    ) -> Result<Report, PipelineError>
    where
        E: Into<Complaint>,
    {
        self.plan.check()?;
        run::run(self, pool, sink)
    }

    /// The results, to be pulled when they are wanted. Meanwhile the pool goes on until the bound of what may be
    /// [in flight](Self::in_flight) is reached.
    ///
    /// Dropping it ends the run: batches that are running end on their own, and those that are not are dropped.
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
    /// If the pipeline is not well built; see [`PipelineError`].
    pub fn results(self, pool: &Pool) -> Result<Results<G::Out>, PipelineError>
    where
        S: 'static,
        S::Item: 'static,
        G: 'static,
        G::Out: 'static,
    {
        self.plan.check()?;
        Ok(Results::start(self, pool.any_pool()))
    }
}

/// On the pool that this thread belongs to, or else the [global](Pool::global) one. If the pipeline is not well built,
/// the first item says so.
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
