//! The parts of a pipeline that something else than a pool runs: its batches as they are cut, and its stages.
//!
//! For heist-cluster. Nothing here has a promise of compatibility.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::batcher::Outcome;
use super::{Batcher, Source};
use crate::cancel::CancelToken;
use crate::panic::{abandon, contain, contain_each, drop_each};
use crate::pipeline::Pipeline;
use crate::pipeline::control::Grant;
use crate::pipeline::error::{PipelineError, Stage};
use crate::pipeline::run::{FailedStage, Steps};

/// What a pipeline consists of.
#[doc(hidden)]
pub struct Parts<S: Source, G> {
    /// The batches of the source.
    pub batches: Batches<S>,
    /// The stages.
    pub stages: Stages<G>,
    /// The largest number of batches in flight, if the user has set it.
    pub in_flight: Option<usize>,
    /// Whether results are delivered in order.
    pub ordered: bool,
    /// The token that cancels the run.
    pub token: Option<CancelToken>,
}

impl<S: Source, G> fmt::Debug for Parts<S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("ordered", &self.ordered).finish_non_exhaustive()
    }
}

/// Cuts the source into batches.
#[doc(hidden)]
pub struct Batches<S: Source> {
    /// It is there until the batches are dropped.
    batcher: Option<Batcher<S>>,
    /// The number of the next batch.
    next: u64,
    ended: bool,
    /// The source has failed after the items of the last batch.
    failure: Option<PipelineError>,
}

impl<S: Source> fmt::Debug for Batches<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("next", &self.next).finish_non_exhaustive()
    }
}

/// What the source yields next.
#[doc(hidden)]
#[derive(Debug)]
pub enum Cut<T> {
    /// A batch, which is not empty.
    Batch(Vec<T>),
    /// There are no items at the moment, because senders have sent none.
    Pending,
    /// There are no more items.
    End,
}

impl<S: Source> Batches<S> {
    /// Cuts the next batch. Takes no further item once it is to `stop`.
    ///
    /// # Errors
    ///
    /// Returns the error or the panic of the source. The batches before it are whole.
    pub fn cut(&mut self, stop: &impl Fn() -> bool) -> Result<Cut<S::Item>, PipelineError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let Some(batcher) = self.batcher.as_mut().filter(|_| !self.ended) else {
            return Ok(Cut::End);
        };
        let mut batch = Vec::new();
        let mut grant = Grant {
            batches: 1,
            weight: u64::MAX,
            taken: 0,
            nothing_in_flight: true,
            next_batch: self.next,
        };
        let outcome = batcher.cut(&mut batch, &mut grant, stop);
        let pending = matches!(outcome, Outcome::Pending);
        self.ended = !matches!(outcome, Outcome::More | Outcome::Pending | Outcome::TooHeavy(_));
        let number = self.next + u64::from(!batch.is_empty());
        self.failure = match outcome {
            Outcome::Failed(error) => Some(PipelineError::failed(Stage::Source, self.next, error)),
            Outcome::Panicked(payload) => {
                Some(PipelineError::panicked(Stage::Source, self.next, payload))
            }
            _ => None,
        };
        self.next = number;
        if !batch.is_empty() {
            return Ok(Cut::Batch(batch));
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None if pending => Ok(Cut::Pending),
            // Otherwise it was to stop before the first item.
            None => Ok(Cut::End),
        }
    }
}

impl<S: Source> Drop for Batches<S> {
    fn drop(&mut self) {
        if let Some(batcher) = self.batcher.take() {
            batcher.drop_each();
        }
    }
}

/// The stages of a pipeline.
#[doc(hidden)]
pub struct Stages<G>(G);

impl<G> fmt::Debug for Stages<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages").finish_non_exhaustive()
    }
}

impl<G> Stages<G> {
    /// Applies the stages to a batch on the calling thread, item by item, while the results are `wanted`.
    ///
    /// # Errors
    ///
    /// Returns the error or the panic of a stage with its number, or [`PipelineError::Cancelled`] if the results are not wanted
    /// any more.
    pub fn apply<T>(
        &self,
        number: u64,
        mut batch: Vec<T>,
        wanted: &impl Fn() -> bool,
    ) -> Result<Vec<G::Out>, PipelineError>
    where
        G: Steps<T>,
    {
        let failed = FailedStage::default();
        let mut results = Vec::with_capacity(batch.len());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.0.apply(&mut batch, &failed, &mut |result| {
                results.push(result);
                if wanted() { Ok(()) } else { Err("the results are not wanted any more".into()) }
            })
        }));
        let stage = Stage::Map(failed.get().max(1));
        // What the stages have left in the batch.
        let dropped = drop_each(batch);
        let error = match (outcome, dropped) {
            (Ok(Ok(())), Ok(())) => return Ok(results),
            (Ok(Ok(())), Err(payload)) => PipelineError::panicked(stage, number, payload),
            (Ok(Err(error)), dropped) => {
                dropped.unwrap_or_else(abandon);
                // No stage has failed: the closure above has ended the batch.
                if failed.get() == 0 {
                    contain(|| drop(error));
                    PipelineError::Cancelled
                } else {
                    PipelineError::failed(stage, number, error)
                }
            }
            (Err(payload), dropped) => {
                dropped.unwrap_or_else(abandon);
                PipelineError::panicked(stage, number, payload)
            }
        };
        contain_each(results);
        Err(error)
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Takes the pipeline apart, for heist-cluster. Weights and the distribution are not used.
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] if the settings are invalid.
    #[doc(hidden)]
    pub fn into_parts(self) -> Result<Parts<S, G>, PipelineError> {
        self.config.check()?;
        let Self { source, steps, config } = self;
        let batcher = Some(Batcher::new(source, config.batch));
        Ok(Parts {
            batches: Batches { batcher, next: 0, ended: false, failure: None },
            stages: Stages(steps),
            in_flight: config.in_flight,
            ordered: config.ordered,
            token: config.token,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_cut_and_the_stages_name_what_fails() {
        let pipeline = Pipeline::new(0..5).batch(2).map(|n| n + 1).try_map(|n| match n {
            4 => Err("four"),
            n => Ok(n),
        });
        let mut parts = pipeline.into_parts().expect("valid settings");
        let mut cut = || match parts.batches.cut(&|| false) {
            Ok(Cut::Batch(batch)) => Some(batch),
            _ => None,
        };
        assert_eq!(
            [cut(), cut(), cut(), cut()],
            [Some(vec![0, 1]), Some(vec![2, 3]), Some(vec![4]), None]
        );
        let always = || true;
        assert_eq!(parts.stages.apply(0, vec![0, 1], &always).ok(), Some(vec![1, 2]));
        let error = parts.stages.apply(1, vec![2, 3], &always).expect_err("four fails");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Map(2)), Some(1)));
        let unwanted = parts.stages.apply(2, vec![5, 6], &|| false);
        assert!(matches!(unwanted, Err(PipelineError::Cancelled)));
    }
}
