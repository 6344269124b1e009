//! The injector of heist-deque. Batches go to a growable deque, like those of crossbeam.

pub(super) use heist_deque::Injector;

use harness::item::Item;

use super::Shared;
use crate::deque::Outcome;
use crate::deque::heist::{Growable, outcome};

impl<T: Item> Shared<T> for Injector<T> {
    type Worker = Growable<T>;

    const NAME: &'static str = "heist";
    const ALLOWANCE: Option<f64> = Some(0.0);

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
    fn steal_batch_and_pop(&self, into: &Growable<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(Injector::steal_batch_and_pop(self, into), take)
    }
}
