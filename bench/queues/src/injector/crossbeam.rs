//! The injector of crossbeam-deque, the reference. Batches go to its LIFO worker.

pub(super) use crossbeam_deque::Injector;

use harness::item::Item;

use super::Shared;
use crate::deque::Outcome;
use crate::deque::crossbeam::{Worker, outcome};

impl<T: Item> Shared<T> for Injector<T> {
    type Worker = Worker<T>;

    const NAME: &'static str = harness::report::REFERENCE;

    fn new() -> Self {
        Injector::new()
    }

    #[inline(always)]
    fn push(&self, item: T) {
        Injector::push(self, item);
    }

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(Injector::steal(self), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Worker<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(Injector::steal_batch_and_pop(self, into), take)
    }
}
