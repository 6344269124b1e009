//! Priorities: when a worker starts a task that is not of normal priority.
//!
//! A worker looks for tasks of high priority before everything else, at the end of each task. So a task of high priority starts
//! before all others that are queued, on the next worker that becomes free. A worker looks for tasks of low priority when it
//! has found nothing else.
//!
//! So that every priority makes progress, a worker that has started [`MOST_HIGH`](Priority::MOST_HIGH) tasks of high priority
//! in a row looks for others next; and one that has started [`LOW_SHARE`](Priority::LOW_SHARE) less one tasks since the last
//! one of low priority, while tasks of either priority were waiting, looks for one of low priority before those of normal
//! priority. The parts of started work count as normal here.
//!
//! As long as no task of such a priority waits, all of this is one load of a word that nobody writes.

use std::cell::Cell;

use crate::priority::{Priority, Rank};
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::policy::PoolQueues;
use crate::worker::thread::WorkerThread;

/// What a worker has started while tasks that are not of normal priority were waiting.
#[derive(Default)]
pub(crate) struct Ranks {
    /// The number of tasks of high priority since the last other one.
    high: Cell<u32>,
    /// The number of tasks since the last one of low priority.
    since_low: Cell<u32>,
    /// Has the worker left tasks of high priority where they are, because it is the turn of others?
    passed_over: Cell<bool>,
}

impl Ranks {
    /// Counts a task that is about to start. `None` stands for one of normal priority.
    fn count(&self, rank: Option<Rank>) {
        self.high.set(if rank == Some(Rank::High) { self.high.get() + 1 } else { 0 });
        let since_low = self.since_low.get();
        self.since_low.set(if rank == Some(Rank::Low) { 0 } else { since_low.saturating_add(1) });
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Returns a task that is not of normal priority, if its turn comes before everything else.
    #[inline(always)]
    pub(crate) fn next_ranked(&self, core: &Core) -> Option<Task> {
        if self.shared.queues.has_ranked() {
            return self.look_for_ranked(core);
        }
        // What is next is a task of normal priority, or nothing.
        core.ranks.high.set(0);
        core.ranks.passed_over.set(false);
        None
    }

    #[cold]
    #[inline(never)]
    fn look_for_ranked(&self, core: &Core) -> Option<Task> {
        let ranks = &core.ranks;
        let is_others_turn = ranks.high.get() >= Priority::MOST_HIGH;
        ranks.passed_over.set(is_others_turn);
        let is_turn_of_low = ranks.since_low.get() >= Priority::LOW_SHARE - 1;
        let high = if is_others_turn { None } else { self.pop_ranked(core, Rank::High) };
        let low = || if is_turn_of_low { self.pop_ranked(core, Rank::Low) } else { None };
        let task = high.or_else(low);
        if task.is_none() {
            // If the worker finds no task of normal priority, it comes back (`next_of_any_rank`), and counts that one.
            ranks.count(None);
        }
        task
    }

    /// Returns a task that is not of normal priority, because there is nothing else.
    #[inline(always)]
    pub(crate) fn next_of_any_rank(&self, core: &Core) -> Option<Task> {
        if !self.shared.queues.has_ranked() {
            return None;
        }
        let in_order = if core.ranks.passed_over.take() {
            [Rank::Low, Rank::High]
        } else {
            [Rank::High, Rank::Low]
        };
        in_order.into_iter().find_map(|rank| self.pop_ranked(core, rank))
    }

    fn pop_ranked(&self, core: &Core, rank: Rank) -> Option<Task> {
        let tally = core.tally();
        let task = self.shared.queues.pop_ranked(rank, tally)?;
        if task.will_run() {
            core.ranks.count(Some(rank));
        }
        tally.one(|block| &block.injector_pops);
        record(EventKind::InjectorTake { tasks: 1 });
        Some(task)
    }
}
