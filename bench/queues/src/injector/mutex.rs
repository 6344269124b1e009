//! A mutex around a `VecDeque`: the obvious implementation without a library.

use std::collections::VecDeque;
use std::sync::Mutex;

use harness::item::Item;

use super::Shared;
use crate::deque::Outcome;
use crate::deque::mutex::{Worker, outcome, take_half};

pub(super) struct Injector<T>(Mutex<VecDeque<T>>);

impl<T: Item> Shared<T> for Injector<T> {
    type Worker = Worker<T>;

    const NAME: &'static str = "mutex";

    fn new() -> Self {
        Self(Mutex::default())
    }

    #[inline(always)]
    fn push(&self, item: T) {
        self.0.lock().unwrap().push_back(item);
    }

    #[inline(always)]
    fn steal(&self, take: impl FnOnce(T)) -> Outcome {
        let item = self.0.lock().unwrap().pop_front();
        outcome(item, take)
    }

    #[inline(always)]
    fn steal_batch_and_pop(&self, into: &Worker<T>, take: impl FnOnce(T)) -> Outcome {
        let mut from = self.0.lock().unwrap();
        outcome(take_half(&mut from, into), take)
    }
}
