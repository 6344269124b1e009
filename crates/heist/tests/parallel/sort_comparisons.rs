//! The contract of the sorts with a comparison that panics, that is not an order, or that writes: the slice
//! keeps each element once, and no two threads see an element at the same time.

use std::cell::Cell;
use std::cmp::Ordering;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Memory};

use heist::parallel::{sort_by, sort_by_key, sort_unstable_by, sort_unstable_by_key};

use crate::common::{Kind, Ledger, Rng, Tracked, panic_message, tests_for};

tests_for!(work_stealing: WORK_STEALING, {
    one_panic,
    panics_from_then_on,
    panics_with_large_elements,
    keys_that_panic,
    no_order,
    cycles,
    order_that_changes,
    order_that_ends,
    writes_are_kept,
    one_thread_at_a_time,
});

/// Enough elements for several leaves on each of a few workers.
const MANY: usize = 25_000;

/// The number of points at which to fail: all over the sort, most of them at its beginning.
const POINTS: usize = 16;

/// Returns a shape for every code path of the sorts: random, with many equal elements, in runs, sorted,
/// reversed.
fn shapes() -> [Vec<usize>; 5] {
    let mut rng = Rng::new(1);
    let random: Vec<usize> = (0..MANY).map(|_| rng.below(1 << 30)).collect();
    [
        random.clone(),
        random.iter().map(|n| n % 3).collect(),
        (0..MANY).map(|n| n % (MANY / 3)).collect(),
        (0..MANY).collect(),
        (0..MANY).rev().collect(),
    ]
}

/// Sorts items with both sorts and this comparison. Whatever happens, all items are still there and are
/// dropped once. Returns the number of comparisons. The sorts are compiled once for all comparisons.
fn hold_out(
    kind: Kind,
    keys: &[usize],
    compare: &(dyn Fn(usize, &usize, &usize) -> Ordering + Sync),
) -> [usize; 2] {
    let pool = kind.pool(4);
    [true, false].map(|stable| {
        let ledger = Ledger::new(keys.len());
        let mut v: Vec<Tracked> = (0..keys.len()).map(|number| ledger.item(number)).collect();
        let compared = AtomicUsize::new(0);
        let compare = |a: &Tracked, b: &Tracked| {
            compare(compared.fetch_add(1, Memory::Relaxed), &keys[a.number], &keys[b.number])
        };
        let sort =
            || if stable { sort_by(&mut v, compare) } else { sort_unstable_by(&mut v, compare) };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| pool.install(sort))) {
            let text = panic_message(&*panic);
            assert!(text.starts_with("planned") || text.contains("total order"), "{text}");
        }
        let mut numbers: Vec<usize> = v.iter().map(|item| item.number).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..keys.len()), "stable: {stable}");
        drop(v);
        ledger.assert_each_once();
        compared.into_inner()
    })
}

/// Returns the numbers of the comparisons at which to fail, out of `all`.
fn points(all: usize) -> impl Iterator<Item = usize> {
    let early = [0, 1, 2, 50].into_iter();
    let late = (0..POINTS).map(move |point| all * point / POINTS + point);
    early.chain(late)
}

fn fail_at_points(kind: Kind, keys: &[usize], fails: fn(usize, usize) -> bool) {
    let all = hold_out(kind, keys, &|_, a, b| a.cmp(b)).into_iter().max().expect("two");
    for point in points(all) {
        hold_out(kind, keys, &|count, a, b| {
            assert!(!fails(count, point), "planned");
            a.cmp(b)
        });
    }
}

fn one_panic(kind: Kind) {
    shapes().iter().for_each(|keys| fail_at_points(kind, keys, |count, point| count == point));
}

/// Every comparison from then on panics, on all workers.
fn panics_from_then_on(kind: Kind) {
    shapes().iter().for_each(|keys| fail_at_points(kind, keys, |count, point| count >= point));
}

/// Large elements are partitioned in another way.
fn panics_with_large_elements(kind: Kind) {
    let pool = kind.pool(4);
    let [keys, ..] = shapes();
    for point in points(MANY * MANY.ilog2() as usize) {
        let mut v: Vec<_> = keys.iter().map(|&key| ([key; 16], Box::new(key))).collect();
        let compared = AtomicUsize::new(0);
        let sort = || {
            sort_unstable_by(&mut v, |a, b| {
                assert!(compared.fetch_add(1, Memory::Relaxed) != point, "planned");
                a.0.cmp(&b.0)
            });
        };
        let _ = catch_unwind(AssertUnwindSafe(|| pool.install(sort)));
        let mut left: Vec<usize> = v.iter().map(|(_, key)| **key).collect();
        let mut all = keys.clone();
        left.sort_unstable();
        all.sort_unstable();
        assert!(left == all, "after {point}");
    }
}

fn keys_that_panic(kind: Kind) {
    let pool = kind.pool(4);
    for sort_of in [
        |v: &mut [String], n| sort_by_key(v, |s| key(s, n)),
        |v: &mut [String], n| {
            sort_unstable_by_key(v, |s| key(s, n));
        },
    ] {
        for bad in [0, MANY / 2, MANY - 1] {
            let mut v: Vec<String> = (0..MANY).map(|n| (n * 7919 % MANY).to_string()).collect();
            let sort = || sort_of(&mut v, bad);
            catch_unwind(AssertUnwindSafe(|| pool.install(sort))).expect_err("a bad key");
            let mut left: Vec<usize> = v.iter().map(|s| s.parse().expect("a number")).collect();
            left.sort_unstable();
            assert!(left.into_iter().eq(0..MANY));
        }
    }
}

fn key(text: &str, bad: usize) -> usize {
    let key = text.parse().expect("a number");
    assert!(key != bad, "planned");
    key
}

fn no_order(kind: Kind) {
    for keys in shapes() {
        for answer in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
            hold_out(kind, &keys, &|_, _, _| answer);
        }
        for salt in 0..3 {
            hold_out(kind, &keys, &|count, _, _| {
                let noise = (count + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                [Ordering::Less, Ordering::Equal, Ordering::Greater][noise % 3]
            });
        }
    }
}

/// A cycle: each element is less than the next, and the last one is less than the first.
fn cycles(kind: Kind) {
    for length in [3, 100, MANY] {
        let compare = |_, a: &usize, b: &usize| {
            let ahead = (b % length + length - a % length) % length;
            if ahead == 0 { Ordering::Equal } else { (length / 2).cmp(&ahead).reverse() }
        };
        shapes().iter().for_each(|keys| _ = hold_out(kind, keys, &compare));
    }
}

/// The order is reversed in the middle.
fn order_that_changes(kind: Kind) {
    for keys in shapes() {
        for after in [100, MANY, 5 * MANY, 12 * MANY] {
            hold_out(kind, &keys, &|count, a, b| if count < after { a.cmp(b) } else { b.cmp(a) });
        }
    }
}

/// The sample does not represent the rest: a partition moves all elements to one side, or none.
fn order_that_ends(kind: Kind) {
    for keys in shapes() {
        for answer in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
            for after in [100, MANY / 2] {
                let compare = |count, a: &usize, b: &usize| {
                    if count < after { a.cmp(b) } else { answer }
                };
                let compared = hold_out(kind, &keys, &compare);
                assert!(compared.iter().all(|&count| count < 64 * MANY), "{compared:?}");
            }
        }
    }
}

/// The comparison writes to the elements. A sort that copied an element for a comparison and wrote the
/// old copy back would lose writes.
fn writes_are_kept(kind: Kind) {
    let pool = kind.pool(4);
    for keys in shapes() {
        for stable in [true, false] {
            let mut v: Vec<_> = keys.iter().map(|&key| (key, Cell::new(0_usize))).collect();
            let compared = AtomicUsize::new(0);
            let compare = |a: &(usize, Cell<usize>), b: &(usize, Cell<usize>)| {
                compared.fetch_add(1, Memory::Relaxed);
                a.1.set(a.1.get() + 1);
                b.1.set(b.1.get() + 1);
                a.0.cmp(&b.0)
            };
            pool.install(|| {
                if stable { sort_by(&mut v, compare) } else { sort_unstable_by(&mut v, compare) }
            });
            assert!(v.is_sorted_by(|a, b| a.0 <= b.0));
            let written: usize = v.iter().map(|element| element.1.get()).sum();
            assert_eq!(written, 2 * compared.into_inner());
        }
    }
}

/// Elements need not be `Sync`.
fn one_thread_at_a_time(kind: Kind) {
    struct Element {
        key: usize,
        seen: AtomicBool,
    }
    let see = |element: &Element| {
        assert!(!element.seen.swap(true, Memory::Relaxed), "seen by two");
    };
    let compare = |a: &Element, b: &Element| {
        see(a);
        see(b);
        (0..20).for_each(|_| hint::spin_loop());
        a.seen.store(false, Memory::Relaxed);
        b.seen.store(false, Memory::Relaxed);
        a.key.cmp(&b.key)
    };
    let pool = kind.pool(4);
    for keys in shapes() {
        for stable in [true, false] {
            let element = |&key: &usize| Element { key, seen: AtomicBool::new(false) };
            let mut v: Vec<_> = keys.iter().map(element).collect();
            pool.install(|| {
                if stable { sort_by(&mut v, compare) } else { sort_unstable_by(&mut v, compare) }
            });
            assert!(v.is_sorted_by_key(|element| element.key));
        }
    }
}
