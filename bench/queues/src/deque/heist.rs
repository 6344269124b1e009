//! The three deques of heist-deque. Only the bounded one has a capacity.

use harness::item::Item;
use heist_deque::{Full, Steal, bounded, growable, locked};

use super::{Outcome, Owner, Thief};

pub(crate) use bounded::Worker as Bounded;
pub(crate) use growable::Worker as Growable;
pub(crate) use locked::Worker as Locked;

/// The allowance for growing, which a push rarely does.
const GROWTH: f64 = 0.05;

impl<T: Item> Owner<T> for Bounded<T> {
    type Thief = bounded::Stealer<T>;

    const NAME: &'static str = "heist bounded";
    const ALLOWANCE: Option<f64> = Some(0.0);

    fn new(capacity: usize) -> (Self, Self::Thief) {
        bounded::new(capacity).expect("the capacities are powers of two")
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        Bounded::push(self, item).map_err(|Full(item)| item)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        Bounded::pop(self)
    }
}

impl<T: Item> Owner<T> for Growable<T> {
    type Thief = growable::Stealer<T>;

    const NAME: &'static str = "heist growable";
    const ALLOWANCE: Option<f64> = Some(GROWTH);

    fn new(_capacity: usize) -> (Self, Self::Thief) {
        growable::new()
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        Growable::push(self, item);
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        Growable::pop(self)
    }
}

impl<T: Item> Owner<T> for Locked<T> {
    type Thief = locked::Stealer<T>;

    const NAME: &'static str = "heist locked";

    fn new(_capacity: usize) -> (Self, Self::Thief) {
        locked::new()
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        Locked::push(self, item);
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        Locked::pop(self)
    }
}

impl<T: Item> Thief<T> for bounded::Stealer<T> {
    type Worker = Bounded<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(bounded::Stealer::steal(self), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Bounded<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(bounded::Stealer::steal_batch_and_pop(self, into), take)
    }
}

impl<T: Item> Thief<T> for growable::Stealer<T> {
    type Worker = Growable<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(growable::Stealer::steal(self), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Growable<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(growable::Stealer::steal_batch_and_pop(self, into), take)
    }
}

impl<T: Item> Thief<T> for locked::Stealer<T> {
    type Worker = Locked<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        outcome(locked::Stealer::steal(self), take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Locked<T>, take: impl FnOnce(T)) -> Outcome {
        outcome(locked::Stealer::steal_batch_and_pop(self, into), take)
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
