//! The errors that end a run early.

use std::error::Error;
use std::{fmt, io};

use super::run::BoxError;
use crate::panic::Panic;

/// A part of a pipeline.
///
/// ```
/// use heist::pipeline::{Pipeline, Stage};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let checked = Pipeline::new(["1", "2", "x"]).batch(1).try_map(str::parse::<u32>);
/// let error = checked.run(&pool, |_| ()).unwrap_err();
/// assert_eq!(error.stage(), Some(Stage::Map(1)));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The source of the items.
    Source,
    /// A stage that is applied on the pool. The first one has number 1.
    Map(usize),
    /// The closure that receives the results.
    Sink,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("the source"),
            Self::Map(number) => write!(f, "map {number}"),
            Self::Sink => f.write_str("the sink"),
        }
    }
}

/// The reason why a pipeline did not reach the end of its source.
///
/// When [`run`](super::Pipeline::run) returns the error, the batches that were being processed are finished,
/// and the queued ones have been dropped. With [`Results`](super::Results), queued batches are dropped when
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
/// assert_eq!(error.to_string(), "map 1 panicked in batch 5: attempt to divide by zero");
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
    /// The user's code returned an error.
    Failed {
        /// The part of the pipeline in which it happened.
        stage: Stage,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The user's code panicked.
    Panicked {
        /// The part of the pipeline in which it happened.
        stage: Stage,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The panic.
        panic: Panic,
    },
    /// The pipeline's [token](super::Pipeline::cancel_on) was cancelled.
    Cancelled,
    /// The pool has stopped.
    Stopped,
    /// The system refused to start a thread for the source.
    Thread {
        /// The error of the system.
        source: io::Error,
    },
}

impl PipelineError {
    pub(crate) fn failed(stage: Stage, batch: u64, source: BoxError) -> Self {
        Self::Failed { stage, batch, source }
    }

    pub(crate) fn panicked(
        stage: Stage,
        batch: u64,
        payload: Box<dyn std::any::Any + Send>,
    ) -> Self {
        Self::Panicked { stage, batch, panic: Panic::new(payload) }
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
            Self::Failed { stage, batch, source } => {
                write!(f, "{stage} failed in batch {batch}: {source}")
            }
            Self::Panicked { stage, batch, panic } => {
                write!(f, "{stage} panicked in batch {batch}: {panic}")
            }
            Self::Cancelled => f.write_str("the pipeline was cancelled"),
            Self::Stopped => f.write_str(
                "the pool has stopped: let the pipeline end before the pool is stopped, or run it on another pool",
            ),
            Self::Thread { source } => write!(
                f,
                "the system refused to start a thread for the source ({source}): raise the limit on threads, or use \
                 `Distribution::Pull`, which needs none"
            ),
        }
    }
}

impl Error for PipelineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed { source, .. } => Some(&**source),
            Self::Thread { source } => Some(source),
            _ => None,
        }
    }
}
