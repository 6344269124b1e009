//! The contract of batches into and from the injector: in order, half of the items, never more than fits, on
//! either side of the wrap-around.

use heist_deque::{BATCH_LIMIT, Injector, Steal};

use super::injector::{SEGMENT, filled};
use crate::common::{Bounded, Flavour, Owner, Thief, for_every_flavour};

for_every_flavour! {
    batch_order,
    batch_and_pop_order,
    batch_is_half,
    batch_and_pop_is_half,
    batch_stops_at_border,
    batch_into_one_with_items,
    wrap_around,
}

fn drain(worker: &impl Owner<usize>) -> Vec<usize> {
    std::iter::from_fn(|| worker.pop()).collect()
}

/// The worker pops the oldest item first; its thieves steal the newest of the batch first.
fn batch_order<F: Flavour>() {
    let injector = filled(8);
    let (mine, my_stealer) = F::with_room(8);
    assert_eq!(injector.steal_batch(&mine), Steal::Success(()));
    assert_eq!(mine.pop(), Some(1));
    assert_eq!(my_stealer.steal(), Steal::Success(4));
    assert_eq!(drain(&mine), [2, 3]);
    assert_eq!(injector.steal(), Steal::Success(5));
    assert_eq!(injector.len(), 3);
}

fn batch_and_pop_order<F: Flavour>() {
    let injector = filled(6);
    let (mine, _) = F::with_room(8);
    assert_eq!(injector.steal_batch_and_pop(&mine), Steal::Success(1));
    assert_eq!(drain(&mine), [2, 3]);
    assert_eq!(injector.len(), 3);
}

/// Returns the size of a batch without concurrent operations: half of the items, rounded up, at most the
/// limit.
fn half(items: usize) -> usize {
    items.div_ceil(2).min(BATCH_LIMIT)
}

fn batch_is_half<F: Flavour>() {
    let (mine, _) = F::with_room(64);
    assert_eq!(Injector::new().steal_batch(&mine), Steal::Empty);
    for items in 1..=150 {
        let injector = filled(items);
        assert_eq!(injector.steal_batch(&mine), Steal::Success(()));
        assert_eq!(injector.len(), items - half(items));
        assert!(drain(&mine).into_iter().eq(1..=half(items)), "of {items}");
    }
}

fn batch_and_pop_is_half<F: Flavour>() {
    let (mine, _) = F::with_room(64);
    assert_eq!(Injector::new().steal_batch_and_pop(&mine), Steal::Empty);
    for items in 1..=150 {
        let injector = filled(items);
        assert_eq!(injector.steal_batch_and_pop(&mine), Steal::Success(1));
        assert_eq!(injector.len(), items - half(items));
        assert!(drain(&mine).into_iter().eq(2..=half(items)), "of {items}");
    }
}

fn batch_stops_at_border<F: Flavour>() {
    let (mine, _) = F::with_room(64);
    for before in SEGMENT - BATCH_LIMIT..=SEGMENT {
        let injector = filled(4 * SEGMENT);
        (0..before).for_each(|_| assert!(injector.steal().is_success()));
        assert_eq!(injector.steal_batch(&mine), Steal::Success(()));
        let until_border = if before == SEGMENT { BATCH_LIMIT } else { SEGMENT - before };
        assert_eq!(injector.len(), 4 * SEGMENT - before - until_border);
        assert!(drain(&mine).into_iter().eq(before + 1..=before + until_border));
        assert_eq!(injector.steal(), Steal::Success(before + until_border + 1));
    }
}

fn batch_into_one_with_items<F: Flavour>() {
    let injector = filled(4);
    let (mine, _) = F::with_room(8);
    mine.push(101);
    assert_eq!(injector.steal_batch(&mine), Steal::Success(()));
    assert_eq!(drain(&mine), [1, 2, 101]);
}

/// A batch has as many items as fit, and the rest stays. If nothing fits, the steal returns `Empty`.
#[test]
fn batch_into_nearly_full() {
    for free in 0..=3 {
        for items in 1..=12 {
            let injector = filled(items);
            let (mine, _) = Bounded::at(8, 0);
            (1001..=1008 - free).for_each(|n| Owner::push(&mine, n));
            let moved = half(items).min(free);
            assert_eq!(injector.steal_batch(&mine).is_empty(), free == 0);
            assert_eq!(injector.len(), items - moved);
            let loot = drain(&mine);
            assert_eq!(loot.len(), 8 - free + moved);
            assert!(loot.into_iter().take(moved).eq(1..=moved));
        }
    }
}

/// A batch has one more item than fits, because one is returned instead of stored.
#[test]
fn batch_and_pop_into_nearly_full() {
    for free in 0..=3 {
        for items in 1..=12 {
            let injector = filled(items);
            let (mine, _) = Bounded::at(8, 0);
            (1001..=1008 - free).for_each(|n| Owner::push(&mine, n));
            let taken = half(items).min(free + 1);
            assert_eq!(injector.steal_batch_and_pop(&mine), Steal::Success(1));
            assert_eq!(injector.len(), items - taken);
            assert!(drain(&mine).into_iter().take(taken - 1).eq(2..=taken));
        }
    }
}

/// From a few laps before the positions wrap around to a few laps after.
fn wrap_around<F: Flavour>() {
    for laps in 0..=3 {
        let injector = Injector::new_at(laps);
        let (mine, _) = F::with_room(64);
        let mut next = 0;
        for n in 0..6 * SEGMENT {
            assert_eq!(injector.len(), n - next);
            assert_eq!(injector.is_empty(), n == next);
            injector.push(n);
            if n % 50 == 49 {
                assert_eq!(injector.steal_batch(&mine), Steal::Success(()));
            } else if n % 3 == 0 {
                assert_eq!(injector.steal(), Steal::Success(next));
                next += 1;
            }
            for item in drain(&mine) {
                assert_eq!(item, next);
                next += 1;
            }
        }
        assert_eq!(injector.len(), 6 * SEGMENT - next);
    }
}

#[test]
fn wrap_around_push_batch() {
    for before in 0..=SEGMENT {
        let injector = Injector::new_at(1);
        injector.push_batch(0..before);
        injector.push_batch(before..4 * SEGMENT);
        assert_eq!(injector.len(), 4 * SEGMENT);
        (0..4 * SEGMENT).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
        assert!(injector.is_empty());
    }
}
