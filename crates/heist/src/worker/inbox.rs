//! Near tasks: who runs what was spawned near a worker, and who counts it.
//!
//! A near task is in the inbox of its worker (`queues/inboxes.rs`), and so is a part of a scope that is near a worker. The worker
//! takes from its inbox when its own queues are empty, before it searches. Others take from there
//!
//! * when they have found nothing else, and have seen something in an inbox at [`PATIENCE`] looks in a row: until then the
//!   worker itself had its chance;
//! * by turns (`turn`), if the oldest entry was the same at two of their looks at the same inbox;
//! * while they wait: a part that they wait for, when they have found no other one for a while (W5, W6).
//!
//! `README.md`, "Near tasks", has the argument.

use crate::idle::Announced;
use crate::queues::NO_GROUP;
use crate::stats::Tally;
use crate::task::{Started, Task};
use crate::worker::core::Core;
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::shared::{Shared, count_wake_ups};
use crate::worker::thread::WorkerThread;

/// How many looks in a row a worker that searches leaves near tasks to the worker that they are near. All looks together take
/// some microseconds, about as long as it takes that worker to come back from a short task. A guess. Few under a checker, so
/// that it explores what comes after the looks.
const PATIENCE: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 32 };

/// What a task is near to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Affinity {
    Worker(usize),
    Key(u64),
}

impl Affinity {
    /// Returns the worker, of that many.
    pub(crate) fn among(self, workers: usize) -> usize {
        match self {
            Self::Worker(worker) => worker % workers,
            Self::Key(key) => bucket(key, workers),
        }
    }
}

/// Returns a number below `buckets` for that key, by the consistent hash of Lamping and Veach. If there is one bucket more, a key
/// stays in its bucket or goes to the new one.
fn bucket(mut key: u64, buckets: usize) -> usize {
    let (mut bucket, mut next) = (0, 0);
    while next < buckets as u64 {
        bucket = next;
        key = key.wrapping_mul(0x27BB_2EE6_87B0_B0FD).wrapping_add(1);
        // Exact: the numbers of workers have 16 bits, and the divisor has 31.
        next = ((bucket + 1) << 31) / ((key >> 33) + 1);
    }
    bucket as usize
}

/// How often in a row a worker that searches has seen something in an inbox.
#[derive(Default)]
pub(crate) struct Patience(u32);

impl Patience {
    /// Returns whether the worker goes on to look, because it has left something to another worker so far.
    pub(crate) fn goes_on(&self) -> bool {
        self.0 > 0
    }
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns the worker that is near, of those that are in use. An engine has none.
    pub(crate) fn near_worker(&self, affinity: Affinity) -> Option<usize> {
        Q::Waiting::NEAR.then(|| affinity.among(self.workers_in_use()))
    }

    /// Pushes a new task that is near that worker, from a thread outside of the pool, unless the pool is stopping.
    pub(crate) fn push_near_unless_stopping(&self, worker: usize, task: Task) {
        self.must_be_here();
        if self.idle.is_stopping() {
            // It is not counted. Dropping it notifies the thread that waits for it.
            return drop(task);
        }
        self.push_near_from_outside(worker, task);
    }

    /// Pushes a new task that is near that worker, from a thread outside of the pool.
    pub(crate) fn push_near_from_outside(&self, worker: usize, task: Task) {
        let tally = self.ledger.of_outsiders(self.clusters.of(worker));
        self.push_near(worker, task, NO_GROUP, tally);
    }

    /// Pushes something new to the inbox of that worker, and wakes that worker if it sleeps (step P6).
    pub(crate) fn push_near(&self, worker: usize, task: Task, group: usize, tally: Tally<'_>) {
        tally.one(|block| &block.tasks_submitted);
        if group != NO_GROUP {
            tally.one(|block| &block.publications);
        }
        self.inboxes.push(worker, task, group);
        match self.idle.near_added(|| self.inboxes.holder(worker)) {
            Announced::Quiet => {}
            Announced::Called => count_wake_ups(tally, 1),
            Announced::Ended => self.sweep(),
        }
    }

    /// Returns whether there is a task or a part that belongs to no thread.
    pub(crate) fn has_remote(&self) -> bool {
        self.queues.has_remote() || self.inboxes.any()
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Pushes something new that is near that worker, and is a part of that group.
    pub(crate) fn push_near(&self, worker: usize, task: Task, group: usize) {
        self.pick_up_core();
        self.with_tally(|tally| self.shared.push_near(worker, task, group, tally));
    }

    /// Returns the oldest task that is near this worker.
    #[inline]
    pub(crate) fn next_near(&self, core: &Core) -> Option<Task> {
        let any = Q::Waiting::NEAR && self.shared.inboxes.any();
        if any { self.look_into_inbox(core) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn look_into_inbox(&self, core: &Core) -> Option<Task> {
        let task = self.shared.inboxes.pop(core.index)?;
        // It must be fair to what came from outside.
        self.has_spawned.set(true);
        Some(task)
    }

    /// Returns a task that is near another worker, because this one has nothing else to do.
    pub(crate) fn take_near_others(&self, core: &Core) -> Option<Task> {
        let inboxes = &self.shared.inboxes;
        if inboxes.any() { inboxes.pop_of_others(core.index) } else { None }
    }

    /// Looks at the inboxes once in a search. Returns a task that is near another worker if that has left it alone for long.
    pub(crate) fn take_near_in_time(&self, core: &Core, patience: &mut Patience) -> Option<Task> {
        if !self.shared.inboxes.any() {
            patience.0 = 0;
            return None;
        }
        patience.0 += 1;
        if patience.0 < PATIENCE {
            return None;
        }
        patience.0 = 0;
        self.take_near_others(core)
    }

    /// Takes the turn for the inboxes of others: at every other visit, returns the oldest entry that the visit before has seen.
    pub(crate) fn take_left_alone(&self, core: &Core, visit: usize) -> Option<Task> {
        let inboxes = &self.shared.inboxes;
        // What was seen at the last visit says nothing of any visit but this one.
        let seen = core.turns.seen_near.take();
        if !inboxes.any() {
            return None;
        }
        let worker = visit / 2 % inboxes.count();
        if worker == core.index {
            return None;
        }
        if visit % 2 == 0 {
            core.turns.seen_near.set(inboxes.look(worker));
            return None;
        }
        inboxes.pop_if_left(worker, seen?)
    }

    /// Takes a part of that group that is near this worker, and starts it.
    pub(crate) fn find_near_part(&self, group: usize) -> Option<Started> {
        let worker = self.worker()?;
        self.find_part_near(worker, group)
    }

    /// Takes a part of that group that is near any worker, and starts it.
    pub(crate) fn find_part_near_any(&self, group: usize) -> Option<Started> {
        if !self.shared.inboxes.any_part() {
            return None;
        }
        (0..self.shared.inboxes.count()).find_map(|worker| self.find_part_near(worker, group))
    }

    fn find_part_near(&self, worker: usize, group: usize) -> Option<Started> {
        let inboxes = &self.shared.inboxes;
        if !inboxes.any_part() {
            return None;
        }
        // A stale entry is dropped by `start`, and there may be another part behind it.
        std::iter::from_fn(|| inboxes.take(worker, group)).find_map(Task::start)
    }

    /// Counts a task that runs on this thread and is near that worker.
    pub(crate) fn count_near(&self, worker: usize) {
        let is_there = self.worker() == Some(worker);
        self.with_tally(|tally| {
            if is_there {
                tally.one(|block| &block.near_tasks_kept);
            } else {
                tally.one(|block| &block.near_tasks_taken);
            }
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_index_counts_modulo_the_workers() {
        let near = |worker: usize| Affinity::Worker(worker).among(3);
        assert_eq!([0, 1, 2, 3, 7, usize::MAX].map(near), [0, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn keys_are_spread_over_all_workers() {
        for workers in [1, 2, 3, 8, 100] {
            let mut counts = vec![0; workers];
            (0..1_000 * workers as u64).for_each(|key| counts[bucket(key, workers)] += 1);
            assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        }
        assert!(bucket(u64::MAX, 0xFFFF) < 0xFFFF);
    }

    #[test]
    fn a_key_stays_or_goes_to_the_new_worker() {
        for key in (0..2_000).map(|n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
            for workers in 1..40 {
                let (before, after) = (bucket(key, workers), bucket(key, workers + 1));
                assert!(after == before || after == workers);
            }
        }
    }
}
