//! The contract of capacities: an impossible capacity is an error that says what to ask for, an item that
//! does not fit is returned, and neither the ring nor the item numbers wrapping around changes anything.

use std::thread;

use heist_deque::growable::FIRST_CAPACITY;
use heist_deque::{CapacityError, Full, Injector, Steal};

use crate::common::{
    Bounded, Flag, Flavour, Growable, LAST_NUMBER, Owner, Rng, Thief, assert_each_once,
    for_every_flavour,
};

for_every_flavour! {
    wrap_around,
    wrap_around_batches,
    wrap_around_with_threads,
}

/// The largest power of two.
const LARGEST: usize = 1 << (usize::BITS - 1);

/// Returns why there is no bounded deque of this capacity.
fn refusal(capacity: usize) -> CapacityError {
    heist_deque::bounded::new::<u8>(capacity).expect_err("not to be had")
}

#[test]
fn zero() {
    assert_eq!(refusal(0), CapacityError::Zero);
    assert_eq!(refusal(0).to_string(), "a capacity of 0 holds nothing: the nearest valid one is 1");
}

#[test]
fn not_a_power_of_two() {
    for (requested, below, above) in [
        (3, 2, Some(4)),
        (100, 64, Some(128)),
        (LARGEST - 1, LARGEST / 2, Some(LARGEST)),
        (LARGEST + 1, LARGEST, None),
        (usize::MAX, LARGEST, None),
    ] {
        let expected = CapacityError::NotPowerOfTwo { requested, below, above };
        assert_eq!(refusal(requested), expected);
    }
    assert_eq!(
        refusal(3).to_string(),
        "a capacity of 3 is not a power of two: the nearest ones are 2 and 4"
    );
    assert_eq!(
        refusal(usize::MAX).to_string(),
        format!("a capacity of {} is not a power of two: the nearest one is {LARGEST}", usize::MAX)
    );
}

/// The size of the first in bytes overflows for any item, that of the second for items this large.
#[test]
fn too_large() {
    let requested = LARGEST;
    assert_eq!(refusal(requested), CapacityError::TooLarge { requested });
    assert_eq!(
        refusal(requested).to_string(),
        format!(
            "a capacity of {LARGEST} needs more memory than can be addressed: ask for less, \
             or use the growable flavour"
        )
    );
    let requested = LARGEST >> 19;
    let refusal = heist_deque::bounded::new::<[u8; 1 << 20]>(requested);
    let error = refusal.expect_err("one byte more than a number can count");
    assert_eq!(error, CapacityError::TooLarge { requested });
}

/// Checks the message only: `memory.rs` has the allocator that fails.
#[test]
fn out_of_memory() {
    let error = CapacityError::OutOfMemory { requested: 8, bytes: 128 };
    assert_eq!(
        error.to_string(),
        "no memory for a capacity of 8 (128 bytes): ask for less, or free some first"
    );
}

#[test]
fn errors_implement_error() {
    fn check<E: std::error::Error + Send + Sync + 'static>(_: &E) {}
    check(&CapacityError::Zero);
    check(&Full(1));
}

/// A full deque returns the item itself, whatever its type, and is unchanged.
#[test]
fn full_hands_back() {
    struct Opaque(Box<u8>);
    let (worker, stealer) = Bounded::at(1, 0);
    worker.push(Opaque(Box::new(1))).expect("room");
    for _ in 0..3 {
        let item = Opaque(Box::new(2));
        let place = &raw const *item.0;
        let full = worker.push(item).expect_err("no room");
        assert_eq!(format!("{full:?}"), "Full(..)");
        assert_eq!(
            full.to_string(),
            "the deque is full: pop or steal first, or put the item into an injector"
        );
        assert!(std::ptr::eq(place, &raw const *full.into_inner().0));
        assert_eq!((worker.len(), stealer.len()), (1, 1));
    }
    assert_eq!(worker.pop().map(|item| *item.0), Some(1));
}

/// A deque takes as many items as its capacity. Each item that leaves, at either end, makes room for
/// one.
#[test]
fn as_many_fit_as_the_capacity_says() {
    for capacity in (0..=10).map(|log| 1 << log) {
        let (worker, stealer) = Bounded::at(capacity, 0);
        assert_eq!(worker.capacity(), capacity);
        (0..capacity).for_each(|n| Owner::push(&worker, n));
        assert_eq!((worker.len(), stealer.len()), (capacity, capacity));
        for n in capacity..3 * capacity {
            assert_eq!(worker.push(n), Err(Full(n)));
            assert_eq!(stealer.steal(), Steal::Success(n - capacity));
            assert_eq!(worker.push(n), Ok(()));
            assert_eq!(worker.push(n), Err(Full(n)));
            assert_eq!(worker.pop(), Some(n));
            assert_eq!(worker.push(n), Ok(()));
        }
    }
}

/// The smallest rings, where all sides use the same slots.
#[test]
fn many_laps() {
    for capacity in [1, 2] {
        let (worker, stealer) = Bounded::at(capacity, 0);
        for n in 0..50_000 {
            assert!(worker.is_empty() && stealer.is_empty());
            Owner::push(&worker, n);
            assert_eq!((worker.len(), stealer.len()), (1, 1));
            assert_eq!(worker.push(n + 1).is_ok(), capacity == 2);
            match n % 3 {
                0 => assert_eq!(stealer.steal(), Steal::Success(n)),
                1 if capacity == 2 => assert_eq!(worker.pop(), Some(n + 1)),
                _ => {}
            }
            while worker.pop().is_some() {}
            assert_eq!(stealer.steal(), Steal::Empty);
        }
    }
}

/// The capacity doubles when the ring is full, and not when positions merely wrap around.
#[test]
fn growth() {
    let first = FIRST_CAPACITY;
    let (worker, stealer) = Growable::with_room(first);
    for n in 0..10 * first {
        worker.push(n);
        if n >= first - 1 {
            assert_eq!(stealer.steal(), Steal::Success(n + 1 - first));
        }
        assert_eq!(worker.capacity(), first);
    }
    (0..2 * first).for_each(|n| worker.push(n));
    assert_eq!(worker.capacity(), 4 * first);
    while worker.pop().is_some() {}
    assert_eq!(worker.capacity(), 4 * first, "it does not shrink");
}

/// Growth from every position of the smallest rings, with steals at every stage.
#[test]
fn growth_across_the_wrap_around() {
    for before in 0..40 {
        let (worker, stealer) = Growable::at(1, LAST_NUMBER - before);
        let mut oldest = 0;
        for n in 0..200 {
            worker.push(n);
            if n % 5 == before % 5 {
                assert_eq!(stealer.steal(), Steal::Success(oldest));
                oldest += 1;
            }
            assert_eq!((worker.len(), stealer.len()), (n + 1 - oldest, n + 1 - oldest));
        }
        for n in (oldest..200).rev() {
            assert_eq!(worker.pop(), Some(n));
        }
        assert_eq!((worker.pop(), stealer.steal()), (None, Steal::Empty));
    }
}

/// Returns capacities, and how far before the wrap-around to begin.
fn starts() -> impl Iterator<Item = (usize, usize)> {
    let capacities = [1, 2, 4, 32];
    capacities
        .into_iter()
        .flat_map(|capacity| (0..=2 * capacity + 1).map(move |before| (capacity, before)))
}

/// Repeatedly fills the deque and takes from both ends, across the wrap-around.
fn wrap_around<F: Flavour>() {
    for (capacity, before) in starts() {
        let (worker, stealer) = F::at(capacity, LAST_NUMBER - before);
        for lap in 0..6 {
            let both = || (worker.len(), stealer.len());
            assert_eq!((worker.pop(), stealer.steal()), (None, Steal::Empty));
            for n in 0..capacity {
                worker.push(n);
                assert_eq!(both(), (n + 1, n + 1), "capacity {capacity}, lap {lap}");
            }
            assert_eq!(worker.offer(capacity).is_err(), F::most_items(capacity) == capacity);
            let stolen = ((capacity + lap) / 2).min(capacity);
            (0..stolen).for_each(|n| assert_eq!(stealer.steal(), Steal::Success(n)));
            let mut left = worker.len();
            while let Some(item) = worker.pop() {
                left -= 1;
                assert_eq!(item, stolen + left);
                assert_eq!(both(), (left, left), "capacity {capacity}, lap {lap}");
            }
            assert!(worker.is_empty() && stealer.is_empty());
        }
    }
}

fn wrap_around_batches<F: Flavour>() {
    for (capacity, before) in starts() {
        let (worker, stealer) = F::at(capacity, LAST_NUMBER - before);
        let (mine, _) = F::at(capacity, LAST_NUMBER - before / 2);
        for _ in 0..6 {
            (0..capacity).for_each(|n| worker.push(n));
            let half = capacity.div_ceil(2);
            assert_eq!(stealer.steal_batch(&mine), Steal::Success(()));
            (0..half).rev().for_each(|n| assert_eq!(mine.pop(), Some(n)));
            assert_eq!(mine.pop(), None);
            if capacity == 1 {
                continue;
            }
            let newest = half + (capacity - half).div_ceil(2) - 1;
            assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(newest));
            let others = (half..newest).rev();
            others.for_each(|n| assert_eq!(mine.pop(), Some(n)));
            assert_eq!(mine.pop(), None);
            let rest = (newest + 1..capacity).rev();
            rest.for_each(|n| assert_eq!(worker.pop(), Some(n)));
            assert_eq!(worker.pop(), None);
        }
    }
}

/// The owner and two thieves, one of which steals batches, cross the wrap-around together.
fn wrap_around_with_threads<F: Flavour>() {
    const ITEMS: usize = 4000;
    for capacity in [1, 2, 4, 32].repeat(8) {
        let (worker, stealer) = F::at(capacity, LAST_NUMBER - ITEMS / 4);
        let done = Flag::default();
        let rob = |batches: bool| {
            let (own, _) = F::at(32, LAST_NUMBER - ITEMS / 8);
            let mut loot = Vec::new();
            while !done.is_up() {
                if batches {
                    let _any = stealer.steal_batch(&own);
                    loot.extend(std::iter::from_fn(|| own.pop()));
                }
                loot.extend(stealer.steal().success());
                thread::yield_now();
            }
            loot
        };
        let taken = thread::scope(|scope| {
            let thieves = [scope.spawn(|| rob(false)), scope.spawn(|| rob(true))];
            let up = done.up_after();
            let mut taken = push_and_pop::<F>(&worker, &stealer, ITEMS);
            drop(up);
            taken.extend(thieves.map(|thief| thief.join().expect("a thief")).concat());
            taken
        });
        assert_each_once(taken, ITEMS);
    }
}

/// The owner's part of the test above. Returns the items that it has kept. When the deque is full, it
/// steals for itself, such that the numbers advance whether or not the thieves run.
fn push_and_pop<F: Flavour>(
    worker: &F::Worker<usize>,
    stealer: &F::Stealer<usize>,
    items: usize,
) -> Vec<usize> {
    let mut rng = Rng::new(1);
    let mut kept = Vec::new();
    for mut item in 0..items {
        while let Err(Full(back)) = worker.offer(item) {
            item = back;
            kept.extend(stealer.steal().success());
        }
        if rng.below(4) == 0 {
            kept.extend(worker.pop());
        }
    }
    kept.extend(std::iter::from_fn(|| worker.pop()));
    kept
}

/// An injector accepts any number of items on either side of the wrap-around. More is in `injector.rs`.
#[test]
fn injector_has_no_bound() {
    for laps in [0, 1, 20] {
        let injector = Injector::new_at(laps);
        (0..5000).for_each(|n| injector.push(n));
        assert_eq!(injector.len(), 5000);
        (0..5000).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
        assert!(injector.is_empty());
    }
}
