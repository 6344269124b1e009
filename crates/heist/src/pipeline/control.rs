//! What all threads of a run agree on: what is in flight, who is at the source, who sleeps, and how it ends.
//!
//! All of it is under one lock, the *desk*, taken once for many batches. Whoever changes something decides there who is to
//! be told, and tells them when the lock is free. So nobody sleeps through anything: a thread that finds nothing to do
//! says so under the same lock under which it has looked.
//!
//! Two things go beside the lock. Whoever puts a batch into a lane looks afterwards whether somebody rests, and only then
//! comes to the desk; and a worker that lies down looks at the lanes afterwards. And a worker that has put results into
//! the mail looks afterwards whether somebody sleeps who wants them, who has looked into the mail after saying so. All of
//! them pass a fence between the two, so that one of a pair sees the other.

use std::fmt;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::asleep::AWAKE;
use super::desk::{After, Calls, Catch, Desk, Failure, Freed, Grant, Hire, Leave, Rules, Tap};
use super::error::PipelineError;
use super::report::Report;
use crate::api::scope::CountLatch;
use crate::cancel::Follower;
use crate::order;
use crate::panic::contain;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Padded, full_fence, has_heavy_fence,
    lock,
};
use crate::task::{Promise, TaskHandle};
use crate::worker::current::AnyPool;
use crate::worker::wait;

/// See the module.
pub struct Control {
    pub(super) rules: Rules,
    pool: Arc<dyn AnyPool>,
    /// Can the fence of whoever sleeps be one for the others as well, so that theirs costs nothing?
    pub(super) light: bool,
    pub(super) hints: Padded<Hints>,
    pub(super) desk: Padded<Mutex<Desk>>,
    /// The run, and who works for it.
    crew: CountLatch,
}

/// For those who only look. Written at the desk, and not often.
///
/// Ordering: relaxed throughout. They bring no data: that comes with the lock of the desk, of the mail or of a lane, or with
/// a deque. A stale `cutoff` has a batch processed that nobody wants, a stale `pulling` costs a look at the desk; who
/// reads `resting` or `caller` passes one of the fences first.
pub(super) struct Hints {
    /// Batches from this number on are not wanted any more.
    cutoff: AtomicU64,
    /// How many lanes rest?
    resting: AtomicUsize,
    /// Is somebody at the source? Often, so that it is not beside the others.
    pulling: Padded<AtomicBool>,
    /// What does whoever wants the results? Likewise.
    pub(super) caller: Padded<AtomicUsize>,
}

impl Control {
    /// With nobody at work; and the end of the crew.
    pub(crate) fn new(rules: Rules, pool: Arc<dyn AnyPool>) -> (Arc<Self>, TaskHandle<Vec<()>>) {
        let (crew, end) = CountLatch::new();
        let desk = Desk::new(pool.workers());
        let control = Self {
            rules,
            pool,
            light: has_heavy_fence(),
            hints: Padded(Hints {
                cutoff: AtomicU64::new(u64::MAX),
                resting: AtomicUsize::new(desk.resting.len()),
                pulling: Padded(AtomicBool::new(false)),
                caller: Padded(AtomicUsize::new(AWAKE)),
            }),
            desk: Padded(Mutex::new(desk)),
            crew,
        };
        (Arc::new(control), end)
    }

    /// Of the pool.
    pub(crate) fn pool(&self) -> &Arc<dyn AnyPool> {
        &self.pool
    }

    /// A hint: batches from this number on can be dropped.
    #[inline]
    pub(crate) fn cutoff(&self) -> u64 {
        // Ordering: relaxed. It brings no data, and whoever ends the run waits for those who have not seen it.
        self.hints.0.cutoff.load(Ordering::Relaxed)
    }

    /// Is there nothing left to do, whatever is queued?
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.cutoff() == 0
    }

    /// A hint.
    pub(crate) fn is_pulling(&self) -> bool {
        // Ordering: relaxed. Whoever believes it asks at the desk.
        self.hints.0.pulling.0.load(Ordering::Relaxed)
    }

    /// Opens: workers can be had from now on.
    pub(crate) fn open(&self, hirer: Arc<dyn Hire>) {
        lock(&self.desk.0).hirer = Some(hirer);
    }

    /// Begins, if nothing has come in between: somebody goes to the source.
    pub(crate) fn begin(&self) {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        self.call_to_source(&mut desk, &mut calls);
        drop(desk);
        self.make(calls);
    }

    /// Ends: nobody is hired any more, and those who are at work end soon. Why did it end, if not by itself?
    pub(crate) fn close(&self) -> Option<PipelineError> {
        let mut desk = lock(&self.desk.0);
        self.hints.0.cutoff.store(0, Ordering::Relaxed);
        let hirer = desk.hirer.take();
        let failure = desk.failure.take();
        desk.closed.get_or_insert_with(Instant::now);
        let calls = Calls { wake: [desk.producer.take(), None], task: None };
        drop(desk);
        self.make(calls);
        if let Some(hirer) = &hirer {
            hirer.end();
        }
        // With it goes a part of what the user has given.
        contain(|| drop(hirer));
        failure.map(|failure| failure.error)
    }

    /// One more is at work, who says `leave` in the end. The run has not ended.
    pub(crate) fn join(&self) {
        self.crew.one_more();
    }

    /// # Safety
    ///
    /// Once for each `join`, and once for the run.
    pub(crate) unsafe fn leave(&self) {
        // SAFETY: as the caller says.
        unsafe { CountLatch::done(NonNull::from(&self.crew)) };
    }

    /// May this thread take something from the source? Then it must say what it [caught](Self::pulled).
    pub(crate) fn may_pull(&self) -> Leave {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        let leave = match desk.source {
            Tap::Idle => self.go(&mut desk, &mut calls).map_or(Leave::No, Leave::Go),
            Tap::Pulling { .. } => Leave::Busy,
            Tap::Dry | Tap::Ended => Leave::No,
        };
        drop(desk);
        self.make(calls);
        leave
    }

    /// For the thread of the source: sleeps until there is room. `None`: that was all.
    pub(crate) fn wait_to_pull(&self) -> Option<Grant> {
        loop {
            let mut calls = Calls::default();
            let mut desk = lock(&self.desk.0);
            if desk.source == Tap::Ended || desk.hirer.is_none() {
                return None;
            }
            if desk.source == Tap::Idle
                && let Some(grant) = self.go(&mut desk, &mut calls)
            {
                return Some(grant);
            }
            let (promise, handle) = Promise::new();
            desk.producer = Some(promise);
            drop(desk);
            self.make(calls);
            wait::wait(&handle, self.pool.id());
        }
    }

    /// The source is free, and this thread goes to it if there is room.
    fn go(&self, desk: &mut Desk, calls: &mut Calls) -> Option<Grant> {
        let batches = desk.room(&self.rules);
        if batches == 0 {
            if desk.failure.is_none() {
                desk.full_since.get_or_insert_with(Instant::now);
            }
            // A worker that is at the source itself has nothing else to do.
            if self.rules.pulls || !desk.resting.is_empty() {
                self.hurry(desk, calls);
            }
            return None;
        }
        desk.source = Tap::Pulling { rung: false };
        self.hints.0.pulling.0.store(true, Ordering::Relaxed);
        desk.before = (desk.in_flight() as u64, desk.heavy());
        let limit = self.rules.weight.unwrap_or(u64::MAX);
        let weight = limit.saturating_sub(desk.heavy());
        Some(Grant { batches, weight, taken: 0, alone: desk.in_flight() == 0, next: desk.pulled })
    }

    /// Something was put where others can take it, in that lane perhaps.
    pub(crate) fn given(&self, lane: Option<usize>) {
        full_fence(order::GIVE);
        // Ordering: relaxed, after the fence. A worker that rests unseen has seen what was given.
        if self.hints.0.resting.load(Ordering::Relaxed) > 0 {
            let mut calls = Calls::default();
            self.hire(&mut lock(&self.desk.0), lane, &mut calls);
            self.make(calls);
        }
    }

    /// This thread has been at the source. If it goes there `again`, and may, it is there.
    pub(crate) fn pulled(&self, catch: Catch, again: bool) -> Option<Grant> {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        desk.pulled += catch.batches;
        desk.weight += i128::from(catch.weight);
        desk.needs = catch.needs;
        desk.report.items += catch.items;
        desk.note_largest(&catch);
        let rung = desk.source == Tap::Pulling { rung: true };
        desk.source = match catch.after {
            After::End | After::Failed(_) => Tap::Ended,
            After::Dry if !rung => Tap::Dry,
            After::Dry | After::More => Tap::Idle,
        };
        self.hints.0.pulling.0.store(false, Ordering::Relaxed);
        let mut discarded = None;
        if let After::Failed(error) = catch.after {
            let batch = desk.pulled;
            discarded = self.note_failure(&mut desk, Some(batch), error, &mut calls);
        } else if desk.is_over(&self.rules, desk.pulled) {
            calls.wake[0] = self.wake(&mut desk);
        }
        if self.rules.pulls && desk.source == Tap::Idle && desk.room(&self.rules) > 0 {
            self.hire(&mut desk, None, &mut calls);
        }
        let grant =
            if again && desk.source == Tap::Idle { self.go(&mut desk, &mut calls) } else { None };
        drop(desk);
        self.make(calls);
        contain(|| drop(discarded));
        grant
    }

    /// The source has something again, or has ended.
    pub(crate) fn ring(&self) {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        match &mut desk.source {
            Tap::Pulling { rung } => *rung = true,
            source @ Tap::Dry => {
                *source = Tap::Idle;
                self.call_to_source(&mut desk, &mut calls);
            }
            Tap::Idle | Tap::Ended => {}
        }
        drop(desk);
        self.make(calls);
    }

    /// Somebody should see to the source, if nobody is at it.
    fn call_to_source(&self, desk: &mut Desk, calls: &mut Calls) {
        if desk.source != Tap::Idle || desk.room(&self.rules) == 0 {
            return;
        }
        if let Some(since) = desk.full_since.take() {
            desk.report.source_waited += since.elapsed();
        }
        if self.rules.pulls {
            self.hire(desk, None, calls);
        } else {
            calls.wake[1] = desk.producer.take();
        }
    }

    /// So many batches that somebody who waits for room, or for results, should be told.
    pub(crate) fn share_of_bound(&self) -> usize {
        (self.rules.bound / 4).max(1)
    }

    /// Likewise, so much weight.
    pub(crate) fn share_of_weight(&self) -> i128 {
        self.rules.weight.map_or(i128::MAX, |limit| i128::from(limit / 4).max(1))
    }

    /// These have been delivered.
    pub(crate) fn freed(&self, freed: Freed) {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        self.note_freed(&mut desk, &freed, &mut calls);
        drop(desk);
        self.make(calls);
    }

    pub(super) fn note_freed(&self, desk: &mut Desk, freed: &Freed, calls: &mut Calls) {
        if freed.batches > 0 {
            desk.delivered += freed.batches;
            desk.weight -= freed.weight;
            desk.report.results += freed.results;
            self.call_to_source(desk, calls);
        }
    }

    /// The run cannot go on; because of that batch, perhaps.
    pub(crate) fn fail(&self, batch: Option<u64>, error: PipelineError) {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        let discarded = self.note_failure(&mut desk, batch, error, &mut calls);
        drop(desk);
        self.make(calls);
        contain(|| drop(discarded));
    }

    /// Returns an error that nobody will hear of: its drop is code of the user's.
    fn note_failure(
        &self,
        desk: &mut Desk,
        batch: Option<u64>,
        error: PipelineError,
        calls: &mut Calls,
    ) -> Option<PipelineError> {
        let batch = if self.rules.ordered { batch } else { None };
        let worse = match (&desk.failure, batch) {
            (None, _) => true,
            (Some(old), None) => old.batch.is_some(),
            (Some(old), Some(batch)) => old.batch.is_some_and(|old| batch < old),
        };
        if !worse || desk.hirer.is_none() {
            return Some(error);
        }
        self.hints.0.cutoff.store(batch.unwrap_or(0), Ordering::Relaxed);
        if !matches!(desk.source, Tap::Pulling { .. }) {
            desk.source = Tap::Ended;
        }
        calls.wake = [self.wake(desk), desk.producer.take()];
        desk.failure.replace(Failure { batch, error }).map(|old| old.error)
    }

    /// A worker has nothing to do. May it rest? `left`: is there something in the lanes for it?
    pub(crate) fn rest(&self, lane: usize, left: impl FnOnce() -> bool) -> bool {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        let room = desk.room(&self.rules) > 0;
        let source = self.rules.pulls && desk.source == Tap::Idle && room;
        desk.resting.push(lane);
        self.note_resting(&desk);
        full_fence(order::REST);
        // Where nothing is wanted any more, it does not matter what is left.
        let rests = self.is_off() || !(source || left());
        if !rests {
            desk.resting.pop();
            self.note_resting(&desk);
        } else if !room || matches!(desk.source, Tap::Dry | Tap::Ended) {
            // Nothing more comes before what is there is delivered, or at all.
            self.hurry(&mut desk, &mut calls);
        }
        drop(desk);
        self.make(calls);
        rests
    }

    fn note_resting(&self, desk: &Desk) {
        self.hints.0.resting.store(desk.resting.len(), Ordering::Relaxed);
    }

    /// Has a worker come, for that lane if need be.
    fn hire(&self, desk: &mut Desk, lane: Option<usize>, calls: &mut Calls) {
        let Some(hirer) = &desk.hirer else { return };
        let at = lane.and_then(|lane| desk.resting.iter().position(|resting| *resting == lane));
        let hired = match at {
            Some(at) => Some(desk.resting.swap_remove(at)),
            None if lane.is_none() || self.rules.steals => desk.resting.pop(),
            None => None,
        };
        if let Some(hired) = hired {
            self.crew.one_more();
            calls.task = Some(Arc::clone(hirer).driver(hired));
            self.note_resting(desk);
        }
    }

    pub(super) fn make(&self, calls: Calls) {
        for promise in calls.wake.into_iter().flatten() {
            promise.fulfil(Ok(Vec::new()), None);
        }
        if let Some(task) = calls.task {
            self.pool.push_remote(task);
        }
    }

    /// What is known at the desk.
    pub(crate) fn report(&self, started: Instant) -> Report {
        let desk = lock(&self.desk.0);
        let now = desk.closed.unwrap_or_else(Instant::now);
        let mut report = desk.report.clone();
        report.batches = desk.pulled;
        report.elapsed = now - started;
        report.source_waited += desk.full_since.map_or(Duration::ZERO, |since| now - since);
        report
    }
}

/// Told that the pool stops.
pub(crate) struct Stop(pub(crate) Arc<Control>);

impl Follower for Stop {
    fn cancel(&self) {
        self.0.fail(None, PipelineError::Stopped);
    }
}

impl Follower for Control {
    fn cancel(&self) {
        self.fail(None, PipelineError::Cancelled);
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("cutoff", &self.cutoff()).finish_non_exhaustive()
    }
}
