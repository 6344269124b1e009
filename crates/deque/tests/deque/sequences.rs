//! The contract of one thread: any sequence of operations has the same results as on a plain queue.

use std::collections::VecDeque;
use std::fmt::Debug;

use heist_deque::{BATCH_LIMIT, Injector, Steal};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::common::{Flavour, LAST_NUMBER, Owner, Thief, for_every_flavour};

/// The number of sequences per test; all of them together take a second or two.
const CASES: u32 = 300;
const STEPS: usize = 120;

for_every_flavour! {
    deques,
    injector,
}

/// Runs `test` on many sequences. The panic message has the shortest sequence that fails.
fn check<S: Strategy>(inputs: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    if let Err(failure) = TestRunner::new(config).run(&inputs, test) {
        panic!("{failure}");
    }
}

/// The number of the first item of a deque: the default, or one just below the wrap-around.
fn number() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), LAST_NUMBER - 200..=LAST_NUMBER]
}

fn capacity() -> impl Strategy<Value = usize> {
    (0..=6_u32).prop_map(|log| 1 << log)
}

/// An operation of one of two workers, or of a thief.
#[derive(Debug, Clone, Copy)]
enum Act {
    Push(usize),
    Pop,
    Steal,
    /// Steals a batch from the deque of this worker into that of the other, or into its own.
    Batch {
        same_deque: bool,
    },
    BatchAndPop {
        same_deque: bool,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (1..=4_usize).prop_map(Act::Push),
        1 => (1..=100_usize).prop_map(Act::Push),
        3 => Just(Act::Pop),
        3 => Just(Act::Steal),
        2 => same_deque().prop_map(|same_deque| Act::Batch { same_deque }),
        2 => same_deque().prop_map(|same_deque| Act::BatchAndPop { same_deque }),
    ]
}

fn same_deque() -> impl Strategy<Value = bool> {
    prop_oneof![5 => Just(false), 1 => Just(true)]
}

/// Returns the expected answer to a pop or a steal.
fn answer<T>(item: Option<T>) -> Steal<T> {
    item.map_or(Steal::Empty, Steal::Success)
}

/// The expected content of a deque, the oldest item at the front.
struct Model {
    items: VecDeque<usize>,
    most: usize,
}

impl Model {
    fn free(&self) -> usize {
        self.most - self.items.len()
    }

    /// Takes the oldest half of the items, at most `most`.
    fn batch(&mut self, most: usize) -> VecDeque<usize> {
        let half = self.items.len().div_ceil(2).min(BATCH_LIMIT);
        self.items.drain(..half.min(most)).collect()
    }
}

/// A deque and its expected content.
struct Twin<F: Flavour> {
    worker: F::Worker<usize>,
    stealer: F::Stealer<usize>,
    model: Model,
}

impl<F: Flavour> Twin<F> {
    fn new(capacity: usize, number: usize) -> Self {
        let (worker, stealer) = F::at(capacity, number);
        let model = Model { items: VecDeque::new(), most: F::most_items(capacity) };
        Self { worker, stealer, model }
    }

    /// Applies an operation to the deque and to the model, and compares the answers.
    fn act(&mut self, other: &mut Self, act: Act, next: &mut usize) -> Result<(), TestCaseError> {
        let (items, stealer) = (&mut self.model.items, &self.stealer);
        match act {
            Act::Push(count) => {
                for item in *next..*next + count {
                    let fits = items.len() < self.model.most;
                    prop_assert_eq!(self.worker.offer(item).is_ok(), fits);
                    items.extend(fits.then_some(item));
                }
                *next += count;
            }
            Act::Pop => prop_assert_eq!(self.worker.pop(), items.pop_back()),
            Act::Steal => prop_assert_eq!(stealer.steal(), answer(items.pop_front())),
            Act::Batch { same_deque: true } => {
                let expected = answer((!items.is_empty()).then_some(()));
                prop_assert_eq!(stealer.steal_batch(&self.worker), expected);
            }
            Act::BatchAndPop { same_deque: true } => {
                let expected = answer(items.pop_back());
                prop_assert_eq!(stealer.steal_batch_and_pop(&self.worker), expected);
            }
            Act::Batch { .. } => {
                let batch = self.model.batch(other.model.free());
                let expected = answer((!batch.is_empty()).then_some(()));
                prop_assert_eq!(stealer.steal_batch(&other.worker), expected);
                other.model.items.extend(batch);
            }
            Act::BatchAndPop { .. } => {
                let mut batch = self.model.batch(other.model.free().saturating_add(1));
                let expected = answer(batch.pop_back());
                prop_assert_eq!(stealer.steal_batch_and_pop(&other.worker), expected);
                other.model.items.extend(batch);
            }
        }
        Ok(())
    }

    fn compare_size(&self) -> Result<(), TestCaseError> {
        let len = self.model.items.len();
        prop_assert_eq!((self.worker.len(), self.stealer.len()), (len, len));
        let is_empty = len == 0;
        prop_assert_eq!(self.worker.is_empty(), is_empty);
        prop_assert_eq!(self.stealer.is_empty(), is_empty);
        Ok(())
    }

    /// Empties the deque and compares its items with the model.
    fn compare_items(&self) -> Result<(), TestCaseError> {
        let popped: Vec<_> = std::iter::from_fn(|| self.worker.pop()).collect();
        let expected: Vec<_> = self.model.items.iter().rev().copied().collect();
        prop_assert_eq!(popped, expected);
        prop_assert_eq!(self.stealer.steal(), Steal::Empty);
        Ok(())
    }
}

/// Two workers, each with a thief that steals from it for the other.
fn deques<F: Flavour>() {
    let places = ((capacity(), number()), (capacity(), number()));
    let acts = vec((any::<bool>(), act()), 0..STEPS);
    check((places, acts), |((left, right), acts)| {
        let mut left = Twin::<F>::new(left.0, left.1);
        let mut right = Twin::<F>::new(right.0, right.1);
        let mut next = 0;
        for (swapped, act) in acts {
            if swapped {
                right.act(&mut left, act, &mut next)?;
            } else {
                left.act(&mut right, act, &mut next)?;
            }
            left.compare_size()?;
            right.compare_size()?;
        }
        left.compare_items()?;
        right.compare_items()
    });
}

/// The number of items of a segment, according to the documentation.
const SEGMENT: usize = 63;

/// An operation on an injector, or on the worker that takes batches from it.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Push(usize),
    Steal,
    Batch,
    BatchAndPop,
    Pop(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        2 => (1..=4_usize).prop_map(Deed::Push),
        2 => (1..=100_usize).prop_map(Deed::Push),
        2 => Just(Deed::Steal),
        3 => Just(Deed::Batch),
        3 => Just(Deed::BatchAndPop),
        2 => (1..=40_usize).prop_map(Deed::Pop),
    ]
}

/// An injector, the worker that takes batches from it, and the expected content of the injector.
struct Feed<F: Flavour> {
    injector: Injector<usize>,
    twin: Twin<F>,
    queue: VecDeque<usize>,
    pushed: usize,
}

impl<F: Flavour> Feed<F> {
    /// Takes the oldest half of the items, at most `most`, and none beyond the border of a segment.
    fn batch(&mut self, most: usize) -> VecDeque<usize> {
        let stolen = self.pushed - self.queue.len();
        let most = most.min(BATCH_LIMIT).min(SEGMENT - stolen % SEGMENT);
        let half = self.queue.len().div_ceil(2);
        self.queue.drain(..half.min(most)).collect()
    }

    /// Applies an operation to the injector and to the model, and compares the answers.
    fn act(&mut self, deed: Deed) -> Result<(), TestCaseError> {
        let free = self.twin.model.free();
        match deed {
            Deed::Push(count) => {
                let items = self.pushed..self.pushed + count;
                items.clone().for_each(|item| self.injector.push(item));
                self.queue.extend(items);
                self.pushed += count;
            }
            Deed::Steal => {
                let expected = answer(self.queue.pop_front());
                prop_assert_eq!(self.injector.steal(), expected);
            }
            Deed::Batch => {
                let batch = self.batch(free);
                let expected = answer((!batch.is_empty()).then_some(()));
                let dest = &self.twin.worker;
                prop_assert_eq!(self.injector.steal_batch(dest), expected);
                self.twin.model.items.extend(batch.into_iter().rev());
            }
            Deed::BatchAndPop => {
                let mut batch = self.batch(free.saturating_add(1));
                let expected = answer(batch.pop_front());
                let dest = &self.twin.worker;
                prop_assert_eq!(self.injector.steal_batch_and_pop(dest), expected);
                self.twin.model.items.extend(batch.into_iter().rev());
            }
            Deed::Pop(count) => {
                for _ in 0..count {
                    let expected = self.twin.model.items.pop_back();
                    prop_assert_eq!(self.twin.worker.pop(), expected);
                }
            }
        }
        prop_assert_eq!(self.injector.len(), self.queue.len());
        prop_assert_eq!(self.injector.is_empty(), self.queue.is_empty());
        self.twin.compare_size()
    }
}

/// One injector, one worker.
fn injector<F: Flavour>() {
    let laps = prop_oneof![Just(0), 1..=4_usize];
    let acts = vec(deed(), 0..STEPS);
    let inputs = (laps, capacity(), number(), acts);
    check(inputs, |(laps, capacity, number, deeds)| {
        let mut feed = Feed {
            injector: Injector::new_at(laps),
            twin: Twin::<F>::new(capacity, number),
            queue: VecDeque::new(),
            pushed: 0,
        };
        for deed in deeds {
            feed.act(deed)?;
        }
        feed.twin.compare_items()?;
        let stolen: Vec<_> = std::iter::from_fn(|| feed.injector.steal().success()).collect();
        prop_assert_eq!(stolen, Vec::from(feed.queue));
        Ok(())
    });
}
