//! How a worker picks its next task: its own newest, now and then from outside first, then others'
//! oldest, then from outside.

use crate::fork::raid;
use crate::queues::{Found, Queues};
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::shared::Shared;

/// Every so many turns the injector comes first, so that work from outside is not starved by a
/// worker that feeds itself. A prime, so that it does not beat in time with anything.
const INJECTOR_INTERVAL: u32 = 61;

/// Of so many looks in vain one says so.
const WANT_INTERVAL: u32 = 8;

/// How often every victim is tried in one hunt.
const ROUNDS: usize = 2;

/// How often one hunt tries the injector when somebody is in the way.
const INJECTOR_TRIES: usize = 4;

impl<Q: Queues> Core<Q> {
    /// What is at hand: no other worker is troubled.
    #[inline]
    pub(crate) fn next(&self, shared: &Shared<Q>) -> Option<Task> {
        let tally = self.tally();
        if !Q::NESTS
            && self.is_turn(INJECTOR_INTERVAL)
            && let Some(task) = shared.queues.take_one_injected(tally)
        {
            tally.one(|block| &block.injector_pops);
            record(EventKind::InjectorTake { tasks: 1 });
            return Some(task);
        }
        let task = shared.queues.pop(&self.own, tally).or_else(|| self.next_broadcast(shared))?;
        tally.one(|block| &block.local_pops);
        Some(task)
    }

    /// What is for this worker alone.
    fn next_broadcast(&self, shared: &Shared<Q>) -> Option<Task> {
        let task = shared.queues.pop_broadcast(self.index, self.tally())?;
        if !shared.is_attached(self.index) {
            shared.idle.leave_away();
        }
        Some(task)
    }

    /// From the others, and then from outside. Nothing is at hand.
    pub(crate) fn search_others(&self, shared: &Shared<Q>) -> Option<Task> {
        // Of a thread that has given its core away in the middle of a join there may be something.
        let tally = self.tally();
        let left = shared.queues.pop_job(&self.own, tally);
        let found = left.or_else(|| self.steal(shared)).or_else(|| self.take_injected(shared));
        self.note_search(shared, found)
    }

    /// The other way round, for one that has just been woken: if it was from outside, the others' deques
    /// are cold and empty.
    pub(crate) fn search_injector_first(&self, shared: &Shared<Q>) -> Option<Task> {
        let found = self
            .next_broadcast(shared)
            .or_else(|| self.take_injected(shared))
            .or_else(|| self.steal(shared));
        self.note_search(shared, found)
    }

    /// Whoever has found nothing says so to those who could share; in an engine the first time and then now and then,
    /// because an answer that comes to nothing costs its owner as much as ten joins.
    fn note_search(&self, shared: &Shared<Q>, found: Option<Task>) -> Option<Task> {
        if Q::NESTS && found.is_some() {
            self.make_turn(WANT_INTERVAL);
        } else if found.is_none() && (!Q::NESTS || self.is_turn(WANT_INTERVAL)) {
            shared.raise_demand(self.index);
        }
        found
    }

    fn steal(&self, shared: &Shared<Q>) -> Option<Task> {
        let workers = shared.config.workers;
        if !Q::STEALS || workers == 1 {
            return None;
        }
        let tally = self.tally();
        for _ in 0..ROUNDS {
            let first = self.pick(workers);
            let victims = (first..workers).chain(0..first).filter(|&core| core != self.index);
            let mut contended = false;
            for victim in victims {
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
            // The last one: there will be more who want one.
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

    /// A part of a fork, for one that waits for another part: first of whoever has that, because it
    /// descends from what is waited for; then any.
    pub(crate) fn find_job(&self, shared: &Shared<Q>, thief: usize) -> Option<Task> {
        let workers = shared.config.workers;
        if thief < workers
            && thief != self.index
            && let Found::Task(job, _) = self.steal_job(shared, thief)
        {
            return Some(job);
        }
        if let Some(job) = shared.queues.pop_job(&self.own, self.tally()) {
            return Some(job);
        }
        let first = self.pick(workers);
        let others = (first..workers).chain(0..first).filter(|&core| core != self.index);
        others.map(|victim| self.steal_job(shared, victim)).find_map(|stolen| match stolen {
            Found::Task(job, _) => Some(job),
            Found::Nothing | Found::Contended => None,
        })
    }

    /// What others keep to themselves, if this is an engine: they have not looked for a while.
    pub(crate) fn raid(&self, shared: &Shared<Q>) -> Option<Task> {
        if !Q::NESTS {
            return None;
        }
        let raid = |demand| Some((raid::raid(demand)?, demand.core));
        let (task, victim) = shared.demands_beside(self.index).find_map(raid)?;
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

    /// More came along than this worker can run at once: it is a source now, as in ignition.
    fn share(&self, shared: &Shared<Q>, more: usize) {
        if more > 0 && shared.config.workers > 1 {
            shared.announce(self.tally());
        }
    }
}
