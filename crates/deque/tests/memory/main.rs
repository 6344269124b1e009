//! The contract of memory: bounds as documented, and everything freed. A failed allocation is an error or
//! has no effect. No thread waits for another one that allocates, unless it has to.

#![cfg(all(feature = "std", not(any(loom, shuttle))))]

#[path = "../common/mod.rs"]
mod common;
mod meter;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use heist_deque::growable::FIRST_CAPACITY;
use heist_deque::{CapacityError, Injector, Steal};

use common::{
    Bounded, Flag, Flavour, Growable, Locked, Owner, Rng, Thief, for_every_flavour, persist,
};
use meter::{Event, Gate, NOTHING, REFUSED, metered, wait_for, with_event};

for_every_flavour! {
    all_is_freed,
    all_is_freed_after_panics,
    thieves_allocate_nothing,
}

/// Every allocation of `bounded::new` fails once: it returns an error and leaks nothing.
#[test]
fn refused_allocations() {
    for n in 1..10 {
        let new = || heist_deque::bounded::new::<u64>(8);
        let (outcome, bill) = metered(|| with_event(Event::Fail, n, || new().map(drop)));
        assert_eq!(bill.bytes, 0, "leaked when allocation {n} failed");
        let Err(error) = outcome else {
            assert!(n > 1, "there was nothing to refuse");
            return;
        };
        let expected = CapacityError::OutOfMemory { requested: 8, bytes: REFUSED.get() };
        assert_eq!(error, expected);
    }
    panic!("more allocations than can be explained");
}

/// A bounded deque has all its memory from the beginning.
#[test]
fn bounded_allocates_once() {
    let (worker, stealer) = Bounded::at(64, 0);
    let (mine, _my_stealer) = Bounded::at(64, 0);
    let life = || {
        for n in 0..10_000 {
            let _full_is_fine = worker.push([n; 5]);
            match n % 7 {
                0 => drop(worker.pop()),
                1 => drop(stealer.clone().steal()),
                2 => drop(stealer.steal_batch(&mine)),
                3 => drop(stealer.steal_batch_and_pop(&mine)),
                _ => while mine.pop().is_some() {},
            }
            assert_eq!(worker.len(), stealer.len());
        }
    };
    assert_eq!(metered(life).1, NOTHING);
}

/// 56 bytes, so that a slot has 64.
type Item = [u64; 7];
const SLOT: usize = 64;
/// More than the header of a deque and those of all its rings.
const HEADERS: usize = 1024;

/// Returns the number of bytes that a growable deque may have according to its documentation.
fn growable_bound(largest_ring: usize) -> isize {
    (2 * largest_ring * SLOT + HEADERS) as isize
}

/// The bound is twice the largest ring, which has at most twice as many slots as there were ever items.
#[test]
fn growable_bounds() {
    let ((worker, stealer), mut bill) = metered(|| Growable::with_room(1));
    let mut most = 0;
    for round in 1..=10 {
        // Each round pushes half as many items again as the one before, and then pops all of them.
        let items = 100 * 3_usize.pow(round) / 2_usize.pow(round);
        for n in 0..items {
            bill.bytes += metered(|| worker.push(Item::default())).1.bytes;
            most = most.max(worker.len());
            let ring = worker.capacity();
            assert!(bill.bytes <= growable_bound(ring), "{bill:?} for {ring}");
            assert!(ring <= FIRST_CAPACITY.max(2 * most), "{ring} for {most}");
            if n % 4 == 0 {
                assert!(stealer.steal().is_success());
            }
        }
        while worker.pop().is_some() {}
    }
    bill.bytes += metered(|| drop((worker, stealer))).1.bytes;
    assert_eq!(bill.bytes, 0);
}

/// The bound of a growable deque also holds while thieves steal as the rings change.
#[test]
fn growable_bounds_with_thieves() {
    let ((worker, stealer), mut bill) = metered(|| Growable::with_room(1));
    let done = Flag::default();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.is_up() {
                    let _any = stealer.steal();
                }
            });
        }
        let _up = done.up_after();
        for _ in 0..200_000 {
            bill.bytes += metered(|| worker.push(Item::default())).1.bytes;
        }
    });
    assert!(bill.bytes <= growable_bound(worker.capacity()));
    bill.bytes += metered(|| drop((worker, stealer))).1.bytes;
    assert_eq!(bill.bytes, 0);
}

/// An injector of small items: 63 to the segment, 16 bytes each, and a header.
const SEGMENT: isize = 63 * 16 + 64;

/// The segments that an injector keeps to use them again, as the documentation says.
const KEPT: isize = 1024;

/// After a burst of a million items, an empty injector has one segment and those that it keeps, which
/// are no more than it ever needed.
#[test]
fn injector_after_a_burst() {
    let (injector, mut bill) = metered(Injector::new);
    assert!(bill.bytes <= SEGMENT);
    // Up to the border of a segment, beyond it, and to the middle of a segment.
    for items in [63, 1, 62, 6300, 63_000, 1_000_000] {
        let push = || (0..items).for_each(|n: u64| injector.push(n));
        bill.bytes += metered(push).1.bytes;
        let drain = || while injector.steal().is_success() {};
        bill.bytes += metered(drain).1.bytes;
        assert!(injector.is_empty());
        // One more because the burst began within a segment, and one that is always there.
        let needed = items.div_ceil(63) as isize + 2;
        assert!(bill.bytes <= needed.min(1 + KEPT) * SEGMENT, "{bill:?} after {items}");
    }
    assert!(bill.bytes > KEPT * 63 * 16, "{bill:?}: it keeps what it says");
    bill.bytes += metered(|| drop(injector)).1.bytes;
    assert_eq!(bill.bytes, 0);
}

/// The bound of an injector also holds where some threads allocate the segments and others free or keep them.
#[test]
fn injector_after_a_burst_of_threads() {
    const ITEMS: u64 = 300_000;
    let (injector, mut bill) = metered(Injector::new);
    let pushed = Flag::default();
    let push = || (0..ITEMS).for_each(|n| injector.push(n));
    let rob = || {
        let (worker, _stealer) = Bounded::at(64, 0);
        loop {
            let done = pushed.is_up();
            let outcome = persist(|| injector.steal_batch(&worker));
            while worker.pop().is_some() {}
            if done && outcome.is_none() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let pushers = [(); 2].map(|()| scope.spawn(|| metered(push).1.bytes));
        let thief = scope.spawn(|| metered(rob).1.bytes);
        let up = pushed.up_after();
        let pushers = pushers.map(|pusher| pusher.join());
        drop(up);
        for thread in pushers.into_iter().chain([thief.join()]) {
            bill.bytes += thread.expect("a thread");
        }
    });
    assert!(injector.is_empty());
    assert!(bill.bytes <= (1 + KEPT) * SEGMENT, "{bill:?}");
    bill.bytes += metered(|| drop(injector)).1.bytes;
    assert_eq!(bill.bytes, 0);
}

/// Once it has had as many items as it will ever have, an injector needs no more memory.
#[test]
fn injector_in_a_steady_state() {
    const ITEMS: usize = 1_000_000;
    const OUTSTANDING: usize = 10_000;
    let injector = Injector::new();
    let (mine, _my_stealer) = Bounded::at(64, 0);
    let mut rng = Rng::new(1);
    let mut wave = |most: usize| {
        let items = 1 + rng.below(most);
        let in_batch = rng.below(items);
        injector.push_batch(0..in_batch);
        (in_batch..items).for_each(|n| injector.push(n));
        let rob = |in_batches| match in_batches {
            true => injector.steal_batch(&mine).is_success(),
            false => injector.steal().is_success(),
        };
        while rob(rng.below(2) == 0) {
            while mine.pop().is_some() {}
        }
        items
    };
    // One more segment, because a wave may begin anywhere within one.
    (0..OUTSTANDING + 63).for_each(|n| injector.push(n));
    while injector.steal().is_success() {}
    let life = || {
        let mut items = 0;
        while items < ITEMS {
            items += wave(OUTSTANDING);
        }
    };
    assert_eq!(metered(life).1, NOTHING);
}

/// Kept segments are freed with the injector, even if the drop of an item panics.
#[test]
fn injector_with_kept_segments_and_a_panic() {
    let (_, bill) = metered(|| {
        let injector = Injector::new();
        injector.push_batch((0..1000).map(|n| Boxed::new(n, false)));
        while injector.steal().is_success() {}
        injector.push(Boxed::new(0, true));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(injector))).is_err());
    });
    assert_eq!(bill.bytes, 0);
}

/// An item that owns memory and whose drop can panic. The payload has no size and the hook is not
/// called, such that the panic itself allocates nothing.
struct Boxed {
    _own: Box<usize>,
    panics: bool,
}

impl Boxed {
    fn new(n: usize, panics: bool) -> Self {
        Self { _own: Box::new(n), panics }
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        if self.panics {
            resume_unwind(Box::new(()));
        }
    }
}

/// Uses a deque and an injector, and drops them with items in them.
fn live_and_die<F: Flavour>(panics: impl Fn(usize) -> bool) {
    let item = |n| Boxed::new(n, panics(n));
    let (worker, stealer) = F::with_room(512);
    let (mine, my_stealer) = F::with_room(512);
    let injector = Injector::new();
    (0..500).for_each(|n| worker.push(item(n)));
    (0..500).for_each(|n| injector.push(item(n)));
    assert!(stealer.steal_batch(&mine).is_success());
    assert!(injector.steal_batch(&mine).is_success());
    let die = |handle: Box<dyn FnOnce() + '_>| catch_unwind(AssertUnwindSafe(handle)).is_err();
    let panicked = [
        die(Box::new(|| drop((worker, stealer)))),
        die(Box::new(|| drop((my_stealer, mine)))),
        die(Box::new(|| drop(injector))),
    ];
    assert_eq!(panicked, [(0..500).any(panics); 3]);
}

fn all_is_freed<F: Flavour>() {
    let (_, bill) = metered(|| live_and_die::<F>(|_| false));
    assert_eq!(bill.bytes, 0);
    assert!(bill.allocations > 1000, "it was metered");
}

fn all_is_freed_after_panics<F: Flavour>() {
    let (_, bill) = metered(|| live_and_die::<F>(|n| n % 100 == 7));
    assert_eq!(bill.bytes, 0);
}

fn thieves_allocate_nothing<F: Flavour>() {
    let (worker, stealer) = F::with_room(512);
    (0..500).for_each(|n| worker.push(n));
    let steal = || while stealer.clone().steal().is_success() {};
    assert_eq!(metered(steal).1, NOTHING);
}

/// While the owner of a locked deque holds the lock, steals return `Retry`.
#[test]
fn locked_retry() {
    static GATE: Gate = Gate::new();
    let (worker, stealer) = Locked::with_room(1);
    let (mine, _) = Locked::with_room(1);
    let answers = thread::scope(|scope| {
        // The first push allocates while it holds the lock.
        scope.spawn(move || with_event(Event::Pause(&GATE), 1, || worker.push(1)));
        GATE.meanwhile(|| {
            (stealer.steal(), stealer.steal_batch(&mine), stealer.steal_batch_and_pop(&mine))
        })
    });
    assert_eq!(answers, (Steal::Retry, Steal::Retry, Steal::Retry));
    assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(1));
}

/// The owner of a locked deque counts how often it waits, and counts nothing else.
#[test]
fn locked_lock_waits() {
    /// Far more rounds than needed: in each round the owner is about to acquire a lock that is held.
    static GATES: [Gate; 1000] = [const { Gate::new() }; 1000];
    let (mut worker, stealer) = Locked::with_room(1);
    for (round, gate) in GATES.iter().enumerate() {
        let asks = AtomicBool::new(false);
        worker.push(round);
        let before = worker.lock_waits();
        worker = thread::scope(|scope| {
            // The thief's deque allocates for the first batch while both locks are held.
            scope.spawn(|| {
                let (mine, _) = Locked::with_room(1);
                let batch = || stealer.steal_batch(&mine);
                assert!(with_event(Event::Pause(gate), 1, batch).is_success());
                assert_eq!(mine.lock_waits(), 0);
            });
            let owner = gate.meanwhile(|| {
                let owner = scope.spawn(|| {
                    asks.store(true, Ordering::Release);
                    assert_eq!(worker.pop(), None, "it was stolen");
                    worker
                });
                wait_for(&asks);
                (0..round).for_each(|_| thread::yield_now());
                owner
            });
            owner.join().expect("the owner")
        });
        match worker.lock_waits() - before {
            0 => {}
            1 => return,
            waits => panic!("{waits} waits for one lock"),
        }
    }
    panic!("the owner never waited");
}

/// An owner that allocates a larger ring blocks no thief: the memory is allocated before the first item
/// moves.
#[test]
fn growable_goes_on() {
    static GATES: [Gate; 2] = [const { Gate::new() }; 2];
    let full = || {
        let (worker, stealer) = Growable::at(4, 0);
        (0..4).for_each(|n| worker.push(n));
        (worker, stealer)
    };
    let (worker, _) = full();
    assert_eq!(metered(|| worker.push(4)).1.allocations, GATES.len());
    for (n, gate) in GATES.iter().enumerate() {
        let (worker, stealer) = full();
        let (worker, heard) = thread::scope(|scope| {
            let owner = scope.spawn(move || {
                with_event(Event::Pause(gate), n + 1, || worker.push(4));
                worker
            });
            let heard = gate.meanwhile(|| (stealer.is_empty(), stealer.len(), stealer.steal()));
            (owner.join().expect("the owner"), heard)
        });
        assert_eq!(heard, (false, 4, Steal::Success(0)));
        (1..=4).rev().for_each(|n| assert_eq!(worker.pop(), Some(n)));
        assert_eq!((worker.pop(), stealer.steal()), (None, Steal::Empty));
    }
}

/// A pusher that allocates blocks no other thread.
#[test]
fn injector_goes_on() {
    static GATE: Gate = Gate::new();
    let injector = Injector::new();
    // The next push takes the last cell of a segment, so it allocates another segment.
    (0..62).for_each(|n| injector.push(n));
    let stolen: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| with_event(Event::Pause(&GATE), 1, || injector.push(1000)));
        GATE.meanwhile(|| {
            (62..200).for_each(|n| injector.push(n));
            (0..200).map(|_| injector.steal()).collect()
        })
    });
    assert!(stolen.into_iter().eq((0..200).map(Steal::Success)));
    assert_eq!(injector.steal(), Steal::Success(1000));
    assert_eq!(injector.steal(), Steal::Empty);
}
