//! Parallel loops and sorts, some with a panic in them, compared with their sequential counterparts.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use heist::parallel;

use crate::planned::{expect_planned, planned_panic};
use crate::pool_choice::PoolChoice;
use crate::rng::Rng;
use crate::{Error, Monitor, Size, Subject, Violation, random};

/// Runs random cases: loops have no others. The large ones are part of the subject forks.
pub(crate) fn run(seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    random::run_some(Subject::Loops, seed, size, monitor)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    ForEach,
    Map,
    Reduce,
    Sort,
    SortUnstable,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pool: PoolChoice,
    operation: Operation,
    items: u64,
    /// The minimum length of a piece.
    min_len: usize,
    /// How many different keys there are to sort by.
    keys: u64,
    /// The call of the closure that panics, counted from 0. There may be fewer calls.
    panic_at: Option<u64>,
    seed: u64,
}

/// An item: its sort key, and its number.
type Item = (u64, u64);

/// Counts the calls of a closure, and panics at one of them.
struct CallCounter {
    calls: AtomicU64,
    panic_at: Option<u64>,
}

impl CallCounter {
    fn call(&self) {
        if self.calls.fetch_add(1, Relaxed) == self.panic_at.unwrap_or(u64::MAX) {
            planned_panic();
        }
    }

    fn has_panicked(&self) -> bool {
        self.panic_at.is_some_and(|at| self.calls.load(Relaxed) > at)
    }
}

impl Case {
    pub(crate) fn random(rng: &mut Rng, max_items: u64) -> Self {
        let late = Some(rng.below(max_items));
        Self {
            pool: PoolChoice::random(rng),
            operation: rng.pick(&[
                Operation::ForEach,
                Operation::Map,
                Operation::Reduce,
                Operation::Sort,
                Operation::SortUnstable,
            ]),
            items: rng.pick(&[0, 1, 10, max_items / 10, max_items]) + rng.below(20),
            min_len: rng.pick(&[1, 1, 10, 1000]),
            keys: rng.pick(&[1, 3, 1000, 1 << 30]),
            panic_at: rng.pick(&[None, None, Some(0), late]),
            seed: rng.below(1 << 30),
        }
    }

    /// Runs the case, and returns how many items it had.
    pub(crate) fn run(&self) -> Result<u64, Error> {
        let mut rng = Rng::new(self.seed);
        let mut items: Vec<Item> =
            (0..self.items).map(|number| (rng.below(self.keys), number)).collect();
        let counter = CallCounter { calls: AtomicU64::new(0), panic_at: self.panic_at };
        let before = items.clone();
        let outcome = self.pool.run(self, || self.work(&mut items, &counter))?;
        self.check(&before, items, outcome, counter.has_panicked())
            .map_err(|violation| violation.in_case(self))?;
        Ok(self.items)
    }

    /// Changes the items in place, or returns new ones.
    fn work(&self, items: &mut Vec<Item>, counter: &CallCounter) -> Option<Vec<Item>> {
        let loops = parallel::with_min_len(self.min_len);
        let changed = |item: &Item| {
            counter.call();
            changed(*item)
        };
        let compare = |a: &Item, b: &Item| -> Ordering {
            counter.call();
            a.0.cmp(&b.0)
        };
        match self.operation {
            Operation::ForEach => loops.for_each(items, |item| *item = changed(item)),
            Operation::Map => return Some(loops.map(&*items, changed)),
            Operation::Reduce => {
                let push = |mut all: Vec<Item>, item: &Item| {
                    all.push(changed(item));
                    all
                };
                return Some(
                    loops.reduce(&*items, Vec::new, push, |left, right| [left, right].concat()),
                );
            }
            Operation::Sort => parallel::sort_by(items, compare),
            Operation::SortUnstable => parallel::sort_unstable_by(items, compare),
        }
        None
    }

    fn check(
        &self,
        before: &[Item],
        after: Vec<Item>,
        outcome: thread::Result<Option<Vec<Item>>>,
        has_panicked: bool,
    ) -> Result<(), Violation> {
        match (outcome, has_panicked) {
            (Ok(new), false) => self.check_result(before, new.unwrap_or(after)),
            (Err(payload), true) => {
                expect_planned(&*payload)?;
                self.check_after_panic(before, after)
            }
            (Err(payload), false) => {
                expect_planned(&*payload)?;
                Err(Violation::Panic("a planned panic came before its call".to_owned()))
            }
            (Ok(_), true) => Err(Violation::Panic("a planned panic was lost".to_owned())),
        }
    }

    /// Compares the result with that of a sequential loop or sort.
    fn check_result(&self, before: &[Item], mut result: Vec<Item>) -> Result<(), Violation> {
        let mut expected = before.to_vec();
        match self.operation {
            Operation::ForEach | Operation::Map | Operation::Reduce => {
                expected.iter_mut().for_each(|item| *item = changed(*item))
            }
            Operation::Sort => expected.sort_by_key(|item| item.0),
            Operation::SortUnstable => {
                if !result.is_sorted_by_key(|item| item.0) {
                    return Err(Violation::Result("the items are not sorted".to_owned()));
                }
                result.sort_unstable();
                expected.sort_unstable();
            }
        }
        if result == expected {
            Ok(())
        } else {
            Err(Violation::Result(difference(&result, &expected)))
        }
    }

    /// Checks, after a panic, that each item is still there once, and was changed at most once.
    fn check_after_panic(&self, before: &[Item], mut after: Vec<Item>) -> Result<(), Violation> {
        after.sort_unstable_by_key(|item| item.1);
        let is_right = |(&old, &new): (&Item, &Item)| {
            old == new || self.operation == Operation::ForEach && new == changed(old)
        };
        if before.len() == after.len() && before.iter().zip(&after).all(is_right) {
            Ok(())
        } else {
            let difference = difference(&after, before);
            Err(Violation::Result(format!("after a panic, {difference}")))
        }
    }
}

/// Returns what a loop makes of an item. To change an item twice gives another result than to change it once.
fn changed((key, number): Item) -> Item {
    (key.wrapping_mul(3).wrapping_add(1), number)
}

fn difference(result: &[Item], expected: &[Item]) -> String {
    if result.len() != expected.len() {
        return format!("there are {} items instead of {}", result.len(), expected.len());
    }
    let first = result.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
    format!("item {first} is {:?} instead of {:?}", result[first], expected[first])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_are_right() {
        for seed in 0..300 {
            let case = Case::random(&mut Rng::new(seed), 2000);
            assert_eq!(case.run(), Ok(case.items), "seed {seed}");
        }
    }

    fn case(operation: Operation) -> Case {
        let pool = PoolChoice::Global;
        Case { pool, operation, items: 3, min_len: 1, keys: 1, panic_at: None, seed: 0 }
    }

    const BEFORE: [Item; 3] = [(5, 0), (5, 1), (2, 2)];

    #[test]
    fn a_lost_item_is_found() {
        let result = vec![changed(BEFORE[0]), changed(BEFORE[1])];
        let violation = case(Operation::Map).check_result(&BEFORE, result).unwrap_err();
        assert_eq!(violation.to_string(), "there are 2 items instead of 3");
    }

    #[test]
    fn an_item_that_was_changed_twice_is_found() {
        let case = case(Operation::ForEach);
        let mut after = BEFORE.map(changed);
        assert_eq!(case.check_result(&BEFORE, after.to_vec()), Ok(()));
        after[1] = changed(after[1]);
        assert!(case.check_result(&BEFORE, after.to_vec()).is_err());
        assert!(case.check_after_panic(&BEFORE, after.to_vec()).is_err());
    }

    #[test]
    fn a_sort_that_is_not_stable_is_found() {
        let swapped = vec![(2, 2), (5, 1), (5, 0)];
        assert!(case(Operation::Sort).check_result(&BEFORE, swapped.clone()).is_err());
        assert_eq!(case(Operation::SortUnstable).check_result(&BEFORE, swapped), Ok(()));
    }

    #[test]
    fn a_sort_that_doubles_an_item_is_found() {
        let case = case(Operation::SortUnstable);
        let doubled = vec![(2, 2), (5, 1), (5, 1)];
        assert!(case.check_result(&BEFORE, doubled.clone()).is_err());
        assert!(case.check_after_panic(&BEFORE, doubled).is_err());
    }
}
