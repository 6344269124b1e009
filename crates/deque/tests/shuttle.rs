//! Larger scenarios under shuttle: random and PCT schedules of several thieves and many items.
//!
//! Run with `ci/models.sh`. Shuttle is sequentially consistent, so it says nothing about orderings (the
//! loom models do). It finds logic errors that need more threads and more steps than loom can explore. A
//! failing schedule is printed; `HEIST_REPLAY=<schedule> ci/schedules.sh NAME` runs it again.

#![cfg(shuttle)]

use std::sync::Arc;

use heist_deque::{BATCH_LIMIT, Injector, Steal, bounded, growable, locked};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

/// Schedules of each kind.
const SCHEDULES: usize = 10_000;

fn check(scenario: fn()) {
    heist_testkit::schedules::check(SCHEDULES, scenario);
}

/// Checks that each of `0..items` came out once.
fn complete(items: usize, mut out: Vec<usize>) {
    out.sort_unstable();
    assert!(out.iter().copied().eq(0..items), "lost or doubled: {out:?}");
}

/// Steals single items and batches in turn until the owner is done and nothing is left.
fn rob(
    done: &AtomicBool,
    one: impl Fn() -> Steal<usize>,
    batch: impl Fn() -> Steal<usize>,
    mine: impl Fn() -> Option<usize>,
) -> Vec<usize> {
    let mut loot = Vec::new();
    for turn in 0_usize.. {
        let last_look = done.load(Ordering::SeqCst);
        match if turn % 2 == 1 { batch() } else { one() } {
            Steal::Success(item) => loot.push(item),
            Steal::Empty if last_look => break,
            Steal::Empty | Steal::Retry => thread::yield_now(),
        }
        loot.extend(std::iter::from_fn(&mine));
    }
    loot
}

macro_rules! owner_and_thieves {
    ($name:ident, $flavour:ident, $new:expr, $push:expr) => {
        /// An owner that pushes and pops, and three thieves.
        #[test]
        fn $name() {
            check(|| {
                const ITEMS: usize = 24;
                let (worker, stealer) = $new;
                let done = Arc::new(AtomicBool::new(false));
                let thieves: Vec<_> = (0..3)
                    .map(|_| {
                        let (stealer, done) = (stealer.clone(), Arc::clone(&done));
                        thread::spawn(move || {
                            let (mine, _) = $new;
                            let batch = || stealer.steal_batch_and_pop(&mine);
                            rob(&done, || stealer.steal(), batch, || mine.pop())
                        })
                    })
                    .collect();
                let mut out = Vec::new();
                for item in 0..ITEMS {
                    out.extend($push(&worker, item));
                    if item % 3 == 2 {
                        out.extend(worker.pop());
                    }
                }
                out.extend(std::iter::from_fn(|| worker.pop()));
                assert_eq!(worker.pop(), None, "a pop that says None is final");
                done.store(true, Ordering::SeqCst);
                thieves.into_iter().for_each(|thief| out.extend(thief.join().unwrap()));
                complete(ITEMS, out);
            });
        }
    };
}

owner_and_thieves!(
    bounded_owner_and_thieves,
    bounded,
    bounded::new_at(4, usize::MAX >> 2).unwrap(),
    {
        |worker: &bounded::Worker<usize>, item| {
            worker.push(item).err().map(|full| full.into_inner())
        }
    }
);
owner_and_thieves!(growable_owner_and_thieves, growable, growable::new_at(1, usize::MAX >> 2), {
    |worker: &growable::Worker<usize>, item| {
        worker.push(item);
        None::<usize>
    }
});
owner_and_thieves!(locked_owner_and_thieves, locked, locked::new(), {
    |worker: &locked::Worker<usize>, item| {
        worker.push(item);
        None::<usize>
    }
});

/// A deque that grows and is never empty never looks empty, not even to a late thief that still uses the
/// old ring.
#[test]
fn growable_never_looks_empty() {
    check(|| {
        let (worker, stealer) = growable::new_at(2, 0);
        worker.push(0);
        worker.push(1);
        let pushed = Arc::new(AtomicBool::new(false));
        let late = stealer.clone();
        let onlooker = thread::spawn(move || {
            assert!(!late.steal().is_empty(), "there was an item at any time");
        });
        let seen = Arc::clone(&pushed);
        let thief = thread::spawn(move || {
            // Steals two of the three remaining items, after more were pushed.
            while !seen.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            (0..2).for_each(|_| while !stealer.steal().is_success() {});
        });
        (2..5).for_each(|item| worker.push(item));
        pushed.store(true, Ordering::SeqCst);
        thief.join().unwrap();
        onlooker.join().unwrap();
    });
}

/// Two pushers and two thieves around the border of two segments.
#[test]
fn injector_pushers_and_thieves() {
    check(|| {
        const EACH: usize = 40;
        let injector = Arc::new(Injector::new_at(1));
        (0..BATCH_LIMIT).for_each(|_| injector.push(usize::MAX));
        (0..BATCH_LIMIT).for_each(|_| assert!(injector.steal().is_success()));
        let done = Arc::new(AtomicBool::new(false));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let (injector, done) = (Arc::clone(&injector), Arc::clone(&done));
                thread::spawn(move || {
                    let (mine, _) = bounded::new(4).unwrap();
                    let batch = || injector.steal_batch_and_pop(&mine);
                    rob(&done, || injector.steal(), batch, || mine.pop())
                })
            })
            .collect();
        let pushers: Vec<_> = (0..2)
            .map(|part| {
                let injector = Arc::clone(&injector);
                thread::spawn(move || {
                    // Half of them one by one, the others as a batch.
                    let (singles, batch) = (0..EACH / 2, EACH / 2..EACH);
                    singles.for_each(|n| injector.push(part * EACH + n));
                    injector.push_batch(batch.map(|n| part * EACH + n));
                })
            })
            .collect();
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        done.store(true, Ordering::SeqCst);
        let loot = thieves.into_iter().flat_map(|thief| thief.join().unwrap());
        complete(2 * EACH, loot.collect());
    });
}

/// Checks the check: the harness notices a deque that loses an item under some schedule.
#[test]
#[should_panic(expected = "lost or doubled")]
fn a_broken_deque_is_noticed() {
    check(|| {
        let last = Arc::new(shuttle::sync::atomic::AtomicUsize::new(1));
        let take = |last: &shuttle::sync::atomic::AtomicUsize| {
            let there = last.load(Ordering::SeqCst) == 1;
            last.store(0, Ordering::SeqCst);
            there.then_some(0)
        };
        let other = Arc::clone(&last);
        let thief = thread::spawn(move || take(&other));
        let mut out = Vec::from_iter(take(&last));
        out.extend(thief.join().unwrap());
        complete(1, out);
    });
}
