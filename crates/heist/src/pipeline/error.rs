//! Why a run has ended before its time.

use std::error::Error;
use std::{fmt, io};

use super::stage::Complaint;
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
    /// Where the items come from.
    Source,
    /// What is done on the pool: 1 is the first of the maps.
    Map(usize),
    /// Where the results go.
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

/// Why a pipeline did not come to the end of its source.
///
/// What was running has ended, what was queued has been dropped (of [`Results`](super::Results): when they are dropped as
/// well), and the pool is as good as before. If the pipeline is
/// [ordered](super::Pipeline::ordered), the results of all batches before the one that failed have been delivered, and
/// none after it.
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
    /// A batch of no items would never be full.
    ZeroBatch,
    /// With no batch in flight nothing would move.
    ZeroInFlight,
    /// Likewise with no weight.
    ZeroWeight,
    /// The user's code returned an error.
    Failed {
        /// Where.
        stage: Stage,
        /// In which batch; the first is 0.
        batch: u64,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The user's code panicked.
    Panicked {
        /// Where.
        stage: Stage,
        /// In which batch; the first is 0.
        batch: u64,
        /// The panic.
        panic: Panic,
    },
    /// The pipeline's [token](super::Pipeline::cancel) was cancelled.
    Cancelled,
    /// The pool has stopped.
    Stopped,
    /// The system refused a thread for the source.
    Thread {
        /// What it said.
        source: io::Error,
    },
}

impl PipelineError {
    pub(crate) fn failed(stage: Stage, batch: u64, source: Complaint) -> Self {
        Self::Failed { stage, batch, source }
    }

    pub(crate) fn panicked(
        stage: Stage,
        batch: u64,
        payload: Box<dyn std::any::Any + Send>,
    ) -> Self {
        Self::Panicked { stage, batch, panic: Panic::new(payload) }
    }

    /// Whose code failed, if it was the user's.
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

    /// The batch that failed, counted from 0: in a source, the one that was being filled.
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
                "a batch of 0 items would never be full: give `batch` at least 1, or leave it out",
            ),
            Self::ZeroInFlight => f.write_str(
                "with 0 batches in flight nothing would move: give `in_flight` at least 1, or leave it out",
            ),
            Self::ZeroWeight => f.write_str(
                "with a weight of 0 in flight nothing would move: give `weigh` a limit of at least 1, or leave it out",
            ),
            Self::Failed { stage, batch, source } => {
                write!(f, "{stage} failed in batch {batch}: {source}")
            }
            Self::Panicked { stage, batch, panic } => {
                write!(f, "{stage} panicked in batch {batch}: {panic}")
            }
            Self::Cancelled => f.write_str("the pipeline was cancelled"),
            Self::Stopped => f.write_str(
                "the pool has stopped: let the pipeline end before the pool, or run it on another",
            ),
            Self::Thread { source } => write!(
                f,
                "the system refused a thread for the source ({source}): raise the limit on threads, or use \
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
