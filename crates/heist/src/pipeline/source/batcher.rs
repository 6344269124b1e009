//! Cuts the items of the source into batches.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Filled, Source};
use crate::panic::{contain, contain_each};
use crate::pipeline::control::{AfterPull, Grant};
use crate::pipeline::error::{At, PipelineError, Stage};
use crate::pipeline::run::BoxError;
use crate::sync::Instant;

/// The source, with what is kept between two batches.
pub(crate) struct Batcher<S: Source> {
    source: S,
    /// Items in a batch, at most.
    size: usize,
    /// The index of the next item.
    next: u64,
    /// An item that did not fit within the weight limit, and its weight.
    held: Option<(S::Item, u64)>,
    /// Holds one item while the user's code weighs it. It is empty otherwise.
    weighing: Vec<S::Item>,
}

/// What the batcher says after a batch.
pub(super) enum Outcome {
    /// The source may have more items.
    More,
    /// The source has no items at the moment, and will announce new ones.
    Pending,
    /// The source has no more items.
    End,
    /// The next item, of this weight, does not fit.
    TooHeavy(u64),
    /// The source returned an error.
    Failed(BoxError),
    /// The source, or the user's weight function, panicked.
    Panicked(Box<dyn Any + Send>),
}

impl Outcome {
    /// Converts it to what is reported to `control`, with the weight of the next item if that did not fit. `batch`
    /// is the number of the batch that was being cut, and `item` the index of the next item.
    pub(super) fn into_after_pull(self, batch: u64, item: u64) -> (AfterPull, u64) {
        let at = At { batch, item: Some(item) };
        match self {
            Self::More => (AfterPull::More, 0),
            Self::Pending => (AfterPull::Pending, 0),
            Self::End => (AfterPull::End, 0),
            Self::TooHeavy(weight) => (AfterPull::More, weight),
            Self::Failed(error) => {
                (AfterPull::Failed(PipelineError::failed(Stage::Source, at, error)), 0)
            }
            Self::Panicked(payload) => {
                (AfterPull::Failed(PipelineError::panicked(Stage::Source, at, payload)), 0)
            }
        }
    }
}

impl<S: Source> Batcher<S> {
    pub(crate) fn new(mut source: S, size: usize) -> Self {
        source.set_batch(size);
        Self { source, size, next: 0, held: None, weighing: Vec::new() }
    }

    /// Drops the source and the items that it has yielded one by one: the drop of each may panic. The panics
    /// end here.
    pub(crate) fn drop_each(self) {
        let Self { source, held, weighing, .. } = self;
        source.drop_each();
        contain_each(held);
        contain_each(weighing);
    }

    /// See [`Source::deadline`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.source.deadline()
    }

    /// See [`Source::take_readers`].
    pub(crate) fn take_readers(&mut self) -> Vec<S::Reader> {
        let mut readers = Vec::new();
        self.source.take_readers(&mut readers);
        readers
    }

    /// Counts the items of a batch that was cut. Returns the index of the first one.
    pub(super) fn count(&mut self, items: usize) -> u64 {
        let first = self.next;
        self.next += items as u64;
        first
    }

    /// Fills a batch within what the grant leaves, and notes the weight in the grant. Whatever the outcome
    /// is, the items that are in the batch are to be processed. It takes no further item once it is to `stop`.
    pub(super) fn cut(
        &mut self,
        batch: &mut Vec<S::Item>,
        grant: &mut Grant,
        stop: &impl Fn() -> bool,
    ) -> Outcome {
        let filled = catch_unwind(AssertUnwindSafe(|| {
            if S::WEIGHED {
                self.fill_by_weight(batch, grant, stop)
            } else {
                self.fill(batch, stop)
            }
        }));
        self.source.settle();
        filled.unwrap_or_else(|payload| {
            contain(|| self.weighing.clear());
            Outcome::Panicked(payload)
        })
    }

    fn fill(&mut self, batch: &mut Vec<S::Item>, stop: &impl Fn() -> bool) -> Outcome {
        match self.source.fill(batch, self.size, stop) {
            Filled::More => Outcome::More,
            Filled::Pending => Outcome::Pending,
            Filled::End => Outcome::End,
            Filled::Failed(error) => Outcome::Failed(error),
        }
    }

    fn fill_by_weight(
        &mut self,
        batch: &mut Vec<S::Item>,
        grant: &mut Grant,
        stop: &impl Fn() -> bool,
    ) -> Outcome {
        while batch.len() < self.size && !stop() {
            let (item, weight) = match self.held.take() {
                Some(held) => held,
                None => match self.weigh_next(stop) {
                    Ok(weighed) => weighed,
                    Err(outcome) => return outcome,
                },
            };
            if weight > grant.weight && !grant.nothing_in_flight {
                self.held = Some((item, weight));
                return Outcome::TooHeavy(weight);
            }
            batch.push(item);
            grant.weight = grant.weight.saturating_sub(weight);
            grant.taken = grant.taken.saturating_add(weight);
            grant.nothing_in_flight = false;
        }
        Outcome::More
    }

    fn weigh_next(&mut self, stop: &impl Fn() -> bool) -> Result<(S::Item, u64), Outcome> {
        let filled = self.source.next(&mut self.weighing, stop);
        if let Filled::Failed(error) = filled {
            debug_assert!(self.weighing.is_empty(), "a failure comes without an item");
            return Err(Outcome::Failed(error));
        }
        // The item stays in `weighing` meanwhile: the user's code may panic, and then `cut` drops it.
        let weight = self.weighing.first().map(|item| self.source.weight(item));
        match (self.weighing.pop().zip(weight), filled) {
            (Some(weighed), _) => Ok(weighed),
            (None, Filled::Pending) => Err(Outcome::Pending),
            (None, Filled::More) => Err(Outcome::More),
            (None, Filled::End | Filled::Failed(_)) => Err(Outcome::End),
        }
    }
}
