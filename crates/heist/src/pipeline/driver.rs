//! A worker of the pool, at work for a pipeline: finds batches, processes them, sends the results.
//!
//! It ends when it has nothing to do, and is hired again when there is something: no worker of the pool is kept waiting.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::error::{PipelineError, Stage};
use super::frame::{Frame, Kit};
use super::lane::{Batch, Giver, Lane, Load};
use super::mail::Piece;
use super::plan::Distribution;
use super::source::Source;
use super::stage::{Mark, Steps};
use crate::panic::{PanicHook, contain};
use crate::sync::{Arc, Padded, pause};
use crate::task::{DetachedTask, End, Refusal, Task};

/// A worker looks at the clock after so many nanoseconds, as long as batches take what they have taken. A guess: some
/// times what a look costs.
const LOOK: u64 = 20_000;
/// And at the latest after so many batches.
const MOST: u64 = 256;
/// It lets others have the pool's worker, after so many nanoseconds; a guess.
const TURN: u64 = 1_000_000;
/// Before it rests it looks so often whether its lane has something: some microseconds.
const LINGER: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

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

impl<S, G> DetachedTask for Driver<S, G>
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
            return control.pool().push_remote(unsafe { Task::detached_borrowing(next) });
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
        let mut kit = self.take_kit(me);
        kit.now = self.now();
        let turn_ends = kit.now.saturating_add(TURN);
        loop {
            if self.control.is_off() || kit.now > turn_ends {
                self.put_kit(me, kit);
                return !self.control.is_off();
            }
            // One that goes to the source itself does so before it takes what others have been there for.
            let at_work = if self.pulls() {
                self.process_some(me, &mut kit, false)
                    || self.pull(me, &mut kit)
                    || self.process_some(me, &mut kit, true)
            } else {
                self.process_some(me, &mut kit, true) || self.linger(me)
            };
            if !at_work {
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

    fn pulls(&self) -> bool {
        self.plan.distribution == Distribution::Pull
    }

    /// As many batches as there are, and as go between two looks at the clock.
    fn process_some(&self, me: usize, kit: &mut Kit<S::Item, G::Out>, steal: bool) -> bool {
        let lane = &self.lanes[me].0;
        let most = LOOK.checked_div(lane.pace()).unwrap_or(1).clamp(1, MOST);
        let mut done = 0;
        while done < most {
            let Some(batch) = self.find(me, kit, steal) else { break };
            if done == 0 {
                lane.begin(kit.now);
            }
            done += 1;
            self.process(me, batch, kit);
        }
        if done > 0 {
            kit.now = self.now();
            lane.end(kit.now, done);
        }
        done > 0
    }

    fn find(&self, me: usize, kit: &Kit<S::Item, G::Out>, steal: bool) -> Option<Load<S::Item>> {
        let Some(giver) = &kit.giver else { return self.find_heaviest(me) };
        let (lane, shared) = (&self.lanes[me].0, &self.shared.0);
        let own = match self.hands.get(me) {
            // The newest is still near, and nobody waits for the oldest.
            None if !self.plan.ordered => giver.pop(),
            None => lane.take(),
            Some(hand) => hand.0.take().or_else(|| {
                self.moved(lane.move_some(giver, 1));
                hand.0.take()
            }),
        };
        let own = own.or_else(|| shared.take());
        if steal { own.or_else(|| self.steal(me, giver)) } else { own }
    }

    /// So many batches were nowhere to be seen for a moment.
    fn moved(&self, batches: usize) {
        if batches > 1 && self.plan.steals {
            self.control.given(None);
        }
    }

    /// Some of what somebody else has.
    fn steal(&self, me: usize, giver: &Giver<S::Item>) -> Option<Load<S::Item>> {
        if !self.plan.steals {
            return None;
        }
        let others = |lanes: &[Padded<Lane<S::Item>>]| {
            let (before, after) = lanes.split_at(me.min(lanes.len()));
            let mut victims = after.iter().skip(1).chain(before);
            victims.find_map(|victim| Some(victim.0.move_some(giver, 2)).filter(|moved| *moved > 0))
        };
        let moved = others(&self.hands).or_else(|| others(&self.lanes))?;
        self.lanes[me].0.stole(moved);
        self.moved(moved);
        self.hands.get(me).unwrap_or(&self.lanes[me]).0.take()
    }

    /// The heaviest of all, wherever it is; the own one of two.
    fn find_heaviest(&self, me: usize) -> Option<Load<S::Item>> {
        let (own, shared) = (&self.lanes[me].0, &self.shared.0);
        loop {
            let others = self.lanes.iter().map(|lane| &lane.0).filter(|_| self.plan.steals);
            let all = others.chain([shared, own]);
            let weighed = all.filter_map(|lane| Some((lane.first_weight()?, lane)));
            let (_, lane) = weighed.max_by_key(|(weight, _)| *weight)?;
            // Somebody may have been quicker.
            if let Some(batch) = lane.take() {
                if !ptr::eq(lane, own) && !ptr::eq(lane, shared) {
                    own.stole(1);
                }
                return Some(batch);
            }
        }
    }

    /// Looks whether something comes, for a moment: to rest and to be hired again costs more, above all the one who hires.
    fn linger(&self, me: usize) -> bool {
        (0..LINGER).any(|_| {
            pause();
            self.has_batches_for(me)
        })
    }

    /// Is there something in the queues for that worker?
    fn has_batches_for(&self, me: usize) -> bool {
        let mut others = (0..self.lanes.len()).filter(|_| self.plan.steals);
        self.queued(me) > 0
            || !self.shared.0.is_empty()
            || others.any(|other| self.queued(other) > 0)
    }

    fn process(&self, me: usize, mut batch: Load<S::Item>, kit: &mut Kit<S::Item, G::Out>) {
        let Batch { number, weight, items } = &mut *batch;
        let (number, weight) = (*number, *weight);
        if number >= self.control.cutoff() {
            return contain(|| drop(batch));
        }
        let results = &mut kit.results;
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
                let piece = Piece { number, weight, results: results.len() };
                self.lanes[me].0.did();
                self.mail.put(me, piece, results);
                self.control.put(number, &mut kit.unsaid);
                return self.give_back(batch, &mut kit.spares);
            }
            Ok(Err(complaint)) => PipelineError::failed(stage, number, complaint),
            Err(payload) => PipelineError::panicked(stage, number, payload),
        };
        contain(|| results.clear());
        contain(|| drop(batch));
        self.control.fail(Some(number), error);
    }
}
