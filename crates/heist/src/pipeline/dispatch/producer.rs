//! The loop of the producer thread, and its choice of a queue for each batch.

use std::cell::Cell;

use super::batch::BoxedBatch;
use super::distribution::Distribution;
use super::queue::PushEnd;
use crate::pipeline::control::NextPull;
use crate::pipeline::run::{Run, Steps};
use crate::pipeline::source::Source;

/// With [`Distribution::Hybrid`], the length of a worker's queue is read once for this many of its batches.
const LENGTH_INTERVAL: u64 = 8;
/// The largest number of batches that are pushed during one pull.
const MAX_PER_PULL: usize = 64;

impl<S, G> Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Distributes the items of the source until the source or the run has ended.
    pub(crate) fn produce(&self) {
        let mut batcher = self.take_batcher();
        let push_ends = self.take_push_ends();
        let full = vec![Cell::new(false); self.queues.len()];
        let mut spares = Vec::new();
        let mut granted = None;
        // The single queue is the baseline for comparison, and it gets its batches one at a time.
        let shared = self.config.distribution == Distribution::Shared;
        let most = if shared { 1 } else { MAX_PER_PULL };
        loop {
            let wait = || self.control.wait_to_pull(|| batcher.deadline());
            let Some(mut grant) = granted.take().or_else(wait) else { break };
            let most = grant.batches.min(most);
            let push =
                |batch, _| self.control.batch_pushed(self.distribute(&push_ends, &full, batch));
            let pulled = self.cut_batches(&mut batcher, &mut grant, most, &mut spares, push);
            granted = self.control.finish_pull(pulled, NextPull::Own);
        }
        self.put_batcher(batcher);
    }

    /// Pushes a batch to the queue that the distribution says. Returns the worker whose queue that is, or
    /// `None` if it is the queue that all workers share.
    fn distribute(
        &self,
        push_ends: &[Option<PushEnd<S::Item>>],
        full: &[Cell<bool>],
        batch: BoxedBatch<S::Item>,
    ) -> Option<usize> {
        let turn = (batch.number % self.queues.len() as u64) as usize;
        let worker = match self.config.distribution {
            Distribution::Shared => None,
            Distribution::Pull | Distribution::RoundRobin => Some(turn),
            Distribution::Hybrid => {
                Some(turn).filter(|turn| !self.has_plenty(*turn, batch.number, full))
            }
            Distribution::LoadAware => Some(self.least_loaded(turn)),
        };
        match worker {
            Some(worker) => self.queues[worker].0.push(push_ends[worker].as_ref(), batch),
            None => self.shared_queue.0.push(None, batch),
        }
        worker
    }

    /// Returns whether the worker has half of what it would have if all batches in flight were queued evenly.
    ///
    /// The length is read only once in [`LENGTH_INTERVAL`] batches, because it is in the cache of another
    /// processor. `full` keeps the answers.
    fn has_plenty(&self, worker: usize, batch: u64, full: &[Cell<bool>]) -> bool {
        let since_read = (batch / self.queues.len() as u64) % LENGTH_INTERVAL;
        if since_read == 0 {
            let plenty = (self.control.max_batches() / (2 * self.queues.len())).max(1);
            full[worker].set(self.queued(worker) >= plenty);
        }
        full[worker].get()
    }

    /// Returns the worker that is expected to run out of work first. Of several, it is the one whose turn it
    /// is, or the next one after that.
    fn least_loaded(&self, turn: usize) -> usize {
        let (now, workers) = (self.now(), self.queues.len());
        let from_turn = (turn..workers).chain(0..turn);
        from_turn
            .min_by_key(|worker| self.queues[*worker].0.estimate_busy(self.queued(*worker), now))
            .expect("a pool has at least one worker")
    }
}
