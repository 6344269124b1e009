//! Where a worker is: in which batch, at which item, in which stage.

use std::cell::Cell;
use std::error::Error;
use std::time::Duration;
use std::{fmt, mem};

use super::Passed;
use super::section::{Origin, Part};
use crate::pipeline::control::Control;
use crate::pipeline::deliver::BatchEntry;
use crate::pipeline::error::Stage;
use crate::sync::{Instant, elapsed};

/// Ends the processing of a batch whose results would be discarded.
#[derive(Debug)]
pub(crate) struct Discarded;

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the results of this batch are not wanted any more")
    }
}

impl Error for Discarded {}

/// The place of no single item: a function has all items of a batch.
pub(super) const ALL_ITEMS: usize = usize::MAX;

/// A batch that is being processed.
#[derive(Debug)]
pub struct Context<'r> {
    control: &'r Control,
    batch: u64,
    /// The index in the source of the first item of the batch.
    first: u64,
    /// What is processed. `None` in a chain without a section: then it is the batch as a whole.
    part: Option<&'r Part<'r>>,
    /// The number of the stage that has failed or panicked, or zero.
    failed: Cell<usize>,
    /// The place in the batch of the item that is or was processed last, or [`ALL_ITEMS`]. It is up to date if
    /// the chain [tracks](super::Steps::TRACKS) it, and else after the batch.
    place: Cell<usize>,
    /// Items whose errors were passed over, calls that were repeated, and how long the worker has paused before these.
    counts: Cell<Counts>,
}

/// What the stages have done about errors in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) skipped: u64,
    pub(crate) retried: u64,
    /// Nanoseconds.
    pub(crate) paused: u64,
}

impl Counts {
    pub(super) fn add(&mut self, more: Self) {
        self.skipped += more.skipped;
        self.retried += more.retried;
        self.paused += more.paused;
    }
}

impl<'r> Context<'r> {
    #[inline(always)]
    pub(crate) fn new(
        control: &'r Control,
        batch: u64,
        first: u64,
        part: Option<&'r Part<'r>>,
    ) -> Self {
        let (failed, place) = (Cell::new(0), Cell::new(ALL_ITEMS));
        Self { control, batch, first, part, failed, place, counts: Cell::default() }
    }

    /// Returns the stage that has failed. If none has noted that, it is the first one.
    pub(crate) fn failed_stage(&self) -> Stage {
        Stage::Step(self.before() + self.failed.get().max(1))
    }

    /// Returns the index in the source of the item that was processed last, unless it was a whole batch.
    pub(crate) fn item(&self) -> Option<u64> {
        match self.origin().place {
            ALL_ITEMS => None,
            place => Some(self.first + place as u64),
        }
    }

    /// Returns which item of the batch was processed last.
    pub(super) fn origin(&self) -> Origin {
        let place = self.place.get();
        match self.part.and_then(|part| part.origins) {
            Some(origins) if place != ALL_ITEMS => origins[place],
            _ => Origin { order: place, place },
        }
    }

    /// Returns the number of stages before those that this context is for.
    fn before(&self) -> usize {
        self.part.map_or(0, |part| part.before)
    }

    /// Returns the context for what a section processes of the batch.
    pub(super) fn of_part<'p>(&'p self, part: &'p Part<'p>) -> Context<'p> {
        Context::new(self.control, self.batch, self.first, Some(part))
    }

    /// Takes over from the context of a section where it is, or has failed, and what it has counted.
    pub(super) fn take_over(&self, section: &Context<'_>) {
        if section.failed.get() != 0 {
            self.failed.set(section.before() + section.failed.get());
        }
        self.place.set(section.origin().place);
        self.add_counts(section.counts());
    }

    /// Returns what is delivered of the batch. The chain has a section.
    pub(super) fn entry(&self) -> BatchEntry {
        self.part.expect("the chain has a section").entry
    }

    pub(super) fn control(&self) -> &'r Control {
        self.control
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Takes what was counted, for another worker that goes on with the batch. The pauses were this worker's.
    pub(super) fn take_counts(&self) -> Counts {
        let counts = self.counts.get();
        self.counts.set(Counts { paused: counts.paused, ..Counts::default() });
        Counts { paused: 0, ..counts }
    }

    pub(super) fn add_counts(&self, more: Counts) {
        self.count(|counts| counts.add(more));
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Returns an error if the batch has become one to discard: then no other item of it is processed.
    #[inline(always)]
    pub(crate) fn check(&self) -> Passed {
        if self.is_wanted() { Ok(()) } else { Err(Discarded.into()) }
    }

    #[inline(always)]
    fn is_wanted(&self) -> bool {
        self.batch < self.control.cutoff()
    }

    #[inline(always)]
    pub(super) fn set_place(&self, place: usize) {
        self.place.set(place);
    }

    /// Notes that from now on, whole batches are processed.
    pub(super) fn set_all_items(&self) {
        self.place.set(ALL_ITEMS);
    }
}

/// A stage, and the batch that it processes.
#[derive(Clone, Copy, Debug)]
pub struct Place<'c> {
    pub(super) context: &'c Context<'c>,
    /// The number of the stage in this run, counted from 1.
    pub(super) stage: usize,
}

impl Place<'_> {
    /// Calls a function of the user. If it panics, this stage is noted as the one that has failed. It costs nothing if it
    /// does not.
    #[inline(always)]
    pub(super) fn guard<R>(self, f: impl FnOnce() -> R) -> R {
        let guard = StageGuard(&self.context.failed, self.stage);
        let result = f();
        mem::forget(guard);
        result
    }

    /// Notes that this stage has failed.
    pub(super) fn note_failed(self) {
        self.context.failed.set(self.stage);
    }

    #[inline(always)]
    pub(super) fn check(self) -> Passed {
        self.context.check()
    }

    /// Returns whether the results of the batch are still wanted.
    pub(super) fn is_wanted(self) -> bool {
        self.context.is_wanted()
    }

    pub(super) fn stage(self) -> Stage {
        Stage::Step(self.context.before() + self.stage)
    }

    pub(super) fn batch(self) -> u64 {
        self.context.batch
    }

    pub(super) fn item(self) -> Option<u64> {
        self.context.item()
    }

    /// Waits, unless the results of the batch become unwanted before.
    pub(super) fn pause(self, length: Duration) {
        if !length.is_zero() {
            let begun = Instant::now();
            self.context.control.pause(self.context.batch, length);
            self.context.count(|counts| counts.paused += elapsed(begun));
        }
    }

    /// Counts an item whose error was passed over.
    pub(super) fn count_skipped(self) {
        self.context.count(|counts| counts.skipped += 1);
    }

    /// Counts a repeated call.
    pub(super) fn count_retried(self) {
        self.context.count(|counts| counts.retried += 1);
    }
}

/// Notes the number of its stage as the failed one when it is dropped, which happens only if the stage
/// panics.
struct StageGuard<'m>(&'m Cell<usize>, usize);

impl Drop for StageGuard<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}
