//! The LIFO worker of crossbeam-deque, the reference.

pub(crate) use crossbeam_deque::Worker;
use crossbeam_deque::{Steal, Stealer};
use harness::item::Item;

use super::{Outcome, Owner, Thief};

impl<T: Item> Owner<T> for Worker<T> {
    type Thief = Stealer<T>;

    const NAME: &'static str = harness::report::REFERENCE;

    fn new(_capacity: usize) -> (Self, Self::Thief) {
        let worker = Self::new_lifo();
        let stealer = worker.stealer();
        (worker, stealer)
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        Worker::push(self, item);
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        Worker::pop(self)
    }
}

impl<T: Item> Thief<T> for Stealer<T> {
    type Worker = Worker<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(Stealer::steal(self), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Worker<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(Stealer::steal_batch_and_pop(self, into), take)
    }
}

#[inline(always)]
pub(crate) fn outcome<T>(steal: Steal<T>, take: impl FnOnce(T)) -> Outcome {
    match steal {
        Steal::Success(item) => {
            take(item);
            Outcome::Taken
        }
        Steal::Empty => Outcome::Empty,
        Steal::Retry => Outcome::Retry,
    }
}
