//! The contract of parallel loops: every item is processed once, results are in order, and nothing is lost
//! or dropped twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, mpsc};
use std::thread;

use heist::parallel::{self, with_min_len};

use crate::common::{Kind, Ledger, for_every_strategy, panic_message};
use crate::{SIZES, work};

for_every_strategy! {
    each_item_once,
    each_in_place,
    ranges,
    in_order,
    not_commutative,
    one_accumulator_without_help,
    an_accumulator_for_each_part,
    in_pieces,
    few_at_once,
    nested,
    in_joins_and_scopes,
    panics,
    dropped_once,
    on_one_worker,
}

fn each_item_once(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let hits: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
        pool.install(|| {
            parallel::for_each(&hits, |hit| {
                work(size);
                hit.fetch_add(1, Relaxed);
            });
        });
        assert!(hits.iter().all(|hit| hit.load(Relaxed) == 1), "{size} items");
    }
}

fn each_in_place(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let mut numbers: Vec<usize> = (0..size).collect();
        pool.install(|| parallel::for_each(&mut numbers, |number| *number = work(*number) + 1));
        assert!(numbers.iter().enumerate().all(|(n, &number)| number == work(n) + 1));
    }
}

fn ranges(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let sum = AtomicUsize::new(0);
        pool.install(|| parallel::for_range(10..10 + size, |n| _ = sum.fetch_add(n, Relaxed)));
        assert_eq!(sum.into_inner(), (10..10 + size).sum());
    }
    let negative = pool.install(|| parallel::reduce(-5..5_i8, || 0, |a, b| a + b, |a, b| a + b));
    assert_eq!(negative, -5);
    let whole = pool.install(|| parallel::map(i8::MIN..i8::MAX, |n| n));
    assert_eq!(whole, (i8::MIN..i8::MAX).collect::<Vec<_>>());
    let backwards = std::ops::Range { start: 5, end: 3 };
    pool.install(|| parallel::for_range(backwards, |_| panic!("there is nothing in it")));
}

fn in_order(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let made = pool.install(|| parallel::map(0..size, |n| (work(n), n.to_string())));
        assert_eq!(made.len(), size);
        assert!(
            made.iter().enumerate().all(|(n, (w, text))| *w == work(n) && *text == n.to_string())
        );
    }
}

fn not_commutative(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let expected: String = (0..size).map(|n| format!("{n},")).collect();
        let joined = pool.install(|| {
            let add = |text: String, n: usize| {
                work(n);
                text + &format!("{n},")
            };
            parallel::reduce(0..size, String::new, add, |left, right| left + &right)
        });
        assert_eq!(joined, expected);
    }
}

/// Concatenates the numbers from zero on, in order. Returns how often `identity` and `combine` were called.
fn concatenate(size: usize) -> (usize, usize) {
    let (identities, combines) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let identity = || {
        identities.fetch_add(1, Relaxed);
        Vec::new()
    };
    let push = |mut numbers: Vec<usize>, n| {
        work(n);
        numbers.push(n);
        numbers
    };
    let append = |mut left: Vec<usize>, mut right| {
        combines.fetch_add(1, Relaxed);
        left.append(&mut right);
        left
    };
    let numbers = parallel::reduce(0..size, identity, push, append);
    assert_eq!(numbers, (0..size).collect::<Vec<_>>());
    (identities.into_inner(), combines.into_inner())
}

/// As long as no other thread takes a part, everything goes into one accumulator, in however many blocks.
fn one_accumulator_without_help(kind: Kind) {
    let pool = kind.pool(2);
    let (started, is_started) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    let busy = pool.spawn(move || {
        started.send(()).expect("a test that waits");
        let _ = opened.recv();
    });
    is_started.recv().expect("a worker");
    // The other worker is busy, so that nobody helps.
    assert_eq!(pool.install(|| concatenate(100_000)), (1, 0));
    drop(open);
    busy.join().expect("an end");
}

fn an_accumulator_for_each_part(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let (identities, combines) = pool.install(|| concatenate(size));
        assert_eq!(identities, combines + 1, "{size} items");
    }
    let (identities, combines) = concatenate(20_000);
    assert_eq!(identities, combines + 1, "from outside");
}

fn in_pieces(kind: Kind) {
    let pool = kind.pool(3);
    for size in SIZES {
        let numbers: Vec<usize> = (0..size).collect();
        for min in [0, 1, 10, 100_000] {
            let smallest = AtomicUsize::new(usize::MAX);
            let pieces = pool.install(|| {
                let each = |some: &[usize]| {
                    smallest.fetch_min(some.len(), Relaxed);
                    some.iter().copied().map(work).collect::<Vec<_>>()
                };
                with_min_len(min)
                    .reduce_pieces(&numbers, each, |left, right| [left, right].concat())
            });
            match pieces {
                None => assert_eq!(size, 0),
                Some(all) => assert!(all.iter().enumerate().all(|(n, &w)| w == work(n))),
            }
            if min > size && size > 0 {
                assert_eq!(smallest.into_inner(), size, "one piece");
            }
        }
    }
}

/// Two items wait for each other: a loop of few items is divided before any of them has run.
fn few_at_once(kind: Kind) {
    let pool = kind.pool(2);
    for _ in 0..20 {
        let both = Barrier::new(2);
        pool.install(|| parallel::for_range(0..2, |_| _ = both.wait()));
    }
}

fn nested(kind: Kind) {
    let pool = kind.pool(2);
    let sums = pool.install(|| {
        parallel::map(0..100_usize, |outer| {
            parallel::reduce(0..100_usize, || 0, |sum, inner| sum + outer * inner, |a, b| a + b)
        })
    });
    assert!(sums.iter().enumerate().all(|(outer, &sum)| sum == outer * 4950));
}

fn in_joins_and_scopes(kind: Kind) {
    let pool = kind.pool(2);
    let total = AtomicUsize::new(0);
    let add = |n| _ = total.fetch_add(work(n) & 1, Relaxed);
    pool.scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|_| {
                heist::join(
                    || parallel::for_range(0..500, add),
                    || parallel::for_range(0..500, add),
                );
            });
        }
    });
    assert_eq!(total.into_inner(), 8 * (0..500).map(|n| work(n) & 1).sum::<usize>());
}

fn panics(kind: Kind) {
    let pool = kind.pool(2);
    for bad in [0, 1, 500, 999] {
        let each = |n| {
            work(n);
            assert!(n != bad, "at {bad}");
        };
        let failed = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| parallel::for_range(0..1000, each));
        }));
        assert_eq!(panic_message(&*failed.unwrap_err()), format!("at {bad}"));
    }
    assert_eq!(pool.install(|| parallel::map(0..3, |n| n)), [0, 1, 2]);
}

fn dropped_once(kind: Kind) {
    let pool = kind.pool(2);
    for bad in [usize::MAX, 0, 1, 40, 500, 999] {
        let (ledger, count) = (Ledger::new(1000), AtomicUsize::new(0));
        let made = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| {
                parallel::map(0..1000_usize, |n| {
                    work(n);
                    assert!(n != bad, "no result");
                    count.fetch_add(1, Relaxed);
                    ledger.item(n)
                })
            })
        }));
        assert_eq!(made.is_ok(), bad == usize::MAX);
        drop(made);
        assert_eq!(ledger.dropped(), count.into_inner(), "every result, once");
    }
}

fn on_one_worker(kind: Kind) {
    let pool = kind.pool(1);
    let here = pool.install(|| {
        let me = thread::current().id();
        parallel::map(0..1000, |_| thread::current().id()).iter().all(|&id| id == me)
    });
    assert!(here);
    assert_eq!(pool.stats().total.publications, 0);
}

#[test]
fn outside_of_any_pool() {
    for size in SIZES {
        let numbers: Vec<usize> = (0..size).collect();
        let made = parallel::map(&numbers, |&n| work(n));
        assert!(made.iter().enumerate().all(|(n, &w)| w == work(n)));
        let sum = parallel::reduce(&numbers, || 0, |sum, &n| sum + n, |a, b| a + b);
        assert_eq!(sum, (0..size).sum());
    }
}

/// Many short loops, in which an external thread takes part.
#[test]
fn hot_outside_of_any_pool() {
    let numbers: Vec<u64> = (0..40_000).collect();
    for _ in 0..2_000 {
        let sum = parallel::reduce_pieces(&numbers, |some| some.iter().sum::<u64>(), |a, b| a + b);
        assert_eq!(sum, Some(799_980_000));
    }
}

#[test]
fn panics_outside_of_any_pool() {
    for bad in [0, 20_000, 39_999] {
        for _ in 0..50 {
            let failed = catch_unwind(|| {
                parallel::for_range(0..40_000, |n| assert!(std::hint::black_box(n) != bad, "bad"));
            });
            assert_eq!(panic_message(&*failed.unwrap_err()), "bad");
        }
    }
}

#[test]
fn nothing_and_one_touch_no_pool() {
    let me = thread::current().id();
    let none: [u8; 0] = [];
    parallel::for_each(&none, |_| unreachable!());
    assert_eq!(parallel::map(&none, |_| 1), []);
    assert_eq!(parallel::reduce(&none, || 7, |a, _| a, |a, _| a), 7);
    assert_eq!(parallel::reduce_pieces(&none, |_| 1, |a, b| a + b), None);
    assert_eq!(parallel::map(&[0], |_| thread::current().id()), [me]);
    let few = with_min_len(100).map(0..100, |_| thread::current().id());
    assert!(few.iter().all(|&id| id == me));
}
