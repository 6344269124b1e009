//! A mutex around a `VecDeque`: the obvious implementation without a library.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use harness::item::Item;

use super::{BATCH, Outcome, Owner, Thief};

pub(crate) struct Worker<T>(Arc<Mutex<VecDeque<T>>>);

pub(crate) struct Stealer<T>(Arc<Mutex<VecDeque<T>>>);

impl<T: Item> Owner<T> for Worker<T> {
    type Thief = Stealer<T>;

    const NAME: &'static str = "mutex";

    fn new(_capacity: usize) -> (Self, Self::Thief) {
        let queue = Arc::new(Mutex::new(VecDeque::new()));
        (Self(Arc::clone(&queue)), Stealer(queue))
    }

    #[inline(always)]
    fn push(&self, item: T) -> Result<(), T> {
        self.0.lock().unwrap().push_back(item);
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_back()
    }
}

impl<T: Item> Thief<T> for Stealer<T> {
    type Worker = Worker<T>;

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        let item = self.0.lock().unwrap().pop_front();
        outcome(item, take)
    }

    /// Holds both locks. No thread steals from the thief, so this cannot deadlock.
    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Worker<T>, take: impl FnOnce(T)) -> Outcome {
        let mut from = self.0.lock().unwrap();
        outcome(take_half(&mut from, into), take)
    }
}

/// Moves the older half, at most one batch, and takes the newest item of it back.
#[inline(always)]
pub(crate) fn take_half<T>(from: &mut VecDeque<T>, into: &Worker<T>) -> Option<T> {
    let half = from.len().div_ceil(2).min(BATCH);
    let mut into = into.0.lock().unwrap();
    into.extend(from.drain(..half));
    into.pop_back()
}

#[inline(always)]
pub(crate) fn outcome<T>(item: Option<T>, take: impl FnOnce(T)) -> Outcome {
    match item {
        Some(item) => {
            take(item);
            Outcome::Taken
        }
        None => Outcome::Empty,
    }
}
