//! How a worker picks its next task: its own newest, now and then from outside first, then others'
//! oldest, then from outside.

use crate::core::Core;
use crate::queues::{Haul, Queues};
use crate::seat::Seat;
use crate::task::Task;

/// Every so many turns the injector comes first, so that work from outside is not starved by a
/// worker that feeds itself. A prime, so that it does not beat in time with anything.
const INJECTOR_INTERVAL: u32 = 61;

/// How often every victim is tried in one hunt.
const ROUNDS: usize = 2;

/// How often one hunt tries the injector when somebody is in the way.
const DRAWS: usize = 4;

impl<Q: Queues> Seat<Q> {
    /// What is at hand: no other worker is troubled.
    #[inline]
    pub(crate) fn next(&self, core: &Core<Q>) -> Option<Task> {
        let tally = self.tally();
        if self.is_turn(INJECTOR_INTERVAL)
            && let Some(task) = core.queues.withdraw()
        {
            tally.one(|block| &block.injector_pops);
            return Some(task);
        }
        let task = core.queues.pop(&self.own, tally)?;
        tally.one(|block| &block.local_pops);
        Some(task)
    }

    /// From the others, and then from outside. Nothing is at hand.
    pub(crate) fn hunt(&self, core: &Core<Q>) -> Option<Task> {
        self.steal(core).or_else(|| self.draw(core))
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
                tally.one(|block| &block.steal_attempts);
                match core.queues.steal(&self.own, victim, tally) {
                    Haul::Task(task, more) => {
                        tally.one(|block| &block.successful_steals);
                        tally.add(|block| &block.tasks_moved, 1 + more as u64);
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

    fn draw(&self, core: &Core<Q>) -> Option<Task> {
        let tally = self.tally();
        for _ in 0..DRAWS {
            match core.queues.draw(&self.own, tally) {
                Haul::Task(task, more) => {
                    tally.add(|block| &block.injector_pops, 1 + more as u64);
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
