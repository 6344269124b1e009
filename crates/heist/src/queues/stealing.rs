//! Work stealing: a lock-free deque for each worker, and an injector for work from outside.

use heist_deque::bounded::{self, Stealer, Worker};
use heist_deque::facade::Watched;
use heist_deque::{BATCH_LIMIT, Full, Injector, Steal};

use super::{Haul, Queues, Strategy};
use crate::stats::Tally;
use crate::task::Task;

/// Tasks that a worker's deque holds; half of a full one goes to the injector. A guess: enough that
/// a tree of tasks never fills it, and it stays in the nearest cache.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const CAPACITY: usize = 256;
/// Small, so that a checker sees it full.
#[cfg(any(loom, shuttle))]
pub(crate) const CAPACITY: usize = 4;

pub(crate) struct Stealing {
    injector: Injector<Task>,
    stealers: Box<[Stealer<Task>]>,
}

pub(crate) struct Own {
    deque: Worker<Task>,
    /// Of the same deque: an overflow takes the oldest.
    stealer: Stealer<Task>,
}

impl Queues for Stealing {
    type Own = Own;

    const STRATEGY: Strategy = Strategy::WorkStealing;
    const STEALS: bool = true;
    const PATIENT: bool = true;

    fn new(workers: usize) -> (Self, Vec<Own>) {
        let deque = || bounded::new(CAPACITY).expect("a power of two, and memory for it");
        let (own, stealers): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let (deque, stealer) = deque();
                (Own { deque, stealer: stealer.clone() }, stealer)
            })
            .unzip();
        (Self { injector: Injector::new(), stealers: stealers.into() }, own)
    }

    #[inline]
    fn push(&self, own: &Own, task: Task, tally: Tally<'_>) {
        if let Err(Full(task)) = own.deque.push(task) {
            self.overflow(own, task, tally);
        }
    }

    #[inline]
    fn inject(&self, task: Task, _: Tally<'_>) {
        self.injector.push(task);
    }

    #[inline]
    fn pop(&self, own: &Own, _: Tally<'_>) -> Option<Task> {
        own.deque.pop()
    }

    fn draw(&self, own: &Own, tally: Tally<'_>) -> Haul {
        let drawn = self.injector.steal_batch_and_pop(&Watched(&own.deque, Task::prefetch));
        haul(drawn, own, tally)
    }

    fn steal(&self, own: &Own, victim: usize, tally: Tally<'_>) -> Haul {
        let stolen = self.stealers[victim].steal_batch_and_pop(&own.deque);
        haul(stolen, own, tally)
    }

    fn withdraw(&self) -> Option<Task> {
        loop {
            match self.injector.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }

    fn any(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }
}

impl Stealing {
    /// The deque is full: its older half goes to the injector, where everybody finds it.
    #[cold]
    #[inline(never)]
    fn overflow(&self, own: &Own, task: Task, tally: Tally<'_>) {
        tally.one(|block| &block.overflows);
        let oldest = || loop {
            match own.stealer.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        };
        self.injector.push_batch(std::iter::from_fn(oldest).take(CAPACITY / 2));
        if let Err(Full(task)) = own.deque.push(task) {
            // A thief is still reading out of the slot that is next.
            self.injector.push(task);
        }
    }
}

/// The worker's own deque was empty before, so what is in it now came along.
fn haul(stolen: Steal<Task>, own: &Own, tally: Tally<'_>) -> Haul {
    match stolen {
        Steal::Success(task) => Haul::Task(task, own.deque.len().min(BATCH_LIMIT)),
        Steal::Empty => Haul::Nothing,
        Steal::Retry => {
            tally.one(|block| &block.failed_cas);
            Haul::Contended
        }
    }
}
