//! A worker of the pool, at work for a pipeline: finds batches, processes them, sends the results.
//!
//! It ends when it has nothing to do, and is hired again when there is something: no worker of the pool is kept waiting.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::desk::Sent;
use super::error::{PipelineError, Stage};
use super::frame::{AHEAD, Frame, Kit, lines};
use super::lane::{Batch, Lane};
use super::mail::Piece;
use super::plan::Distribution;
use super::source::Source;
use super::stage::{Mark, Steps};
use crate::panic::{PanicHook, contain};
use crate::sync::{Arc, pause, prefetch};
use crate::task::{End, Errand, Refusal, Task};

/// A worker takes batches for so many nanoseconds from its lane at once, where others cannot take them. A guess: some
/// times what it costs to look, and less than it takes to wake somebody who could take them.
const GRAB: u64 = 60_000;
/// And never more than so many.
const MOST: usize = 1024;
/// Then it lets others have the pool's worker, after so many nanoseconds; a guess.
const TURN: u64 = 1_000_000;
/// Before it rests it looks so often whether its lane has something: some microseconds.
const LINGER: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 200 };
/// A worker that has so many empty batches gives them back to the thread of the source.
const SPARES: usize = 64;

/// The task.
pub(super) struct Driver<S: Source, G: Steps<S::Item>> {
    frame: Arc<Frame<S, G>>,
    lane: usize,
    /// Is there more to do, when others have had their turn?
    again: bool,
}

impl<S: Source, G: Steps<S::Item>> Driver<S, G> {
    pub(super) fn new(frame: Arc<Frame<S, G>>, lane: usize) -> Self {
        Self { frame, lane, again: false }
    }
}

impl<S, G> Errand for Driver<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        self.again = self.frame.drive(self.lane);
        End::Completed
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        self.frame.control.fail(None, PipelineError::Stopped);
        1
    }

    fn finish(self) {
        let control = Arc::clone(&self.frame.control);
        if self.again {
            let next = Self::new(self.frame, self.lane);
            // SAFETY: it leaves the crew in place of this one.
            return control.pool().take_in(unsafe { Task::borrowing_errand(next) });
        }
        // Before it leaves: it may be the last one that knows of what the user has given, and then drops it.
        let frame = self.frame;
        contain(|| drop(frame));
        // SAFETY: whoever hired it has counted it.
        unsafe { control.leave() };
    }
}

impl<S, G> Frame<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Works at that lane. Is there more to do?
    fn drive(&self, me: usize) -> bool {
        let lane = &self.lanes[me].0;
        let mut kit = self.take_kit(me);
        kit.now = self.now();
        let turn_ends = kit.now.saturating_add(TURN);
        loop {
            if self.control.is_off() || kit.now > turn_ends {
                self.tell(&mut kit);
                self.put_kit(me, kit);
                return !self.control.is_off();
            }
            if self.find(me, &mut kit) {
                self.tell(&mut kit);
                lane.begin(kit.now);
                let done = self.process(&mut kit);
                kit.now = self.now();
                lane.end(kit.now, done);
                self.send(&mut kit);
            } else if !(self.pulls() && self.pull(me, &mut kit)
                || self.steal(me, &mut kit)
                || self.linger(me))
            {
                self.tell(&mut kit);
                // Before it rests: then somebody else may come to this lane.
                self.put_kit(me, kit);
                if self.control.rest(me, || self.has_batches_for(me)) {
                    return false;
                }
                kit = self.take_kit(me);
                kit.now = self.now();
            }
        }
    }

    /// Is there something to process? Then it is in the kit.
    fn find(&self, me: usize, kit: &mut Kit<S::Item, G::Out>) -> bool {
        let own = &self.lanes[me].0;
        let most = self.grab(own);
        if S::WEIGHED && !self.plan.ordered {
            return self.find_heaviest(me, kit);
        }
        if own.take(most, 1, &mut kit.batches) > 0 {
            return true;
        }
        let at_once = if self.plan.distribution == Distribution::Shared { 1 } else { most };
        self.shared.0.take(at_once, 1, &mut kit.batches) > 0
    }

    fn pulls(&self) -> bool {
        self.plan.distribution == Distribution::Pull
    }

    /// How many batches to take from a lane at once, as long as they have taken.
    fn grab(&self, lane: &Lane<S::Item>) -> usize {
        match lane.pace() {
            0 => 1,
            pace => usize::try_from(GRAB / pace).unwrap_or(MOST).clamp(1, MOST),
        }
    }

    /// Looks whether something comes, for a moment: to rest and to be hired again costs more, above all the one who hires.
    fn linger(&self, me: usize) -> bool {
        !self.pulls()
            && (0..LINGER).any(|_| {
                pause();
                self.has_batches_for(me)
            })
    }

    /// Half of what somebody else has, to the own lane.
    fn steal(&self, me: usize, kit: &mut Kit<S::Item, G::Out>) -> bool {
        if !self.plan.steals {
            return false;
        }
        let (before, after) = self.lanes.split_at(me);
        for victim in after[1..].iter().chain(before) {
            let stolen = victim.0.take(MOST, 2, &mut kit.batches);
            if stolen > 0 {
                let own = &self.lanes[me].0;
                own.stole(stolen);
                own.push_all(&mut kit.batches);
                return true;
            }
        }
        false
    }

    /// The heaviest of all, wherever it is; the own one of two.
    fn find_heaviest(&self, me: usize, kit: &mut Kit<S::Item, G::Out>) -> bool {
        loop {
            let own = &self.lanes[me].0;
            let others = self.lanes.iter().map(|lane| &lane.0).filter(|_| self.plan.steals);
            let all = others.chain([&self.shared.0, own]);
            let weighed = all.filter_map(|lane| Some((lane.first_weight()?, lane)));
            let Some((_, lane)) = weighed.max_by_key(|(weight, _)| *weight) else { return false };
            // Somebody may have been quicker.
            if lane.take(1, 1, &mut kit.batches) > 0 {
                if !std::ptr::eq(lane, own) && !std::ptr::eq(lane, &self.shared.0) {
                    own.stole(1);
                }
                return true;
            }
        }
    }

    /// Is there something in the queues for that worker? Asked at the desk.
    fn has_batches_for(&self, me: usize) -> bool {
        let own = &self.lanes[me].0;
        let mut others = self.lanes.iter().map(|lane| &lane.0).filter(|_| self.plan.steals);
        !own.is_empty() || !self.shared.0.is_empty() || others.any(|lane| !lane.is_empty())
    }

    /// All that is in the kit. How many batches were there?
    fn process(&self, kit: &mut Kit<S::Item, G::Out>) -> u64 {
        let mut done = 0;
        while let Some(batch) = kit.batches.pop_front() {
            if batch.number >= self.control.cutoff() {
                contain(|| drop(batch));
                continue;
            }
            self.prepare(kit);
            let last = kit.parcel.pieces.back();
            if self.plan.ordered && last.is_some_and(|last| batch.number < last.number) {
                self.send(kit);
            }
            self.process_one(batch, kit);
            done += 1;
        }
        done
    }

    /// What comes next may have been cut on another core: by the time it is needed it should be here.
    fn prepare(&self, kit: &Kit<S::Item, G::Out>) {
        if self.pulls() {
            return;
        }
        let left = kit.batches.len();
        if let Some(soon) = kit.batches.get(AHEAD.min(left.saturating_sub(1))) {
            lines(soon.items.as_ptr(), soon.items.len()).for_each(prefetch);
        }
        if let Some(later) = kit.batches.get(2 * AHEAD) {
            prefetch(&raw const **later);
        }
    }

    fn process_one(&self, mut batch: Box<Batch<S::Item>>, kit: &mut Kit<S::Item, G::Out>) {
        let Batch { number, weight, items } = &mut *batch;
        let (number, weight) = (*number, *weight);
        let results = &mut kit.parcel.results;
        let before = results.len();
        let mark = Mark::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let applied = self.steps.apply(items, &mark, &mut |result| {
                results.push_back(result);
                Ok(())
            });
            items.clear();
            applied
        }));
        let stage = Stage::Map(mark.get().max(1));
        let error = match outcome {
            Ok(Ok(())) => {
                let results = results.len() - before;
                kit.parcel.pieces.push_back(Piece { number, weight, results });
                kit.spares.push(batch);
                return;
            }
            Ok(Err(complaint)) => PipelineError::failed(stage, number, complaint),
            Err(payload) => PipelineError::panicked(stage, number, payload),
        };
        contain(|| results.truncate(before));
        contain(|| drop(batch));
        self.control.fail(Some(number), error);
    }

    /// The results, into the mail. The desk is to be [told](Self::tell), soon.
    fn send(&self, kit: &mut Kit<S::Item, G::Out>) {
        if kit.spares.len() >= SPARES && !self.pulls() {
            self.give_spares(&mut kit.spares);
        }
        let Some(first) = kit.parcel.pieces.front() else { return };
        let sent = Sent { first: first.number, batches: kit.parcel.pieces.len() };
        self.mail.send(&mut kit.parcel);
        self.tell(kit);
        kit.sent = Some(sent);
    }

    fn tell(&self, kit: &mut Kit<S::Item, G::Out>) {
        self.control.sent(kit.sent.take());
    }
}
