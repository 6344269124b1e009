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
    /// Whether the user has set that.
    has_batch: bool,
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
    /// A call of the builder that cannot be carried out.
    misuse: Option<Misuse>,
}

/// A call of the builder that cannot be carried out. It is an error when the run begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Misuse {
    ZeroChunk,
    /// No worker may process the batches of a section of the stages.
    ZeroWorkers,
    /// A section would have so many groups.
    Groups(usize),
    Misplaced {
        setting: &'static str,
        by: &'static str,
    },
}

impl Config {
    /// Returns the default settings.
    pub(super) fn new() -> Self {
        Self {
            batch: BATCH,
            has_batch: false,
            in_flight: None,
            weight: None,
            distribution: Distribution::default(),
            steals: true,
            ordered: false,
            token: None,
            flushes: false,
            progress: Vec::new(),
            misuse: None,
        }
    }

    pub(super) fn set_batch(&mut self, items: usize) {
        (self.batch, self.has_batch) = (items, true);
    }

    /// Notes that the items of the pipeline are chunks of so many items. The memory for a batch stays the same by default.
    pub(super) fn set_chunk(&mut self, items: usize) {
        match BATCH.checked_div(items) {
            None => self.note(Misuse::ZeroChunk),
            Some(batch) if !self.has_batch => self.batch = batch.max(1),
            Some(_) => {}
        }
    }

    /// Notes that another source takes the place of this one. What was set for the items of this one would have no effect.
    pub(super) fn replace_source(&mut self, by: &'static str) {
        let misplaced = [(self.weight.is_some(), "weigh"), (self.flushes, "flush_after")];
        self.note_misplaced(misplaced, by);
    }

    /// Notes that a pipeline with these settings has become a part of this one, in which they would have no effect.
    pub(super) fn add_part(&mut self, part: &Self, by: &'static str) {
        let Self {
            batch: _,
            has_batch,
            in_flight,
            weight,
            distribution,
            steals,
            ordered,
            token,
            flushes,
            progress,
            misuse,
        } = part;
        if let Some(misuse) = misuse {
            self.note(*misuse);
        }
        let misplaced = [
            (*has_batch, "batch"),
            (in_flight.is_some(), "in_flight"),
            (weight.is_some(), "weigh"),
            (*distribution != Distribution::default(), "distribute"),
            (!steals, "steal"),
            (*ordered, "ordered"),
            (token.is_some(), "cancel_on"),
            (*flushes, "flush_after"),
            (!progress.is_empty(), "progress"),
        ];
        self.note_misplaced(misplaced, by);
    }

    fn note_misplaced<const N: usize>(
        &mut self,
        settings: [(bool, &'static str); N],
        by: &'static str,
    ) {
        if let Some((_, setting)) = settings.into_iter().find(|(is_set, _)| *is_set) {
            self.note(Misuse::Misplaced { setting, by });
        }
    }

    /// Notes a misuse. The first one is reported.
    pub(super) fn note(&mut self, misuse: Misuse) {
        self.misuse.get_or_insert(misuse);
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
        match self.misuse {
            None => {}
            Some(Misuse::ZeroChunk) => return Err(PipelineError::ZeroChunk),
            Some(Misuse::ZeroWorkers) => return Err(PipelineError::ZeroWorkers),
            Some(Misuse::Groups(groups)) => return Err(PipelineError::Groups { groups }),
            Some(Misuse::Misplaced { setting, by }) => {
                return Err(PipelineError::Misplaced { setting, by });
            }
        }
        if self.batch == 0 {
            return Err(PipelineError::ZeroBatch);
        }
        if self.in_flight == Some(0) {
            return Err(PipelineError::ZeroInFlight);
        }
        if self.weight == Some(0) {
            return Err(PipelineError::ZeroWeight);
        }
        Ok(())
    }
}
