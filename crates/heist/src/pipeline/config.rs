//! The settings of a pipeline.

use super::dispatch::Distribution;
use super::error::PipelineError;
use super::progress::Hook;
use crate::cancel::CancelToken;

/// The default number of items in a batch.
const BATCH: usize = 64;
/// The default number of batches in flight, if there are few workers.
const IN_FLIGHT: usize = 256;
/// The default number of batches in flight for each worker, if there are many. A guess: each worker has some tens of batches
/// in its queue, and the results of some tens wait for the consumer.
const IN_FLIGHT_PER_WORKER: usize = 64;
/// The same, if results are delivered in order: more of them wait for those before them. A guess.
const IN_FLIGHT_PER_WORKER_ORDERED: usize = 96;

/// The settings of a pipeline, as the user has built it.
#[derive(Debug)]
pub(super) struct Config {
    /// Items in a batch, at most.
    pub(super) batch: usize,
    /// Batches in flight, at most, if the user has set that.
    pub(super) in_flight: Option<usize>,
    /// Weight in flight, at most.
    pub(super) weight: Option<usize>,
    pub(super) distribution: Distribution,
    pub(super) steals: bool,
    pub(super) ordered: bool,
    pub(super) token: Option<CancelToken>,
    /// Whether a batch that is not full may have to wait, which a worker does not do.
    pub(super) flushes: bool,
    /// The functions that are shown the progress.
    pub(super) progress: Vec<Hook>,
    /// Why a section of the stages cannot be used.
    pub(super) unusable: Option<Unusable>,
}

/// Why a section of the stages cannot be used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unusable {
    /// No worker may process its batches.
    ZeroWorkers,
    /// It would have so many groups.
    Groups(usize),
    /// A setting of the pipeline was changed for its stages.
    SettingInSection,
}

impl Config {
    /// Returns the default settings.
    pub(super) fn new() -> Self {
        Self {
            batch: BATCH,
            in_flight: None,
            weight: None,
            distribution: Distribution::default(),
            steals: true,
            ordered: false,
            token: None,
            flushes: false,
            progress: Vec::new(),
            unusable: None,
        }
    }

    /// Returns whether a setting was changed.
    pub(super) fn is_changed(&self) -> bool {
        self.batch != BATCH
            || self.in_flight.is_some()
            || self.weight.is_some()
            || self.distribution != Distribution::default()
            || !self.steals
            || self.ordered
            || self.token.is_some()
            || self.flushes
            || !self.progress.is_empty()
    }

    /// Returns the distribution of the run. The workers cannot pull from a source that says when it will have a batch: nobody
    /// would wait for that moment.
    pub(super) fn distribution(&self) -> Distribution {
        match self.distribution {
            Distribution::Pull if self.flushes => Distribution::Hybrid,
            distribution => distribution,
        }
    }

    /// Returns how many batches may be in flight in a pool with this many workers.
    ///
    /// What the user has set is a promise about memory, and is kept as it is. The default grows with the number of
    /// workers: with less than some batches for each of them, they would wait for each other.
    pub(super) fn max_in_flight(&self, workers: usize) -> usize {
        let each = if self.ordered { IN_FLIGHT_PER_WORKER_ORDERED } else { IN_FLIGHT_PER_WORKER };
        self.in_flight.unwrap_or_else(|| IN_FLIGHT.max(each.saturating_mul(workers)))
    }

    /// Returns an error if a pipeline with these settings could not make progress.
    pub(super) fn check(&self) -> Result<(), PipelineError> {
        if self.batch == 0 {
            return Err(PipelineError::ZeroBatch);
        }
        if self.in_flight == Some(0) {
            return Err(PipelineError::ZeroInFlight);
        }
        if self.weight == Some(0) {
            return Err(PipelineError::ZeroWeight);
        }
        match self.unusable {
            None => Ok(()),
            Some(Unusable::ZeroWorkers) => Err(PipelineError::ZeroWorkers),
            Some(Unusable::Groups(groups)) => Err(PipelineError::Groups { groups }),
            Some(Unusable::SettingInSection) => Err(PipelineError::SettingInSection),
        }
    }
}
