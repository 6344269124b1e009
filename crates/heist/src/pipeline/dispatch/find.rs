//! Where a worker looks for its next batch: in its own queues, in the queue that all workers share, then in
//! the queues of the other workers.

use std::{mem, ptr};

use super::batch::BoxedBatch;
use super::queue::WorkerQueue;
use super::stock::{PLENTY, Stock};
use crate::pipeline::run::{Run, Steps, WorkerState};
use crate::pipeline::source::Source;
use crate::sync::{Padded, pause};
use crate::worker::core::victims;

/// A thief of a large pool passes over queues where another thief is, so many times, with as many pauses between: for some
/// microseconds. A guess.
const ROUNDS_ALONE: usize = 16;
const PAUSES: usize = 8;

/// What a thief takes.
struct Share {
    /// From this worker.
    victim: usize,
    /// One in so many batches.
    part: usize,
    /// Not while another thief takes some that is alone as well.
    alone: bool,
}

/// What has come of an attempt to move batches.
#[derive(PartialEq, Eq)]
enum Moved {
    Some,
    Nothing,
    /// Another thief is there.
    Contended,
}

impl<S, G> Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Takes the next batch for a worker. If `steal` is set, it looks in the queues of other workers as well.
    pub(crate) fn find_batch(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
        steal: bool,
    ) -> Option<BoxedBatch<S::Item>> {
        let Some(push_end) = &state.push_end else {
            let found = self.find_heaviest(worker);
            if found.is_some() {
                self.start_another(worker, state, 0);
            }
            return found;
        };
        let (queue, shared) = (&self.queues[worker].0, &self.shared_queue.0);
        let own = match self.local_queues.get(worker) {
            // The newest batch is still in the cache, and the oldest one is not urgent without an order. But a worker that
            // takes further batches before it has run out of them would never come to the oldest one, and in a section the newest
            // one may have to wait for it.
            None if !self.config.ordered && !self.is_large() && G::SECTIONS == 0 => push_end.pop(),
            None => queue.take(),
            Some(local) => local.0.take().or_else(|| {
                self.announce_moved(queue.move_some(push_end, 1));
                local.0.take()
            }),
        };
        if let Some(stock) = &self.stock {
            let is_empty = push_end.is_empty();
            state.note_taken(stock, worker, is_empty);
        }
        let own = own.or_else(|| shared.take());
        if steal { own.or_else(|| self.steal(worker, state)) } else { own }
    }

    /// Announces batches that this worker has moved to its own queue. They were in no queue for a moment, and
    /// another worker may have become inactive because it did not see them.
    fn announce_moved(&self, batches: usize) {
        if batches > 1 && self.config.steals {
            self.control.batch_pushed(None);
        }
    }

    /// Starts another worker if there are batches for it, after this one has got something to do (B5). `moved` is how many
    /// batches it has moved to its own queue.
    pub(crate) fn start_another(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
        moved: usize,
    ) {
        // Without the fence of the call below, a worker that has not waited may miss another one that becomes inactive now.
        // That one looks itself (W4).
        let may_be_needed = mem::take(&mut state.has_waited) || self.control.has_inactive();
        if self.config.steals && (moved > 1 || may_be_needed) {
            self.control.start_another(|| moved > 1 || self.others_have_batches(worker));
        }
    }

    /// Moves half of the batches of the first other worker that has some, and takes one of them.
    fn steal(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
    ) -> Option<BoxedBatch<S::Item>> {
        if !self.config.steals {
            return None;
        }
        if let Some(stock) = &self.stock {
            let is_moved = self.steal_in_stock(stock, worker, state);
            return is_moved.then(|| self.queues[worker].0.take()).flatten();
        }
        let push_end = state.push_end.as_ref()?;
        let steal_from = |queues: &[Padded<WorkerQueue<S::Item>>]| {
            let move_from = |victim: usize| queues[victim].0.move_some(push_end, 2);
            let first = worker.min(queues.len());
            victims(worker, first, queues.len()).map(move_from).find(|&moved| moved > 0)
        };
        let moved = steal_from(&self.local_queues).or_else(|| steal_from(&self.queues))?;
        self.queues[worker].0.count_stolen(moved);
        self.start_another(worker, state, moved);
        self.local_queues.get(worker).unwrap_or(&self.queues[worker]).0.take()
    }

    /// Moves half of the batches of another worker to the queue of this one. Returns whether it has moved any.
    ///
    /// Several thieves at one queue take its cache lines from each other at every batch, so that all of them take many times
    /// as long. So each passes over queues where another one is, and looks again after a moment. That one may have lost its
    /// processor; therefore it is not waited for any longer in the end.
    fn steal_in_stock(
        &self,
        stock: &Stock,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
    ) -> bool {
        for round in 0..=ROUNDS_ALONE {
            let (mut others, alone) = (false, round < ROUNDS_ALONE);
            for victim in stock.any.after(self.first_victim(worker, state)) {
                match self.move_from(stock, worker, state, Share { victim, part: 2, alone }) {
                    Moved::Some => return true,
                    Moved::Nothing => {}
                    Moved::Contended => others = true,
                }
            }
            if !others {
                break;
            }
            (0..PAUSES).for_each(|_| pause());
        }
        false
    }

    /// Returns after which worker this one looks for a victim. It is another one each time: all thieves that begin at their own
    /// number find the same one, where few workers have batches.
    fn first_victim(&self, worker: usize, state: &WorkerState<S::Item, G::Out>) -> usize {
        let mixed = (state.now ^ (worker as u64) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize % self.queues.len()
    }

    /// Moves a quarter of the batches of a worker that has many, while another thread pulls from the source. Returns whether it
    /// has moved any.
    pub(crate) fn move_from_plenty(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
    ) -> bool {
        let Some(stock) = &self.stock else { return false };
        let victim = stock.plenty.after(self.first_victim(worker, state)).next();
        let victim = victim.filter(|victim| self.queues[*victim].0.len() >= PLENTY / 2);
        victim.is_some_and(|victim| {
            let quarter = Share { victim, part: 4, alone: true };
            self.move_from(stock, worker, state, quarter) == Moved::Some
        })
    }

    /// Moves a part of the batches of another worker to the queue of this one.
    fn move_from(
        &self,
        stock: &Stock,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
        share: Share,
    ) -> Moved {
        let queue = &self.queues[share.victim].0;
        if share.victim == worker || queue.is_empty() {
            return Moved::Nothing;
        }
        if share.alone && !queue.begin_move() {
            return Moved::Contended;
        }
        state.note_push(stock, worker);
        let Some(push_end) = &state.push_end else { unreachable!("the queues are deques") };
        let moved = stock.while_moving(worker, || queue.move_some(push_end, share.part));
        if share.alone {
            queue.end_move();
        }
        if moved == 0 {
            let is_empty = push_end.is_empty();
            state.note_taken(stock, worker, is_empty);
            return Moved::Nothing;
        }
        (state.left, state.refill_at) = (moved, 0);
        self.queues[worker].0.count_stolen(moved);
        self.start_another(worker, state, moved);
        Moved::Some
    }

    /// Takes the heaviest batch of all queues that this worker may take from. Of equally heavy ones, it
    /// prefers its own.
    ///
    /// A batch is passed over if it is younger than the oldest one by as many batches as may be in flight, or
    /// more. So fewer later batches than that are taken before any batch. (The looks take no lock. If a batch
    /// is pushed between two of them, each worker may miss it once.)
    fn find_heaviest(&self, worker: usize) -> Option<BoxedBatch<S::Item>> {
        let (own, shared) = (&self.queues[worker].0, &self.shared_queue.0);
        loop {
            let others = self.queues.iter().map(|queue| &queue.0).filter(|_| self.config.steals);
            let all = || {
                let queues = others.clone().chain([shared, own]);
                queues.filter_map(|queue| Some((queue.front()?, queue)))
            };
            let (front, oldest) = all().min_by_key(|(front, _)| front.oldest)?;
            let limit = front.oldest.saturating_add(self.control.max_batches() as u64);
            // `max_by_key` returns the last of several maxima: `own` comes last.
            let allowed = all().filter(|(front, _)| front.number < limit);
            let heaviest = allowed.max_by_key(|(front, _)| front.weight);
            let queue = heaviest.map_or(oldest, |(_, queue)| queue);
            // Another worker may have taken the batch since, or what was seen of the queue was out of date.
            if let Some(batch) = queue.take_below(limit) {
                if !ptr::eq(queue, own) && !ptr::eq(queue, shared) {
                    own.count_stolen(1);
                }
                return Some(batch);
            }
        }
    }

    /// Returns whether the source has ended and no queue has a batch any more (W6). It is a hint.
    pub(crate) fn has_nothing_left(&self) -> bool {
        let has_batches = |worker: usize| !self.queues[worker].0.is_empty();
        self.control.source_has_ended()
            && self.shared_queue.0.is_empty()
            && self.stock.as_ref().is_some_and(|stock| stock.is_empty(has_batches))
    }

    /// Returns whether there is a batch in the queues that this worker may take, or something in a section to go on with.
    pub(crate) fn has_batches_for(&self, worker: usize) -> bool {
        G::SECTIONS > 0 && self.control.has_ready()
            || self.queued(worker) > 0
            || !self.shared_queue.0.is_empty()
            || self.config.steals && self.others_have_batches(worker)
    }

    /// Returns whether there is a batch in the queue of another worker.
    pub(crate) fn others_have_batches(&self, worker: usize) -> bool {
        let has_batches = |other| other != worker && self.queued(other) > 0;
        match &self.stock {
            Some(stock) => stock.any.after(worker).any(has_batches),
            None => (0..self.queues.len()).any(has_batches),
        }
    }
}
