//! The state of a run, and what can be read off it. See `control` for who changes it.

use std::time::Instant;

use super::error::PipelineError;
use super::report::Report;
use crate::sync::Arc;
use crate::task::{Promise, Receipt, Task};

/// What does not change.
pub(super) struct Rules {
    /// Batches in flight.
    pub(super) bound: usize,
    pub(super) weight: Option<u64>,
    pub(super) ordered: bool,
    /// Do the workers advance the source?
    pub(super) pulls: bool,
    pub(super) steals: bool,
}

pub(super) struct Desk {
    pub(super) source: Tap,
    /// Batches that came from the source.
    pub(super) pulled: u64,
    /// Batches whose results were delivered. Some may be delivered before it is said that they were pulled.
    pub(super) delivered: u64,
    /// In flight.
    pub(super) weight: i64,
    /// Of an item that did not fit.
    pub(super) needs: u64,
    pub(super) failure: Option<Failure>,
    /// Batches whose results are in the mail.
    pub(super) ready: usize,
    pub(super) caller: Option<Sleeper>,
    pub(super) producer: Option<Promise<()>>,
    /// Lanes that nobody works at.
    pub(super) resting: Vec<usize>,
    /// Who makes workers; gone when the run has ended.
    pub(super) hirer: Option<Arc<dyn Hire>>,
    pub(super) full_since: Option<Instant>,
    pub(super) report: Report,
}

/// The source, as seen from the desk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tap {
    Idle,
    /// Somebody is at it. Has it said meanwhile that there is something?
    Pulling {
        rung: bool,
    },
    Dry,
    Ended,
}

/// Whoever wants the results, asleep.
pub(super) struct Sleeper {
    pub(super) promise: Promise<()>,
    /// The batch that it waits for, if they are to be in order.
    pub(super) wanted: u64,
    /// Is it there?
    pub(super) due: bool,
    /// Or does it look again by itself, soon?
    pub(super) deep: bool,
}

pub(super) struct Failure {
    /// What comes before it is delivered, if results are in order.
    pub(super) batch: Option<u64>,
    pub(super) error: PipelineError,
}

/// Makes tasks that work at a lane.
pub(super) trait Hire: Send + Sync {
    fn driver(self: Arc<Self>, lane: usize) -> Task;
}

/// How much may be taken from the source.
pub(super) struct Grant {
    pub(super) batches: usize,
    pub(super) weight: u64,
    /// Is nothing in flight? Then one item may be as heavy as it is.
    pub(super) alone: bool,
    /// The number of the next batch.
    pub(super) next: u64,
}

/// May this thread go to the source?
pub(super) enum Leave {
    Go(Grant),
    /// Somebody is there.
    Busy,
    No,
}

/// What was taken from the source.
pub(super) struct Catch {
    pub(super) batches: u64,
    pub(super) items: u64,
    pub(super) weight: u64,
    /// See [`Desk::needs`].
    pub(super) needs: u64,
    pub(super) after: After,
}

/// And what the source said then.
pub(super) enum After {
    More,
    Dry,
    End,
    Failed(PipelineError),
}

/// What a worker has put into the mail.
pub(super) struct Sent {
    pub(super) batches: usize,
    /// The number of the first of them.
    pub(super) first: u64,
}

/// What was delivered.
#[derive(Default)]
pub(super) struct Freed {
    pub(super) batches: u64,
    pub(super) weight: u64,
    pub(super) results: u64,
}

/// What whoever wants results is to do.
pub(super) enum Next {
    /// Look into the mail.
    Come,
    Sleep(Receipt<Vec<()>>),
    Over,
}

/// What is to be done when the lock is free.
#[derive(Default)]
#[must_use]
pub(super) struct Calls {
    pub(super) wake: [Option<Promise<()>>; 2],
    pub(super) task: Option<Task>,
}

impl Desk {
    /// Where nothing has happened, and all lanes rest.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            source: Tap::Idle,
            pulled: 0,
            delivered: 0,
            weight: 0,
            needs: 0,
            failure: None,
            ready: 0,
            caller: None,
            producer: None,
            resting: (0..workers).rev().collect(),
            hirer: None,
            full_since: None,
            report: Report::default(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        usize::try_from(self.pulled.saturating_sub(self.delivered)).unwrap_or(usize::MAX)
    }

    pub(super) fn note_largest(&mut self) {
        let weight = self.weight.max(0).unsigned_abs();
        self.report.largest_in_flight = self.report.largest_in_flight.max(self.in_flight());
        self.report.largest_weight = self.report.largest_weight.max(weight);
    }

    /// For how many batches is there room?
    pub(super) fn room(&self, rules: &Rules) -> usize {
        if self.failure.is_some() || self.hirer.is_none() {
            return 0;
        }
        let in_flight = self.in_flight();
        let fits = |limit: u64| {
            let after = self.weight.max(0).unsigned_abs().saturating_add(self.needs.max(1));
            in_flight == 0 || after <= limit
        };
        if rules.weight.is_none_or(fits) { rules.bound.saturating_sub(in_flight) } else { 0 }
    }

    /// Is there nothing left to hand out, for somebody who wants that batch next?
    pub(super) fn is_over(&self, rules: &Rules, wanted: u64) -> bool {
        match &self.failure {
            None => self.source == Tap::Ended && self.in_flight() == 0,
            Some(Failure { batch: Some(batch), .. }) if rules.ordered => wanted >= *batch,
            Some(_) => true,
        }
    }
}
