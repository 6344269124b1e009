//! How a worker picks its next task.
//!
//! It takes its own newest task first, or at times a task from the injector. If it has none, it steals the oldest
//! tasks of the other workers. If they have none, it takes tasks from the injector.

use crate::fork::raid;
use crate::queues::Found;
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::shared::Shared;

/// How often one search tries every victim, if another thread was in the way the first time.
const ROUNDS: usize = 2;

/// How often one search tries the injector, if another thread is in the way.
const INJECTOR_TRIES: usize = 4;

impl<Q: PoolQueues> Core<Q> {
    /// Returns a task that this worker can take without disturbing another worker.
    #[inline]
    pub(crate) fn next(&self, shared: &Shared<Q>) -> Option<Task> {
        let tally = self.tally();
        if let Some(interval) = Q::Waiting::INJECTOR_INTERVAL {
            if self.is_turn(interval) {
                if let Some(task) = shared.queues.take_one_injected(tally) {
                    tally.one(|block| &block.injector_pops);
                    record(EventKind::InjectorTake { tasks: 1 });
                    return Some(task);
                }
            }
        }
        let task = shared.queues.pop(&self.own, tally).or_else(|| self.next_broadcast(shared))?;
        tally.one(|block| &block.local_pops);
        Some(task)
    }

    /// Returns the next task from this worker's broadcast queue.
    fn next_broadcast(&self, shared: &Shared<Q>) -> Option<Task> {
        let task = shared.queues.pop_broadcast(self.index, self.tally())?;
        if !shared.is_attached(self.index) {
            shared.idle.leave_away();
        }
        Some(task)
    }

    /// Searches the other workers and then the injector. The worker's own deque is empty.
    pub(crate) fn search_others(&self, shared: &Shared<Q>) -> Option<Task> {
        // A thread that handed off this core in the middle of a join may have left published jobs in it.
        let tally = self.tally();
        let left = shared.queues.pop_job(&self.own, tally);
        let found = left.or_else(|| self.steal(shared)).or_else(|| self.take_injected(shared));
        Q::Waiting::after_search(self, shared, found.is_some());
        found
    }

    /// Searches the injector and then the other workers. A worker that has just been woken does this: if it was woken
    /// for work from outside, the others' deques are empty and not in its cache.
    pub(crate) fn search_injector_first(&self, shared: &Shared<Q>) -> Option<Task> {
        let found = self
            .next_broadcast(shared)
            .or_else(|| self.take_injected(shared))
            .or_else(|| self.steal(shared));
        Q::Waiting::after_search(self, shared, found.is_some());
        found
    }

    fn steal(&self, shared: &Shared<Q>) -> Option<Task> {
        let workers = shared.config.workers;
        if !Q::STEALS || workers == 1 {
            return None;
        }
        let tally = self.tally();
        for _ in 0..ROUNDS {
            let mut contended = false;
            for victim in self.victims(workers) {
                match self.steal_job(shared, victim) {
                    Found::Task(task, _) => return Some(task),
                    Found::Nothing => {}
                    Found::Contended => contended = true,
                }
                match shared.queues.steal(&self.own, victim, tally) {
                    Found::Task(task, more) => {
                        self.count_steal(victim, more);
                        self.share(shared, more);
                        return Some(task);
                    }
                    Found::Nothing => {}
                    Found::Contended => contended = true,
                }
            }
            if !contended {
                break;
            }
        }
        None
    }

    fn steal_job(&self, shared: &Shared<Q>, victim: usize) -> Found {
        let tally = self.tally();
        tally.one(|block| &block.steal_attempts);
        let stolen = shared.queues.steal_job(victim, tally);
        if matches!(stolen, Found::Task(..)) {
            self.count_steal(victim, 0);
            // It was the last published job, and other workers may want more of them.
            if !shared.queues.has_job(victim) {
                if shared.keeps_one_published() {
                    shared.demands[victim].raise_after_steal();
                } else {
                    shared.demands[victim].raise();
                }
            }
        }
        stolen
    }

    fn count_steal(&self, victim: usize, more: usize) {
        let tally = self.tally();
        tally.one(|block| &block.successful_steals);
        tally.add(|block| &block.tasks_moved, 1 + more as u64);
        record(EventKind::Steal { victim, tasks: 1 + more });
    }

    /// Returns a job for a thread that waits for another part of its fork. It looks first at the jobs of the worker
    /// that runs the awaited job (`thief`), because they descend from the awaited one; then at this worker's own
    /// jobs; then at those of all other workers.
    pub(crate) fn find_job(&self, shared: &Shared<Q>, thief: usize) -> Option<Task> {
        let workers = shared.config.workers;
        if thief < workers && thief != self.index {
            if let Found::Task(job, _) = self.steal_job(shared, thief) {
                return Some(job);
            }
        }
        if let Some(job) = shared.queues.pop_job(&self.own, self.tally()) {
            return Some(job);
        }
        let steal = |victim| self.steal_job(shared, victim);
        self.victims(workers).map(steal).find_map(|stolen| match stolen {
            Found::Task(job, _) => Some(job),
            Found::Nothing | Found::Contended => None,
        })
    }

    /// Takes a private job from a worker that has not looked at its demand for a while, if the policy allows raids.
    pub(crate) fn raid(&self, shared: &Shared<Q>) -> Option<Task> {
        if !Q::Waiting::RAIDS {
            return None;
        }
        let raid = |victim: usize| Some((raid::raid(&shared.demands[victim])?, victim));
        let (task, victim) = self.victims(shared.config.workers).find_map(raid)?;
        let tally = self.tally();
        tally.one(|block| &block.tasks_submitted);
        tally.one(|block| &block.publications);
        self.count_steal(victim, 0);
        Some(task)
    }

    fn take_injected(&self, shared: &Shared<Q>) -> Option<Task> {
        let tally = self.tally();
        for _ in 0..INJECTOR_TRIES {
            match shared.queues.take_injected(&self.own, tally) {
                Found::Task(task, more) => {
                    tally.add(|block| &block.injector_pops, 1 + more as u64);
                    record(EventKind::InjectorTake { tasks: 1 + more });
                    self.share(shared, more);
                    return Some(task);
                }
                Found::Nothing => break,
                Found::Contended => {}
            }
        }
        None
    }

    /// Wakes another worker if this one has moved more tasks to its deque than it can run at once. So a burst of work
    /// wakes the workers one after the other.
    fn share(&self, shared: &Shared<Q>, more: usize) {
        if more > 0 && shared.config.workers > 1 {
            shared.announce(self.tally());
        }
    }
}
