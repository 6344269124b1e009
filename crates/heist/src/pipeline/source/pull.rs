//! How a thread takes batches from the source (steps S1 to S3 of `../README.md`), and how many a worker takes
//! at once.

use std::mem;

use super::Source;
use super::batcher::{Batcher, Outcome};
use crate::pipeline::control::{Grant, NextPull, PullPermission, Pulled, Turn};
use crate::pipeline::dispatch::{Batch, BoxedBatch};
use crate::pipeline::run::{Run, Steps, WorkerState};
use crate::sync::prefetch_for_write;

/// A worker takes batches for about this many nanoseconds of work from the source at once, if the source
/// gives them as fast. That is long enough that the cost of getting access to the source does not count, and
/// short enough that the other workers need not wait for long. A guess.
const PULL_TIME: u64 = 60_000;
/// In a large pool, a worker takes more: as much as that again for each of so many workers. To hand the source from one worker
/// to the next takes as long as to cut many batches, and the more workers there are, the less time is left for that. A guess.
const WORKERS_PER_PULL_TIME: u64 = 16;
/// A worker takes at most this many bytes of items at once. With more, the first items would no longer be in
/// the processor's own caches when the last ones are cut. A guess.
const PULL_BYTES: usize = 128 << 10;
/// A worker of a large pool takes at most this many batches at its first pull. A guess.
const FIRST_PULL: usize = 32;
/// A worker makes at most this many empty batches before a pull.
const MAX_PREPARED: usize = 128;
/// The memory for the items of such a batch is allocated as well if it is no more than this. Larger batches take longer to cut
/// anyway.
const PREPARED_BYTES: usize = 4096;
/// A worker that finds another one pulling gives up if the source is not handed on while it looks this often whether it is
/// its turn: for some tens of microseconds.
const LOOKS_AT_SOURCE: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2_000 };

impl<S, G> Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Takes batches from the source to the worker's queue. Returns `false` if the worker has nothing to do
    /// here.
    pub(crate) fn pull(&self, worker: usize, state: &mut WorkerState<S::Item, G::Out>) -> bool {
        // S1.
        let grant = match self.control.try_pull() {
            PullPermission::Granted(grant) => grant,
            PullPermission::Busy => {
                if self.move_from_plenty(worker, state) {
                    return true;
                }
                self.prepare_pull(worker, state);
                let turn = self.control.wait_for_turn(worker, LOOKS_AT_SOURCE);
                state.now = self.now();
                state.has_waited = true;
                match turn {
                    Turn::Granted(grant) => grant,
                    Turn::Free => return true,
                    Turn::Busy => return false,
                }
            }
            PullPermission::Denied => return false,
        };
        // The queue was found empty: what is left by this count was taken by others.
        state.left = 0;
        self.pull_granted(worker, state, grant, false);
        // B5. If the source goes on, workers were started when that was decided (S3, S5, S6).
        if !self.control.source_goes_on() {
            self.start_another(worker, state, 0);
        }
        true
    }

    /// Takes further batches from the source to the queue of a worker that still has some, if no other thread does and there
    /// is room. So a worker of a large pool need not wait for its turn when it has run out of batches.
    pub(crate) fn refill(&self, worker: usize, state: &mut WorkerState<S::Item, G::Out>) {
        self.prepare_pull(worker, state);
        if let PullPermission::Granted(grant) = self.control.try_pull() {
            self.pull_granted(worker, state, grant, true);
        }
    }

    /// Makes as many empty batches as the worker of a large pool may need for its next pull, and fetches the places for them in
    /// its queue. Otherwise it would do so while the others wait for the source.
    fn prepare_pull(&self, worker: usize, state: &mut WorkerState<S::Item, G::Out>) {
        if !self.is_large() {
            return;
        }
        let worth = self.batches_worth_a_pull(worker, state, self.control.max_batches());
        let most = worth.min(self.most_at_first(state)).min(MAX_PREPARED);
        if let Some(push_end) = &state.push_end {
            push_end.next_places(most).for_each(prefetch_for_write);
        }
        let bytes = size_of::<S::Item>().saturating_mul(self.config.batch);
        let items = if bytes <= PREPARED_BYTES { self.config.batch } else { 0 };
        while state.spares.len() < most {
            state.spares.push(Batch::with_capacity(items));
        }
    }

    /// Takes as many batches as are worth it, and no more than are granted. The worker may still have other batches.
    fn pull_granted(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
        mut grant: Grant,
        has_others: bool,
    ) {
        let most = self.batches_worth_a_pull(worker, state, grant.batches);
        let most = if self.is_large() { most.min(self.most_at_first(state)) } else { most };
        if let Some(stock) = &self.stock {
            state.note_push(stock, worker);
        }
        let (queue, push_end) = (&self.queues[worker].0, state.push_end.as_ref());
        let mut batcher = self.take_batcher();
        // S2.
        let push = |batch, last: bool| {
            queue.push(push_end, batch);
            // The last batch is for this worker, unless it has other ones. Any other one is announced, because it may
            // take long to cut the next.
            if !last || has_others {
                self.control.batch_pushed(None);
            }
        };
        let pulled = self.cut_batches(&mut batcher, &mut grant, most, &mut state.spares, push);
        // S3.
        self.put_batcher(batcher);
        let batches = pulled.batches;
        self.control.finish_pull(pulled, NextPull::Any(worker));
        // The next thread pulls already.
        let began = mem::replace(&mut state.now, self.now());
        state.cut_time = (state.now - began) / batches.max(1);
        state.last_pull = batches as usize;
        state.left += state.last_pull;
        if let Some(stock) = &self.stock {
            state.note_pull(stock, worker);
        }
        state.refill_at = if self.is_large() { state.left / 2 } else { 0 };
    }

    /// Cuts at most `most` batches, and pushes each of them before it cuts the next (S2). `push` gets the
    /// batch, and whether it is the last one.
    pub(crate) fn cut_batches(
        &self,
        batcher: &mut Batcher<S>,
        grant: &mut Grant,
        most: usize,
        spares: &mut Vec<BoxedBatch<S::Item>>,
        push: impl Fn(BoxedBatch<S::Item>, bool),
    ) -> Pulled {
        let (mut batches, mut items) = (0, 0);
        let (after, next_weight) = loop {
            let mut batch = self.empty_batch(spares);
            let before = grant.taken;
            let number = grant.next_batch + batches;
            let stop = || self.control.cutoff() <= number;
            let outcome = batcher.cut(&mut batch.items, grant, &stop);
            let count = batch.items.len();
            batch.first = batcher.count(count);
            let next = batch.first + count as u64;
            if count == 0 {
                spares.push(batch);
                break outcome.into_after_pull(number, next);
            }
            batch.number = number;
            batch.weight = grant.taken - before;
            items += count as u64;
            batches += 1;
            let enough = batches == most as u64 || stop();
            let last = enough || !matches!(outcome, Outcome::More);
            push(batch, last);
            if last {
                break outcome.into_after_pull(number, next);
            }
        };
        Pulled { batches, items, weight: grant.taken, next_weight, after }
    }

    /// Returns how many batches a worker of a large pool takes at once at most: few while there are inactive workers, and then
    /// twice as many as the last time. So all workers have some batches soon, and the pulls become fewer when they have.
    fn most_at_first(&self, state: &WorkerState<S::Item, G::Out>) -> usize {
        if self.control.has_inactive() {
            FIRST_PULL
        } else {
            state.last_pull.saturating_mul(2).max(FIRST_PULL)
        }
    }

    /// Returns how many batches a worker takes from the source at once: the other workers should not wait for
    /// the source any longer than this worker needs to process the batches.
    fn batches_worth_a_pull(
        &self,
        worker: usize,
        state: &WorkerState<S::Item, G::Out>,
        room: usize,
    ) -> usize {
        let workers = self.queues.len();
        let batch_time = match self.queues[worker].0.batch_time() {
            0 => self.control.batch_time(),
            time => time,
        };
        // Without stealing, batches that are queued while the source takes long would be this worker's alone.
        if workers == 1 || !self.config.steals || batch_time == 0 {
            return 1;
        }
        let time = PULL_TIME * (workers as u64 / WORKERS_PER_PULL_TIME).max(1);
        let in_time = time / batch_time.max(state.cut_time);
        let in_time = usize::try_from(in_time).unwrap_or(usize::MAX);
        let bytes = size_of::<S::Item>().saturating_mul(self.config.batch);
        let share =
            if self.is_large() { room.saturating_mul(2) / workers } else { room / (2 * workers) };
        in_time.min(share).min(PULL_BYTES / bytes.max(1)).max(1)
    }
}
