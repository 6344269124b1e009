//! The settings of a pipeline.

use super::dispatch::Distribution;
use super::error::PipelineError;
use crate::cancel::CancelToken;

/// The default number of items in a batch.
const BATCH: usize = 64;
/// The default number of batches in flight.
const IN_FLIGHT: usize = 256;

/// The settings of a pipeline, as the user has built it.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// Items in a batch, at most.
    pub(super) batch: usize,
    /// Batches in flight, at most.
    pub(super) in_flight: usize,
    /// Weight in flight, at most.
    pub(super) weight: Option<usize>,
    pub(super) distribution: Distribution,
    pub(super) steals: bool,
    pub(super) ordered: bool,
    pub(super) token: Option<CancelToken>,
}

impl Config {
    /// Returns the default settings.
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

    /// Returns an error if a pipeline with these settings could not make progress.
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
