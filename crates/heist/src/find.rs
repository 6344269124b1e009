//! How a worker picks its next task: its own newest, now and then from outside first, then others'
//! oldest, then from outside.

use crate::core::Core;
use crate::queues::{Haul, Queues};
use crate::raid;
use crate::seat::Seat;
use crate::task::Task;
use crate::trace::{EventKind, record};

/// Every so many turns the injector comes first, so that work from outside is not starved by a
/// worker that feeds itself. A prime, so that it does not beat in time with anything.
const INJECTOR_INTERVAL: u32 = 61;

/// Of so many looks in vain one says so.
const WANT_INTERVAL: u32 = 8;

/// How often every victim is tried in one hunt.
const ROUNDS: usize = 2;

/// How often one hunt tries the injector when somebody is in the way.
const DRAWS: usize = 4;

impl<Q: Queues> Seat<Q> {
    /// What is at hand: no other worker is troubled.
    #[inline]
    pub(crate) fn next(&self, core: &Core<Q>) -> Option<Task> {
        let tally = self.tally();
        if !Q::NESTS
            && self.is_turn(INJECTOR_INTERVAL)
            && let Some(task) = core.queues.withdraw(tally)
        {
            tally.one(|block| &block.injector_pops);
            record(EventKind::InjectorTake { tasks: 1 });
            return Some(task);
        }
        let task = core.queues.pop(&self.own, tally).or_else(|| self.mail(core))?;
        tally.one(|block| &block.local_pops);
        Some(task)
    }

    /// What is for this worker alone.
    fn mail(&self, core: &Core<Q>) -> Option<Task> {
        let letter = core.queues.mail(self.index, self.tally())?;
        if !core.is_guest(self.index) {
            core.idle.step_back();
        }
        Some(letter)
    }

    /// From the others, and then from outside. Nothing is at hand.
    pub(crate) fn hunt(&self, core: &Core<Q>) -> Option<Task> {
        // Of a thread that has given its seat away in the middle of a join there may be something.
        let tally = self.tally();
        let left = core.queues.pop_job(&self.own, tally);
        let found = left.or_else(|| self.steal(core)).or_else(|| self.draw(core));
        self.want(core, found)
    }

    /// The other way round, for one that has just been woken: if it was from outside, the others' deques
    /// are cold and empty.
    pub(crate) fn hunt_outside_first(&self, core: &Core<Q>) -> Option<Task> {
        let found = self.mail(core).or_else(|| self.draw(core)).or_else(|| self.steal(core));
        self.want(core, found)
    }

    /// Whoever has found nothing says so to those who could share; in an engine the first time and then now and then,
    /// because an answer that comes to nothing costs its owner as much as ten joins.
    fn want(&self, core: &Core<Q>, found: Option<Task>) -> Option<Task> {
        if Q::NESTS && found.is_some() {
            self.make_turn(WANT_INTERVAL);
        } else if found.is_none() && (!Q::NESTS || self.is_turn(WANT_INTERVAL)) {
            core.raise_demand(self.index);
        }
        found
    }

    fn steal(&self, core: &Core<Q>) -> Option<Task> {
        let workers = core.config.workers;
        if !Q::STEALS || workers == 1 {
            return None;
        }
        let tally = self.tally();
        for _ in 0..ROUNDS {
            let first = self.pick(workers);
            let victims = (first..workers).chain(0..first).filter(|&seat| seat != self.index);
            let mut contended = false;
            for victim in victims {
                match self.steal_job(core, victim) {
                    Haul::Task(task, _) => return Some(task),
                    Haul::Nothing => {}
                    Haul::Contended => contended = true,
                }
                match core.queues.steal(&self.own, victim, tally) {
                    Haul::Task(task, more) => {
                        self.count_steal(victim, more);
                        self.share(core, more);
                        return Some(task);
                    }
                    Haul::Nothing => {}
                    Haul::Contended => contended = true,
                }
            }
            if !contended {
                break;
            }
        }
        None
    }

    fn steal_job(&self, core: &Core<Q>, victim: usize) -> Haul {
        let tally = self.tally();
        tally.one(|block| &block.steal_attempts);
        let stolen = core.queues.steal_job(victim, tally);
        if matches!(stolen, Haul::Task(..)) {
            self.count_steal(victim, 0);
            // The last one: there will be more who want one.
            if !core.queues.has_job(victim) {
                if core.offers() {
                    core.demands[victim].raise_after_steal();
                } else {
                    core.demands[victim].raise();
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
    pub(crate) fn find_job(&self, core: &Core<Q>, thief: usize) -> Option<Task> {
        let workers = core.config.workers;
        if thief < workers
            && thief != self.index
            && let Haul::Task(job, _) = self.steal_job(core, thief)
        {
            return Some(job);
        }
        if let Some(job) = core.queues.pop_job(&self.own, self.tally()) {
            return Some(job);
        }
        let first = self.pick(workers);
        let others = (first..workers).chain(0..first).filter(|&seat| seat != self.index);
        others.map(|victim| self.steal_job(core, victim)).find_map(|stolen| match stolen {
            Haul::Task(job, _) => Some(job),
            Haul::Nothing | Haul::Contended => None,
        })
    }

    /// What others keep to themselves, if this is an engine: they have not looked for a while.
    pub(crate) fn raid(&self, core: &Core<Q>) -> Option<Task> {
        if !Q::NESTS {
            return None;
        }
        let raid = |demand| Some((raid::raid(demand)?, demand.seat));
        let (task, victim) = core.demands_beside(self.index).find_map(raid)?;
        let tally = self.tally();
        tally.one(|block| &block.tasks_submitted);
        tally.one(|block| &block.publications);
        self.count_steal(victim, 0);
        Some(task)
    }

    fn draw(&self, core: &Core<Q>) -> Option<Task> {
        let tally = self.tally();
        for _ in 0..DRAWS {
            match core.queues.draw(&self.own, tally) {
                Haul::Task(task, more) => {
                    tally.add(|block| &block.injector_pops, 1 + more as u64);
                    record(EventKind::InjectorTake { tasks: 1 + more });
                    self.share(core, more);
                    return Some(task);
                }
                Haul::Nothing => break,
                Haul::Contended => {}
            }
        }
        None
    }

    /// More came along than this worker can run at once: it is a source now, as in ignition.
    fn share(&self, core: &Core<Q>, more: usize) {
        if more > 0 && core.config.workers > 1 {
            core.announce(self.tally());
        }
    }
}
