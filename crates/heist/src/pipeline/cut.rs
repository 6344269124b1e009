//! Batches, cut from what the source gives.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::desk::{After, Grant};
use super::error::{PipelineError, Stage};
use super::source::{Filled, Source};
use super::stage::Complaint;
use crate::panic::contain;

/// The source, and what is left of it between two batches.
pub(super) struct Cutter<S: Source> {
    pub(super) source: S,
    /// Items of a batch.
    size: usize,
    /// One that did not fit, and its weight.
    held: Option<(S::Item, u64)>,
    /// For one item that is being weighed.
    scale: Vec<S::Item>,
}

/// What there is to say after a batch.
pub(super) enum Said {
    More,
    Dry,
    End,
    /// The next item does not fit, and weighs that much.
    Heavy(u64),
    Failed(Complaint),
    Panicked(Box<dyn Any + Send>),
}

impl Said {
    /// For the desk: what stopped it, with that batch in hand; and what the next item weighs.
    pub(super) fn after(self, batch: u64) -> (After, u64) {
        match self {
            Self::More => (After::More, 0),
            Self::Dry => (After::Dry, 0),
            Self::End => (After::End, 0),
            Self::Heavy(weight) => (After::More, weight),
            Self::Failed(complaint) => {
                (After::Failed(PipelineError::failed(Stage::Source, batch, complaint)), 0)
            }
            Self::Panicked(payload) => {
                (After::Failed(PipelineError::panicked(Stage::Source, batch, payload)), 0)
            }
        }
    }
}

impl<S: Source> Cutter<S> {
    pub(super) fn new(source: S, size: usize) -> Self {
        Self { source, size, held: None, scale: Vec::new() }
    }

    /// Fills a batch, within what the grant leaves, and notes its weight there. Whatever the source says, what is
    /// in the batch is good.
    pub(super) fn cut(&mut self, batch: &mut Vec<S::Item>, grant: &mut Grant) -> Said {
        let filled = catch_unwind(AssertUnwindSafe(|| {
            if S::WEIGHED { self.fill_by_weight(batch, grant) } else { self.fill(batch) }
        }));
        filled.unwrap_or_else(|payload| {
            contain(|| self.scale.clear());
            Said::Panicked(payload)
        })
    }

    fn fill(&mut self, batch: &mut Vec<S::Item>) -> Said {
        match self.source.fill(batch, self.size) {
            Filled::More => Said::More,
            Filled::Dry => Said::Dry,
            Filled::End => Said::End,
            Filled::Failed(complaint) => Said::Failed(complaint),
        }
    }

    fn fill_by_weight(&mut self, batch: &mut Vec<S::Item>, grant: &mut Grant) -> Said {
        while batch.len() < self.size {
            let (item, weight) = match self.held.take() {
                Some(held) => held,
                None => match self.weigh_next() {
                    Ok(weighed) => weighed,
                    Err(said) => return said,
                },
            };
            if weight > grant.weight && !grant.alone {
                self.held = Some((item, weight));
                return Said::Heavy(weight);
            }
            batch.push(item);
            grant.weight = grant.weight.saturating_sub(weight);
            grant.taken = grant.taken.saturating_add(weight);
            grant.alone = false;
        }
        Said::More
    }

    fn weigh_next(&mut self) -> Result<(S::Item, u64), Said> {
        let filled = self.source.fill(&mut self.scale, 1);
        if let Filled::Failed(complaint) = filled {
            return Err(Said::Failed(complaint));
        }
        // It stays on the scale meanwhile: the user's code may panic.
        let weight = self.scale.first().map(|item| self.source.weight(item));
        match (self.scale.pop().zip(weight), filled) {
            (Some(weighed), _) => Ok(weighed),
            (None, Filled::Dry) => Err(Said::Dry),
            (None, _) => Err(Said::End),
        }
    }
}
