//! The LIFO worker of st3, which is bounded. A thief chooses how many items it wants, and always steals into a
//! worker.

use st3::StealError;
use st3::lifo::Stealer;
pub(super) use st3::lifo::Worker;

use harness::item::Item;

use super::{BATCH, Outcome, Owner, Thief};

/// A stealer with the worker that st3 requires for the rest of a batch. A steal of one item leaves it empty.
pub(crate) struct BatchStealer<T> {
    stealer: Stealer<T>,
    rest: Worker<T>,
}

impl<T: Item> Owner<T> for Worker<T> {
    type Thief = BatchStealer<T>;

    const NAME: &'static str = "st3";

    fn new(capacity: usize) -> (Self, Self::Thief) {
        let worker = Worker::new(capacity);
        let stealer = worker.stealer();
        let rest = Worker::new(1);
        (worker, BatchStealer { stealer, rest })
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        Worker::push(self, item)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        Worker::pop(self)
    }
}

impl<T: Item> Thief<T> for BatchStealer<T> {
    type Worker = Worker<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(self.stealer.steal_and_pop(&self.rest, |_| 1), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Worker<T>, take: impl FnOnce(T)) -> Outcome {
        let half = |count: usize| count.div_ceil(2).min(BATCH);
        outcome(self.stealer.steal_and_pop(into, half), take)
    }
}

#[inline(always)]
fn outcome<T>(steal: Result<(T, usize), StealError>, take: impl FnOnce(T)) -> Outcome {
    match steal {
        Ok((item, _moved)) => {
            take(item);
            Outcome::Taken
        }
        Err(StealError::Empty) => Outcome::Empty,
        Err(StealError::Busy) => Outcome::Retry,
    }
}
