//! What the builder of a pipeline is told.

use super::error::PipelineError;
use crate::cancel::CancelToken;

/// Items of a batch, if nobody says so.
const BATCH: usize = 64;
/// Batches in flight, likewise.
const IN_FLIGHT: usize = 256;

/// How batches get to the workers. All of them do the same work, and a worker that has none takes some from another's
/// queue.
///
/// ```
/// use heist::pipeline::{Distribution, Pipeline};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let squares = Pipeline::new(0..1000_u64).map(|n| n * n).distribute(Distribution::RoundRobin);
/// let mut sum = 0;
/// squares.run(&pool, |square| sum += square)?;
/// assert_eq!(sum, 332_833_500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// A worker that has nothing to do advances the source itself. Nothing crosses from core to core that need not. A
    /// source that blocks keeps one worker from other tasks.
    #[default]
    Pull,
    /// The source has a thread of its own, which gives each worker a batch in turn.
    RoundRobin,
    /// Likewise, but to the worker that will be through with what it has first: by what is queued, by how long its
    /// batches take, and by how long it has been with the one that it has.
    LoadAware,
    /// Likewise in turn, but to a queue for all when a worker has plenty.
    Hybrid,
    /// One queue for all of them. What the others are measured against.
    Shared,
}

impl Distribution {
    /// Every distribution, the default first.
    ///
    /// ```
    /// use heist::pipeline::Distribution;
    ///
    /// assert_eq!(Distribution::ALL[0], Distribution::default());
    /// ```
    pub const ALL: [Self; 5] =
        [Self::Pull, Self::RoundRobin, Self::LoadAware, Self::Hybrid, Self::Shared];
}

/// What the builder was told.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) batch: usize,
    pub(super) in_flight: usize,
    pub(super) weight: Option<usize>,
    pub(super) distribution: Distribution,
    pub(super) steals: bool,
    pub(super) ordered: bool,
    pub(super) token: Option<CancelToken>,
}

impl Plan {
    pub(super) fn new() -> Self {
        Self {
            batch: BATCH,
            in_flight: IN_FLIGHT,
            weight: None,
            distribution: Distribution::default(),
            steals: true,
            ordered: false,
            token: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), PipelineError> {
        if self.batch == 0 {
            return Err(PipelineError::ZeroBatch);
        }
        if self.in_flight == 0 {
            return Err(PipelineError::ZeroInFlight);
        }
        if self.weight == Some(0) {
            return Err(PipelineError::ZeroWeight);
        }
        Ok(())
    }
}
