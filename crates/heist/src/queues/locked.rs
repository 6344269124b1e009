//! Locked deques: as work stealing, with a mutex around each queue.

use heist_deque::Steal;
use heist_deque::locked::{self, Stealer, Worker};

use super::global::Queue;
use super::{Haul, Queues, Strategy};
use crate::stats::Tally;
use crate::task::Task;

pub(crate) struct Locked {
    injector: Queue,
    stealers: Box<[Stealer<Task>]>,
}

impl Queues for Locked {
    type Own = Worker<Task>;

    const STRATEGY: Strategy = Strategy::LockedDeques;
    const STEALS: bool = true;
    const PATIENT: bool = true;

    fn new(workers: usize) -> (Self, Vec<Worker<Task>>) {
        let (own, stealers): (Vec<_>, Vec<_>) = (0..workers).map(|_| locked::new()).unzip();
        (Self { injector: Queue::new(), stealers: stealers.into() }, own)
    }

    fn push(&self, own: &Worker<Task>, task: Task, tally: Tally<'_>) {
        counted(own, tally, || own.push(task));
    }

    fn inject(&self, task: Task, tally: Tally<'_>) {
        self.injector.push(task, tally);
    }

    fn pop(&self, own: &Worker<Task>, tally: Tally<'_>) -> Option<Task> {
        counted(own, tally, || own.pop())
    }

    fn draw(&self, _: &Worker<Task>, tally: Tally<'_>) -> Haul {
        self.injector.pop(tally).map_or(Haul::Nothing, |task| Haul::Task(task, 0))
    }

    fn steal(&self, own: &Worker<Task>, victim: usize, tally: Tally<'_>) -> Haul {
        match self.stealers[victim].steal_batch_and_pop(own) {
            Steal::Success(task) => Haul::Task(task, own.len()),
            Steal::Empty => Haul::Nothing,
            Steal::Retry => {
                tally.one(|block| &block.lock_contention);
                Haul::Contended
            }
        }
    }

    fn withdraw(&self) -> Option<Task> {
        self.injector.withdraw()
    }

    fn any(&self) -> bool {
        self.injector.any() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }
}

/// Counts if the owner has to wait for its own lock.
fn counted<R>(own: &Worker<Task>, tally: Tally<'_>, f: impl FnOnce() -> R) -> R {
    let before = own.lock_waits();
    let result = f();
    if own.lock_waits() != before {
        tally.one(|block| &block.lock_contention);
    }
    result
}
