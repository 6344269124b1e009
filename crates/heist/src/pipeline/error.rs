//! The errors that end a run early.

use std::any::Any;
use std::error::Error;
use std::{fmt, io};

use super::report::Report;
use super::steps::BoxError;
use crate::panic::Panic;

/// A part of a pipeline.
///
/// ```
/// use heist::pipeline::{Pipeline, Stage};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let checked = Pipeline::new(["1", "2", "x"]).batch(1).try_map(str::parse::<u32>);
/// let error = checked.run(&pool, |_| ()).unwrap_err();
/// assert_eq!(error.stage(), Some(Stage::Step(1)));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The source of the items.
    Source,
    /// A stage that is applied on the pool. The first one has number 1.
    Step(usize),
    /// The closure that receives the results.
    Sink,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("the source"),
            Self::Step(number) => write!(f, "stage {number}"),
            Self::Sink => f.write_str("the sink"),
        }
    }
}

/// The reason why a pipeline did not reach the end of its source.
///
/// When [`run`](super::Pipeline::run) returns the error, the batches that were being processed have ended after their
/// current items, and the queued ones have been dropped. With [`Results`](super::Results), queued batches are dropped when
/// the iterator is dropped as well. The pool can be used as before. If the pipeline is
/// [ordered](super::Pipeline::ordered), the results of all batches before the one that failed have been
/// delivered, and none after it.
///
/// ```
/// use heist::pipeline::{Pipeline, PipelineError};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let error = Pipeline::new(0..100).batch(0).run(&pool, |_| ()).unwrap_err();
/// assert!(matches!(error, PipelineError::ZeroBatch));
///
/// let divided = Pipeline::new(0..100).batch(10).map(|n| 100 / (50 - n)).ordered();
/// let error = divided.run(&pool, |_| ()).unwrap_err();
/// assert_eq!(error.to_string(), "stage 1 panicked at item 50 (batch 5): attempt to divide by zero");
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum PipelineError {
    /// The size of a batch is 0.
    ZeroBatch,
    /// The number of batches in flight is limited to 0, with which no batch could be processed.
    ZeroInFlight,
    /// The weight in flight is limited to 0, with which no batch could be processed.
    ZeroWeight,
    /// Stages are [limited](super::Pipeline::limit_workers) to 0 workers, so that no batch could be processed.
    ZeroWorkers,
    /// There are 0 [groups](super::Pipeline::group_by_key), or more than 65,536.
    Groups {
        /// The number of groups.
        groups: usize,
    },
    /// The pipeline has stages that need the memory of one process: those of
    /// [`limit_workers`](super::Pipeline::limit_workers) and [`group_by_key`](super::Pipeline::group_by_key).
    NotOnCluster,
    /// The number of items in a [chunk](super::Pipeline::chunks) is 0.
    ZeroChunk,
    /// A method of the builder was called where another one leaves it without an effect: as
    /// [`weigh`](super::Pipeline::weigh) before [`chunks`](super::Pipeline::chunks), on a pipeline that was
    /// [merged](super::Pipeline::merge) into another one, or for the stages of
    /// [`limit_workers`](super::Pipeline::limit_workers) or [`group_by_key`](super::Pipeline::group_by_key).
    Misplaced {
        /// The method.
        setting: &'static str,
        /// The method after which it has to be called.
        by: &'static str,
    },
    /// The user's code returned an error.
    Failed {
        /// The part of the pipeline in which it happened.
        stage: Stage,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The index of the item, as of [`PipelineError::item`].
        item: Option<u64>,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
        /// What the run has done.
        report: Box<Report>,
    },
    /// The user's code panicked.
    Panicked {
        /// The part of the pipeline in which it happened.
        stage: Stage,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The index of the item, as of [`PipelineError::item`].
        item: Option<u64>,
        /// The panic.
        panic: Panic,
        /// What the run has done.
        report: Box<Report>,
    },
    /// The pipeline's [token](super::Pipeline::cancel_on) was cancelled.
    Cancelled {
        /// What the run has done.
        report: Box<Report>,
    },
    /// The pool has stopped.
    Stopped {
        /// What the run has done.
        report: Box<Report>,
    },
    /// The system refused to start a thread for the source.
    Thread {
        /// The error of the system.
        source: io::Error,
    },
}

impl PipelineError {
    /// Makes the error of a run whose user's code has failed. The report is added at the end of the run.
    pub(crate) fn failed(stage: Stage, at: At, source: BoxError) -> Self {
        let At { batch, item } = at;
        Self::Failed { stage, batch, item, source, report: Box::default() }
    }

    pub(crate) fn panicked(stage: Stage, at: At, payload: Box<dyn Any + Send>) -> Self {
        let At { batch, item } = at;
        Self::Panicked { stage, batch, item, panic: Panic::new(payload), report: Box::default() }
    }

    pub(crate) fn cancelled() -> Self {
        Self::Cancelled { report: Box::default() }
    }

    pub(crate) fn stopped() -> Self {
        Self::Stopped { report: Box::default() }
    }

    /// Adds the report of the run that the error has ended.
    pub(crate) fn with_report(mut self, of_run: Report) -> Self {
        match &mut self {
            Self::Failed { report, .. }
            | Self::Panicked { report, .. }
            | Self::Cancelled { report }
            | Self::Stopped { report } => **report = of_run,
            _ => {}
        }
        self
    }

    /// Returns the part of the pipeline that failed, if it was the user's code.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Stage};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let error = Pipeline::new(0..10).run(&pool, |_| panic!("full")).unwrap_err();
    /// assert_eq!(error.stage(), Some(Stage::Sink));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn stage(&self) -> Option<Stage> {
        match self {
            Self::Failed { stage, .. } | Self::Panicked { stage, .. } => Some(*stage),
            _ => None,
        }
    }

    /// Returns the number of the batch that failed, counted from 0. If the source failed, it is the batch
    /// that was being filled.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let source = (0..10).inspect(|&n| assert!(n < 7));
    /// let error = Pipeline::new(source).batch(5).run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.batch(), Some(1));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn batch(&self) -> Option<u64> {
        match self {
            Self::Failed { batch, .. } | Self::Panicked { batch, .. } => Some(*batch),
            _ => None,
        }
    }

    /// Returns the index in the source of the item that failed, counted from 0. With [`lines`], the number of the line is
    /// one more. If the source failed, it is the item that it did not yield.
    ///
    /// The results of the items before it in its batch have been delivered only if the source or the sink failed. After a
    /// failure of a stage, an [ordered](super::Pipeline::ordered) run that is to be resumed begins again with the first item of
    /// the [batch](Self::batch).
    ///
    /// There is no index if the function had more than one item, as in [`map_batch`], and in the stages after that. A
    /// sink has none if there may be more or fewer results than items.
    ///
    /// [`lines`]: super::Pipeline::lines
    /// [`map_batch`]: super::Pipeline::map_batch
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let file = "12\n7\nseven\n3\n";
    /// let numbers = Pipeline::lines(file.as_bytes()).try_map(|line| line.parse::<u32>());
    /// let error = numbers.run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.item(), Some(2)); // line 3
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn item(&self) -> Option<u64> {
        match self {
            Self::Failed { item, .. } | Self::Panicked { item, .. } => *item,
            _ => None,
        }
    }

    /// Returns what the run had done when it ended. There is no report if it could not be started.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let checked = Pipeline::new(0..100).batch(10).ordered().try_map(|n| if n == 55 { Err("bad") } else { Ok(n) });
    /// let error = checked.run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.report().unwrap().results, 50); // five whole batches
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Failed { report, .. }
            | Self::Panicked { report, .. }
            | Self::Cancelled { report }
            | Self::Stopped { report } => Some(report),
            _ => None,
        }
    }
}

/// Where the user's code has failed.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) batch: u64,
    /// The index of the item in the source, if it was a single one.
    pub(crate) item: Option<u64>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Some(item) => write!(f, "at item {item} (batch {})", self.batch),
            None => write!(f, "in batch {}", self.batch),
        }
    }
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroBatch => f.write_str(
                "the size of a batch is 0: pass at least 1 to `batch`, or leave the call out",
            ),
            Self::ZeroInFlight => f.write_str(
                "with 0 batches in flight nothing can be processed: pass at least 1 to `in_flight`, or leave the call out",
            ),
            Self::ZeroWeight => f.write_str(
                "with a weight limit of 0 nothing can be processed: pass a limit of at least 1 to `weigh`, or leave the call out",
            ),
            Self::ZeroWorkers => f.write_str(
                "with 0 workers no batch gets through: pass at least 1 to `limit_workers`",
            ),
            Self::Groups { groups } => {
                write!(f, "the number of groups is {groups}: pass 1 to 65536 to `group_by_key`")
            }
            Self::NotOnCluster => f.write_str(
                "`limit_workers` and `group_by_key` need the memory of one process: run the pipeline on a pool, or leave them out",
            ),
            Self::ZeroChunk => f.write_str(
                "a chunk of 0 items is never complete: pass at least 1 to `chunks` or `chunks_timeout`",
            ),
            Self::Misplaced { setting, by } => write!(
                f,
                "`{setting}` has no effect before or within `{by}`: call it on the pipeline that `{by}` returns"
            ),
            Self::Failed { stage, batch, item, source, .. } => {
                write!(f, "{stage} failed {}: {source}", At { batch: *batch, item: *item })
            }
            Self::Panicked { stage, batch, item, panic, .. } => {
                write!(f, "{stage} panicked {}: {panic}", At { batch: *batch, item: *item })
            }
            Self::Cancelled { .. } => f.write_str("the pipeline was cancelled"),
            Self::Stopped { .. } => f.write_str(
                "the pool has stopped: let the pipeline end before the pool is stopped, or run it on another pool",
            ),
            Self::Thread { source } => write!(
                f,
                "the system refused to start a thread for the source ({source}): raise the limit on threads, or use \
                 `Distribution::Pull` without `flush_after`, which needs none"
            ),
        }
    }
}

/// The message includes that of the user's error. So [`source`](Error::source) is what lies beneath that one, and a chain
/// of causes has each message once. The user's error itself is in [`PipelineError::Failed`].
impl Error for PipelineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed { source, .. } => source.source(),
            Self::Thread { source } => source.source(),
            _ => None,
        }
    }
}
