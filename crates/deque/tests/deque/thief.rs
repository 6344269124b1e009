//! The contract of the thieves: they steal the oldest item first and half of the items in a batch, never
//! more than fits, and `Empty` means that the deque was empty.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist_deque::{BATCH_LIMIT, Steal};

use crate::common::{Bounded, Flavour, Owner, Thief, assert_each_once, for_every_flavour, persist};

for_every_flavour! {
    fifo,
    batch_order,
    batch_and_pop_order,
    batch_is_half,
    batch_and_pop_is_half,
    batch_into_one_with_items,
    batch_from_nothing,
    batch_into_the_same_deque,
    all_stealers_are_equal,
    mutual_steals,
    empty_means_empty,
    empty_means_empty_with_many_threads,
}

/// A deque with the items `1..=items`.
fn filled<F: Flavour>(items: usize) -> (F::Worker<usize>, F::Stealer<usize>) {
    let (worker, stealer) = F::with_room(items);
    (1..=items).for_each(|n| worker.push(n));
    (worker, stealer)
}

fn drain(worker: &impl Owner<usize>) -> Vec<usize> {
    std::iter::from_fn(|| worker.pop()).collect()
}

/// `from`, `from - 1`, ..., 1.
fn down_from(from: usize) -> Vec<usize> {
    (1..=from).rev().collect()
}

fn fifo<F: Flavour>() {
    let (worker, stealer) = filled::<F>(300);
    (1..=300).for_each(|n| assert_eq!(stealer.steal(), Steal::Success(n)));
    assert_eq!(stealer.steal(), Steal::Empty);
    worker.push(301);
    assert_eq!(stealer.steal(), Steal::Success(301));
}

fn batch_order<F: Flavour>() {
    let (worker, stealer) = filled::<F>(6);
    let (mine, my_stealer) = F::with_room(8);
    assert_eq!(stealer.steal_batch(&mine), Steal::Success(()));
    // Steals from the thief's deque yield the oldest item first, as those from the victim would have.
    assert_eq!(my_stealer.steal(), Steal::Success(1));
    assert_eq!(drain(&mine), [3, 2]);
    assert_eq!(stealer.steal(), Steal::Success(4));
    assert_eq!(drain(&worker), [6, 5]);
}

fn batch_and_pop_order<F: Flavour>() {
    let (worker, stealer) = filled::<F>(6);
    let (mine, my_stealer) = F::with_room(8);
    assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(3));
    assert_eq!(my_stealer.steal(), Steal::Success(1));
    assert_eq!(drain(&mine), [2]);
    assert_eq!(drain(&worker), [6, 5, 4]);
}

/// Returns the size of a batch without concurrent operations: half of the items, rounded up, at most the
/// limit.
fn half(items: usize) -> usize {
    items.div_ceil(2).min(BATCH_LIMIT)
}

fn batch_is_half<F: Flavour>() {
    for items in 1..=70 {
        let (worker, stealer) = filled::<F>(items);
        let (mine, _) = F::with_room(64);
        assert_eq!(stealer.steal_batch(&mine), Steal::Success(()));
        assert_eq!(mine.len(), half(items), "of {items}");
        assert_eq!(worker.len(), items - half(items), "of {items}");
        assert_eq!(drain(&mine), down_from(half(items)));
        assert_eq!(stealer.len(), worker.len());
        let rest: Vec<_> = (half(items) + 1..=items).rev().collect();
        assert_eq!(drain(&worker), rest);
    }
}

fn batch_and_pop_is_half<F: Flavour>() {
    for items in 1..=70 {
        let (worker, stealer) = filled::<F>(items);
        let (mine, _) = F::with_room(64);
        let newest = half(items);
        assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(newest));
        assert_eq!(drain(&mine), down_from(newest - 1), "of {items}");
        assert_eq!(worker.len(), items - newest, "of {items}");
        assert_eq!(stealer.len(), items - newest, "of {items}");
    }
}

/// The items that the thief had before are popped after the stolen ones.
fn batch_into_one_with_items<F: Flavour>() {
    let (_worker, stealer) = filled::<F>(8);
    let (mine, my_stealer) = F::with_room(8);
    mine.push(101);
    mine.push(102);
    assert_eq!(stealer.steal_batch(&mine), Steal::Success(()));
    assert_eq!(my_stealer.steal(), Steal::Success(101));
    assert_eq!(drain(&mine), [4, 3, 2, 1, 102]);
}

fn batch_from_nothing<F: Flavour>() {
    let (worker, stealer) = F::with_room(8);
    let (mine, _) = F::with_room(8);
    mine.push(1);
    for _ in 0..2 {
        assert_eq!(stealer.steal_batch(&mine), Steal::Empty);
        assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Empty);
        assert_eq!(mine.len(), 1);
        // The second time, the deque has held an item before.
        worker.push(2);
        assert_eq!(worker.pop(), Some(2));
    }
}

/// A worker that steals a batch from itself keeps its items.
fn batch_into_the_same_deque<F: Flavour>() {
    let (worker, stealer) = F::with_room(8);
    assert_eq!(stealer.steal_batch(&worker), Steal::Empty);
    assert_eq!(stealer.steal_batch_and_pop(&worker), Steal::Empty);
    (1..=8).for_each(|n| worker.push(n));
    for stealer in [stealer.clone(), worker.stealer()] {
        assert_eq!(stealer.steal_batch(&worker), Steal::Success(()));
        assert_eq!((worker.len(), stealer.len()), (8, 8));
    }
    assert_eq!(stealer.steal_batch_and_pop(&worker), Steal::Success(8));
    assert_eq!(stealer.steal(), Steal::Success(1));
    assert_eq!(drain(&worker), [7, 6, 5, 4, 3, 2]);
}

fn all_stealers_are_equal<F: Flavour>() {
    let (worker, first) = filled::<F>(4);
    let (second, third) = (first.clone(), worker.stealer());
    drop(first);
    assert_eq!(second.steal(), Steal::Success(1));
    assert_eq!(third.steal(), Steal::Success(2));
    // The owner is gone; the items that it left can still be stolen.
    drop(worker);
    assert_eq!(second.len(), 2);
    assert_eq!(third.steal(), Steal::Success(3));
    drop(third);
    assert_eq!(second.steal(), Steal::Success(4));
    assert_eq!(second.steal(), Steal::Empty);
}

/// Two workers steal from each other at the same time: no deadlock, nothing lost.
fn mutual_steals<F: Flavour>() {
    const ITEMS: usize = 60_000;
    let (left, left_stealer) = F::with_room(ITEMS);
    let (right, right_stealer) = F::with_room(ITEMS);
    (0..ITEMS / 2).for_each(|n| left.push(n));
    (ITEMS / 2..ITEMS).for_each(|n| right.push(n));
    let remaining = AtomicUsize::new(ITEMS);
    let live = |own: F::Worker<usize>, other: F::Stealer<usize>| {
        let mut taken = Vec::new();
        while remaining.load(Ordering::Relaxed) > 0 {
            let before = taken.len();
            taken.extend(other.steal_batch_and_pop(&own).success());
            taken.extend(own.pop());
            let _any = other.steal_batch(&own);
            taken.extend(own.pop());
            remaining.fetch_sub(taken.len() - before, Ordering::Relaxed);
        }
        taken
    };
    let taken = thread::scope(|scope| {
        let other = scope.spawn(|| live(left, right_stealer));
        let mut taken = live(right, left_stealer);
        taken.extend(other.join().expect("the other worker"));
        taken
    });
    assert_each_once(taken, ITEMS);
}

/// A lone thief that knows of a push never gets `Empty`, and `Retry` ends eventually.
fn empty_means_empty<F: Flavour>() {
    const ITEMS: usize = 50_000;
    let (worker, stealer) = F::with_room(ITEMS);
    let pushed = AtomicUsize::new(0);
    let stolen = thread::scope(|scope| {
        let thief = scope.spawn(|| {
            let mut stolen = 0;
            while stolen < ITEMS {
                let there = pushed.load(Ordering::Acquire) > stolen;
                match persist(|| stealer.steal()) {
                    Some(_) => stolen += 1,
                    None if there => break,
                    None => thread::yield_now(),
                }
            }
            stolen
        });
        for n in 1..=ITEMS {
            worker.push(n);
            pushed.store(n, Ordering::Release);
        }
        thief.join().expect("the thief")
    });
    assert_eq!(stolen, ITEMS, "a steal returned Empty although there was an item");
}

/// Thieves that together never take all items never get `Empty`, whichever other steals are in progress,
/// and while the owner pushes more.
fn empty_means_empty_with_many_threads<F: Flavour>() {
    const THIEVES: usize = 4;
    const EACH: usize = 40;
    const MORE: usize = 400;
    let mut told_empty = 0;
    for _ in 0..300 {
        let (worker, stealer) = F::with_room(THIEVES * EACH + MORE);
        (0..=THIEVES * EACH).for_each(|n| worker.push(n));
        let rob = || {
            let (own, _) = F::with_room(64);
            let mut stolen = 0;
            // One batch has at most this many.
            while stolen <= EACH - BATCH_LIMIT {
                let outcome = if stolen % 8 == 0 {
                    persist(|| stealer.steal_batch(&own))
                } else {
                    persist(|| stealer.steal()).map(|item| own.push(item))
                };
                if outcome.is_none() {
                    return 1;
                }
                stolen += std::iter::from_fn(|| own.pop()).count();
            }
            0
        };
        told_empty += thread::scope(|scope| {
            let thieves = [(); THIEVES].map(|()| scope.spawn(rob));
            (0..MORE).for_each(|n| worker.push(n));
            let told = thieves.map(|thief| thief.join().expect("a thief"));
            told.into_iter().sum::<usize>()
        });
    }
    assert_eq!(told_empty, 0);
}

/// Creates a bounded deque of eight slots, `free` of which are free. All slots have been used before.
fn nearly_full(free: usize) -> <Bounded as Flavour>::Worker<usize> {
    let (worker, stealer) = Bounded::at(8, 0);
    for n in 0..5 {
        Owner::push(&worker, n);
        assert!(stealer.steal().is_success());
    }
    (1001..=1008 - free).for_each(|n| Owner::push(&worker, n));
    worker
}

/// A batch has as many items as fit, and the rest stays.
#[test]
fn batch_into_nearly_full() {
    for free in 0..=3 {
        for items in 1..=12 {
            let (victim, stealer) = filled::<Bounded>(items);
            let mine = nearly_full(free);
            let moved = half(items).min(free);
            let expected = if free == 0 { Steal::Empty } else { Steal::Success(()) };
            assert_eq!(stealer.steal_batch(&mine), expected);
            assert_eq!(victim.len(), items - moved, "{items} into {free} free");
            assert_eq!(mine.len(), 8 - free + moved, "{items} into {free} free");
            let loot: Vec<_> = drain(&mine).into_iter().take(moved).collect();
            assert_eq!(loot, down_from(moved));
            assert_eq!(drain(&victim).last(), (moved < items).then_some(&(moved + 1)));
        }
    }
}

/// A batch has one more item than fits, because one is returned instead of stored.
#[test]
fn batch_and_pop_into_nearly_full() {
    for free in 0..=3 {
        for items in 1..=12 {
            let (victim, stealer) = filled::<Bounded>(items);
            let mine = nearly_full(free);
            let taken = half(items).min(free + 1);
            assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(taken));
            assert_eq!(victim.len(), items - taken, "{items} into {free} free");
            let loot: Vec<_> = drain(&mine).into_iter().take(taken - 1).collect();
            assert_eq!(loot, down_from(taken - 1));
        }
    }
}

/// From a deque of one slot into another.
#[test]
fn batch_between_the_smallest() {
    let (victim, stealer) = Bounded::at(1, 0);
    let (mine, _) = Bounded::at(1, 0);
    for n in 0..10 {
        Owner::push(&victim, n);
        assert_eq!(stealer.steal_batch(&mine), Steal::Success(()));
        Owner::push(&victim, n + 100);
        assert_eq!(stealer.steal_batch(&mine), Steal::Empty);
        assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(n + 100));
        assert_eq!(mine.pop(), Some(n));
    }
}

mod combinators {
    use super::Steal::{self, Empty, Retry, Success};

    #[test]
    fn predicates() {
        let say = |steal: Steal<u8>| (steal.is_empty(), steal.is_success(), steal.is_retry());
        assert_eq!(say(Empty), (true, false, false));
        assert_eq!(say(Success(1)), (false, true, false));
        assert_eq!(say(Retry), (false, false, true));
        assert_eq!([Empty, Success(1), Retry].map(Steal::success), [None, Some(1), None]);
    }

    #[test]
    fn map() {
        assert_eq!(Success(1).map(|n| n + 1), Success(2));
        assert_eq!(Empty.map(|n: u8| n + 1), Empty);
        assert_eq!(Retry.map(|n: u8| n + 1), Retry);
    }

    /// `Empty` only if both sides were empty; `Retry` if one side returned it and none had an item.
    #[test]
    fn or_else() {
        let table = [
            (Empty, Empty, Empty),
            (Empty, Success(2), Success(2)),
            (Empty, Retry, Retry),
            (Retry, Empty, Retry),
            (Retry, Success(2), Success(2)),
            (Retry, Retry, Retry),
        ];
        for (first, second, outcome) in table {
            assert_eq!(first.or_else(|| second), outcome, "{first:?} or {second:?}");
        }
        assert_eq!(Success(1).or_else(|| unreachable!()), Success(1));
    }

    #[test]
    fn collect() {
        let first = |attempts: &[Steal<u8>]| attempts.iter().copied().collect::<Steal<_>>();
        assert_eq!(first(&[]), Empty);
        assert_eq!(first(&[Empty, Empty]), Empty);
        assert_eq!(first(&[Empty, Retry, Empty]), Retry);
        assert_eq!(first(&[Retry, Success(1), Success(2)]), Success(1));
    }

    /// No further victim is tried after a success.
    #[test]
    fn collect_stops() {
        let mut asked = 0;
        let attempts = [Retry, Success(1), Success(2)].into_iter();
        let outcome: Steal<u8> = attempts.inspect(|_| asked += 1).collect();
        assert_eq!((outcome, asked), (Success(1), 2));
    }
}
