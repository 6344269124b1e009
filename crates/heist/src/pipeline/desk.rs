//! The state of a run, and what can be read off it. See `control` for who changes it.

use std::time::Instant;

use super::error::PipelineError;
use super::report::Report;
use crate::sync::Arc;
use crate::task::{Promise, Task};

/// What does not change.
pub(crate) struct Rules {
    /// Batches in flight.
    pub(crate) bound: usize,
    pub(crate) weight: Option<u64>,
    pub(crate) ordered: bool,
    /// Do the workers advance the source?
    pub(crate) pulls: bool,
    pub(crate) steals: bool,
}

pub(crate) struct Desk {
    pub(crate) source: Tap,
    /// Batches that came from the source.
    pub(crate) pulled: u64,
    /// Batches whose results were delivered. Some may be delivered before it is said that they were pulled.
    pub(crate) delivered: u64,
    /// In flight.
    pub(crate) weight: i128,
    /// Of an item that did not fit.
    pub(crate) needs: u64,
    /// What was in flight when somebody last went to the source, and its weight.
    pub(crate) before: (u64, u64),
    pub(crate) failure: Option<Failure>,
    pub(crate) caller: Option<Sleeper>,
    pub(crate) producer: Option<Promise<()>>,
    /// Lanes that nobody works at.
    pub(crate) resting: Vec<usize>,
    /// Who makes workers; gone when the run has ended.
    pub(crate) hirer: Option<Arc<dyn Hire>>,
    pub(crate) full_since: Option<Instant>,
    /// When the run has ended.
    pub(crate) closed: Option<Instant>,
    pub(crate) report: Report,
}

/// The source, as seen from the desk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tap {
    Idle,
    /// Somebody is at it. Has it said meanwhile that there is something?
    Pulling {
        rung: bool,
    },
    Dry,
    Ended,
}

/// Whoever wants the results, asleep.
pub(crate) struct Sleeper {
    pub(crate) promise: Promise<()>,
    /// The batch that it waits for, if they are to be in order.
    pub(crate) wanted: u64,
    /// Or does it look by itself, soon?
    pub(crate) deep: bool,
}

pub(crate) struct Failure {
    /// What comes before it is delivered, if results are in order.
    pub(crate) batch: Option<u64>,
    pub(crate) error: PipelineError,
}

/// Makes tasks that work at a lane.
pub(crate) trait Hire: Send + Sync {
    fn driver(self: Arc<Self>, lane: usize) -> Task;

    /// The run has ended: tells those who feed it.
    fn end(&self);
}

/// How much may be taken from the source.
pub(crate) struct Grant {
    pub(crate) batches: usize,
    pub(crate) weight: u64,
    /// The weight of what was taken already.
    pub(crate) taken: u64,
    /// Is nothing in flight? Then one item may be as heavy as it is.
    pub(crate) alone: bool,
    /// The number of the next batch.
    pub(crate) next: u64,
}

/// May this thread go to the source?
pub(crate) enum Leave {
    Go(Grant),
    /// Somebody is there.
    Busy,
    No,
}

/// What was taken from the source.
pub(crate) struct Catch {
    pub(crate) batches: u64,
    pub(crate) items: u64,
    pub(crate) weight: u64,
    /// See [`Desk::needs`].
    pub(crate) needs: u64,
    pub(crate) after: After,
}

/// And what the source said then.
pub(crate) enum After {
    More,
    Dry,
    End,
    Failed(PipelineError),
}

/// What was delivered.
#[derive(Default)]
pub(crate) struct Freed {
    pub(crate) batches: u64,
    pub(crate) weight: i128,
    pub(crate) results: u64,
}

/// What is to be done when the lock is free.
#[derive(Default)]
#[must_use]
pub(crate) struct Calls {
    pub(crate) wake: [Option<Promise<()>>; 2],
    pub(crate) task: Option<Task>,
}

impl Desk {
    /// Where nothing has happened, and all lanes rest.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            source: Tap::Idle,
            pulled: 0,
            delivered: 0,
            weight: 0,
            needs: 0,
            before: (0, 0),
            failure: None,
            caller: None,
            producer: None,
            resting: (0..workers).rev().collect(),
            hirer: None,
            full_since: None,
            closed: None,
            report: Report::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        usize::try_from(self.pulled.saturating_sub(self.delivered)).unwrap_or(usize::MAX)
    }

    /// The weight in flight, as a number that is not negative.
    pub(crate) fn heavy(&self) -> u64 {
        u64::try_from(self.weight.max(0)).unwrap_or(u64::MAX)
    }

    /// Somebody has come back from the source. Some of what it caught may have been delivered meanwhile.
    pub(crate) fn note_largest(&mut self, catch: &Catch) {
        let (batches, weight) = self.before;
        let batches = usize::try_from(batches + catch.batches).unwrap_or(usize::MAX);
        let weight = weight.saturating_add(catch.weight);
        self.report.largest_in_flight = self.report.largest_in_flight.max(batches);
        self.report.largest_weight = self.report.largest_weight.max(weight);
    }

    /// For how many batches is there room?
    pub(crate) fn room(&self, rules: &Rules) -> usize {
        if self.failure.is_some() || self.hirer.is_none() {
            return 0;
        }
        let in_flight = self.in_flight();
        let fits = |limit: u64| {
            let after = self.heavy().saturating_add(self.needs.max(1));
            in_flight == 0 || after <= limit
        };
        if rules.weight.is_none_or(fits) { rules.bound.saturating_sub(in_flight) } else { 0 }
    }

    /// Is there nothing left to hand out, for somebody who wants that batch next?
    pub(crate) fn is_over(&self, rules: &Rules, wanted: u64) -> bool {
        match &self.failure {
            None => self.source == Tap::Ended && self.in_flight() == 0,
            Some(Failure { batch: Some(batch), .. }) if rules.ordered => wanted >= *batch,
            Some(_) => true,
        }
    }
}
