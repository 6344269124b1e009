//! A parallel loop or a sort, perhaps with a panic in it, beside what a plain one would have made.

use std::cmp::Ordering;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use heist::parallel;

use super::PLANNED;
use super::die::Die;
use super::ground::{Ground, is_planned};
use super::trouble::Trouble;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ForEach,
    Map,
    Reduce,
    Sort,
    SortUnstable,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    ground: Ground,
    kind: Kind,
    items: u64,
    /// The fewest items that a piece has.
    min: usize,
    /// How many different keys there are to sort by.
    keys: u64,
    /// At which call of the closure it panics, if it is called so often.
    bomb: Option<u64>,
    seed: u64,
}

/// An item: what it is sorted by, and its number.
type Item = (u64, u64);

/// Counts down to a panic.
struct Fuse {
    calls: AtomicU64,
    at: Option<u64>,
}

impl Fuse {
    fn burn(&self) {
        if self.calls.fetch_add(1, Relaxed) == self.at.unwrap_or(u64::MAX) {
            resume_unwind(Box::new(PLANNED));
        }
    }

    fn has_blown(&self) -> bool {
        self.at.is_some_and(|at| self.calls.load(Relaxed) > at)
    }
}

impl Shape {
    pub(super) fn random(die: &mut Die, most: u64) -> Self {
        let late = Some(die.roll(most));
        Self {
            ground: Ground::random(die),
            kind: die.pick(&[
                Kind::ForEach,
                Kind::Map,
                Kind::Reduce,
                Kind::Sort,
                Kind::SortUnstable,
            ]),
            items: die.pick(&[0, 1, 10, most / 10, most]) + die.roll(20),
            min: die.pick(&[1, 1, 10, 1000]),
            keys: die.pick(&[1, 3, 1000, 1 << 30]),
            bomb: die.pick(&[None, None, Some(0), late]),
            seed: die.roll(1 << 30),
        }
    }

    /// How many items there were, or what is wrong.
    pub(super) fn run(&self) -> Result<u64, Trouble> {
        let mut die = Die::new(self.seed);
        let mut items: Vec<Item> =
            (0..self.items).map(|number| (die.roll(self.keys), number)).collect();
        let fuse = Fuse { calls: AtomicU64::new(0), at: self.bomb };
        let before = items.clone();
        let outcome = self.ground.run(|| self.work(&mut items, &fuse))?;
        self.check(&before, items, outcome, fuse.has_blown())
            .map_err(|wrong| format!("{wrong}, in {self:?}"))?;
        Ok(self.items)
    }

    /// Changes the items in place, or returns a copy of what it makes of them.
    fn work(&self, items: &mut Vec<Item>, fuse: &Fuse) -> Option<Vec<Item>> {
        let loops = parallel::with_min_len(self.min);
        let made = |item: &Item| {
            fuse.burn();
            made_of(*item)
        };
        let compare = |a: &Item, b: &Item| -> Ordering {
            fuse.burn();
            a.0.cmp(&b.0)
        };
        match self.kind {
            Kind::ForEach => loops.for_each(items, |item| *item = made(item)),
            Kind::Map => return Some(loops.map(&*items, made)),
            Kind::Reduce => {
                let push = |mut all: Vec<Item>, item: &Item| {
                    all.push(made(item));
                    all
                };
                return Some(
                    loops.reduce(&*items, Vec::new, push, |left, right| [left, right].concat()),
                );
            }
            Kind::Sort => parallel::sort_by(items, compare),
            Kind::SortUnstable => parallel::sort_unstable_by(items, compare),
        }
        None
    }

    fn check(
        &self,
        before: &[Item],
        after: Vec<Item>,
        outcome: thread::Result<Option<Vec<Item>>>,
        blown: bool,
    ) -> Result<(), String> {
        match (outcome, blown) {
            (Ok(made), false) => self.check_made(before, made.unwrap_or(after)),
            (Err(payload), true) => {
                is_planned(&*payload)?;
                self.check_left(before, after)
            }
            (Err(payload), false) => Err(is_planned(&*payload)
                .err()
                .unwrap_or_else(|| "a panic out of nowhere".to_owned())),
            (Ok(_), true) => Err("a panic got lost".to_owned()),
        }
    }

    /// What a plain loop would have made of them, or a plain sort.
    fn check_made(&self, before: &[Item], mut made: Vec<Item>) -> Result<(), String> {
        let mut expected = before.to_vec();
        match self.kind {
            Kind::ForEach | Kind::Map | Kind::Reduce => {
                expected.iter_mut().for_each(|item| *item = made_of(*item))
            }
            Kind::Sort => expected.sort_by_key(|item| item.0),
            Kind::SortUnstable => {
                if !made.is_sorted_by_key(|item| item.0) {
                    return Err("not sorted".to_owned());
                }
                made.sort_unstable();
                expected.sort_unstable();
            }
        }
        if made == expected { Ok(()) } else { Err(difference(&made, &expected)) }
    }

    /// After a panic: each item is still there, once, and was changed once or not at all.
    fn check_left(&self, before: &[Item], mut after: Vec<Item>) -> Result<(), String> {
        after.sort_unstable_by_key(|item| item.1);
        let same = |(&was, &is): (&Item, &Item)| {
            was == is || self.kind == Kind::ForEach && is == made_of(was)
        };
        let right = before.len() == after.len() && before.iter().zip(&after).all(same);
        if right { Ok(()) } else { Err(format!("after a panic: {}", difference(&after, before))) }
    }
}

/// Twice is not the same as once.
fn made_of((key, number): Item) -> Item {
    (key.wrapping_mul(3).wrapping_add(1), number)
}

fn difference(made: &[Item], expected: &[Item]) -> String {
    if made.len() != expected.len() {
        return format!("{} items instead of {}", made.len(), expected.len());
    }
    let first =
        made.iter().zip(expected).position(|(made, expected)| made != expected).unwrap_or(0);
    format!("item {first} is {:?} instead of {:?}", made[first], expected[first])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shapes_are_right() {
        for seed in 0..300 {
            let shape = Shape::random(&mut Die::new(seed), 2000);
            assert_eq!(shape.run(), Ok(shape.items), "seed {seed}");
        }
    }

    fn of(kind: Kind) -> Shape {
        Shape { ground: Ground::Global, kind, items: 3, min: 1, keys: 1, bomb: None, seed: 0 }
    }

    const BEFORE: [Item; 3] = [(5, 0), (5, 1), (2, 2)];

    #[test]
    fn a_lost_item_is_found() {
        let wrong = of(Kind::Map).check_made(&BEFORE, vec![made_of(BEFORE[0]), made_of(BEFORE[1])]);
        assert_eq!(wrong, Err("2 items instead of 3".to_owned()));
    }

    #[test]
    fn an_item_that_was_changed_twice_is_found() {
        let mut after = BEFORE.map(made_of);
        assert_eq!(of(Kind::ForEach).check_made(&BEFORE, after.to_vec()), Ok(()));
        after[1] = made_of(after[1]);
        assert!(of(Kind::ForEach).check_made(&BEFORE, after.to_vec()).is_err());
        assert!(of(Kind::ForEach).check_left(&BEFORE, after.to_vec()).is_err());
    }

    #[test]
    fn a_sort_that_is_not_stable_is_found() {
        let swapped = vec![(2, 2), (5, 1), (5, 0)];
        assert!(of(Kind::Sort).check_made(&BEFORE, swapped.clone()).is_err());
        assert_eq!(of(Kind::SortUnstable).check_made(&BEFORE, swapped), Ok(()));
    }

    #[test]
    fn a_sort_that_doubles_an_item_is_found() {
        assert!(of(Kind::SortUnstable).check_made(&BEFORE, vec![(2, 2), (5, 1), (5, 1)]).is_err());
        assert!(of(Kind::SortUnstable).check_left(&BEFORE, vec![(2, 2), (5, 1), (5, 1)]).is_err());
    }
}
