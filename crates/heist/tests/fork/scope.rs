//! The contract of scopes: spawned closures may borrow, all of them finish before the scope does, and one
//! panic is propagated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::Scope;

use crate::common::{
    Kind, Ledger, ThreadGroup, WORKERS, assert_balanced, assert_counts, for_every_strategy,
    panic_message,
};

for_every_strategy! {
    borrows,
    results,
    nested,
    spawns_of_spawns,
    from_threads_of_no_pool,
    from_another_pool,
    outside_of_any_pool,
    many,
    captured_values,
    panic_of_the_body,
    panic_of_one,
    panics_of_many,
    panics_of_body_and_parts,
    panic_within_nested,
    joins_and_scopes,
}

fn one_more(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn borrows(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let text = String::from("borrowed");
        let mut lengths = [0; 100];
        pool.scope(|scope| {
            for (index, length) in lengths.iter_mut().enumerate() {
                let text = &text;
                scope.spawn(move |_| *length = text.len() + index);
            }
        });
        assert!(lengths.iter().enumerate().all(|(index, &length)| length == index + 8));
    }
}

/// A scope returns the result of its closure, with and without spawned parts.
fn results(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.scope(|_| 1), 1);
        assert_eq!(pool.install(|| heist::scope(|_| [7_u64; 20])), [7; 20]);
        let count = AtomicUsize::new(0);
        let text = pool.scope(|scope| {
            scope.spawn(|_| one_more(&count));
            String::from("a result")
        });
        assert_eq!((text.as_str(), count.into_inner()), ("a result", 1));
    }
}

fn nested(kind: Kind) {
    fn tree(count: &AtomicUsize, depth: usize) {
        one_more(count);
        if depth > 0 {
            heist::scope(|scope| {
                (0..3).for_each(|_| scope.spawn(|_| tree(count, depth - 1)));
            });
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let count = AtomicUsize::new(0);
        pool.install(|| tree(&count, 6));
        assert_eq!(count.into_inner(), (3_usize.pow(7) - 1) / 2);
        // A part of an inner scope may spawn in the outer one.
        let count = AtomicUsize::new(0);
        pool.scope(|outer| {
            let count = &count;
            heist::scope(|inner| {
                for _ in 0..10 {
                    inner.spawn(move |_| outer.spawn(move |_| one_more(count)));
                }
            });
        });
        assert_eq!(count.into_inner(), 10);
    }
}

fn spawns_of_spawns(kind: Kind) {
    fn chain<'scope>(scope: &Scope<'scope>, count: &'scope AtomicUsize, left: usize) {
        one_more(count);
        if left > 1 {
            scope.spawn(move |scope| chain(scope, count, left - 1));
        }
    }
    fn tree<'scope>(scope: &Scope<'scope>, count: &'scope AtomicUsize, depth: usize) {
        one_more(count);
        if depth > 0 {
            (0..2).for_each(|_| scope.spawn(move |scope| tree(scope, count, depth - 1)));
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            chain(scope, &count, 10_000);
            tree(scope, &count, 10);
        });
        assert_eq!(count.into_inner(), 10_000 + 2047);
    }
}

/// Threads of no pool spawn parts, which run on the pool.
fn from_threads_of_no_pool(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let (here, there) = (AtomicUsize::new(0), AtomicUsize::new(0));
        pool.scope(|scope| {
            let (group, here, there) = (&group, &here, &there);
            thread::scope(|threads| {
                for _ in 0..4 {
                    threads.spawn(|| {
                        for _ in 0..100 {
                            scope.spawn(|_| {
                                one_more(if group.has_current() { here } else { there })
                            });
                        }
                    });
                }
            });
        });
        assert_eq!((here.into_inner(), there.into_inner()), (400, 0));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn from_another_pool(kind: Kind) {
    for workers in WORKERS {
        let (group, others) = (ThreadGroup::new(), ThreadGroup::new());
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let other = kind.builder_in(&others, workers).build().expect("a pool");
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            let (group, others, count, other) = (&group, &others, &count, &other);
            other.install(move || {
                assert!(others.has_current());
                for _ in 0..100 {
                    scope.spawn(move |scope| {
                        assert!(group.has_current());
                        other.install(|| {
                            scope.spawn(|_| {
                                assert!(group.has_current());
                                one_more(count);
                            });
                        });
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), 100);
    }
}

/// These run on the global pool, and inside of it on a pool of the strategy.
fn outside_of_any_pool(kind: Kind) {
    let pool = kind.pool(2);
    let count = AtomicUsize::new(0);
    heist::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|_| {
                let mut numbers = [0; 10];
                pool.scope(|scope| {
                    numbers.iter_mut().for_each(|number| scope.spawn(|_| *number += 1));
                });
                count.fetch_add(numbers.iter().sum(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(count.into_inner(), 200);
}

fn many(kind: Kind) {
    const MANY: usize = 100_000;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let count = AtomicUsize::new(0);
        pool.scope(|scope| (0..MANY).for_each(|_| scope.spawn(|_| one_more(&count))));
        assert_eq!(count.into_inner(), MANY);
        assert_counts(&pool, MANY as u64 + 1, 0, 0);
    }
}

/// Captured values are dropped once, before the scope ends.
fn captured_values(kind: Kind) {
    const ITEMS: usize = 1000;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Ledger::new(ITEMS);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                for number in 0..ITEMS {
                    let (item, ballast) = (ledger.item(number), [number; 10]);
                    scope.spawn(move |_| {
                        assert_eq!(item.number, ballast[9]);
                        assert!(number % 10 != 3, "planned: {number}");
                    });
                }
            });
        }));
        assert!(outcome.is_err());
        ledger.assert_each_once();
    }
}

/// Runs a scope with a hundred parts, all of which run. Returns the panic that is propagated.
fn panic_of(kind: Kind, workers: usize, body: bool, part: fn(usize) -> bool) -> String {
    let pool = kind.builder(workers).on_panic(|_| unreachable!("it is passed on")).build();
    let pool = pool.expect("a pool");
    let count = AtomicUsize::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            for number in 0..100 {
                let count = &count;
                scope.spawn(move |scope| {
                    scope.spawn(|_| one_more(count));
                    assert!(!part(number), "planned: part");
                });
            }
            assert!(!body, "planned: body");
        });
    }));
    assert_eq!(count.into_inner(), 100);
    assert_eq!(pool.install(|| 1), 1);
    pool.stop();
    let stats = pool.stats();
    assert_balanced(&stats);
    // The scope itself is a task as well, and counts as panicked if a part panics.
    let parts = (0..100).filter(|&number| part(number)).count() as u64;
    assert_eq!(stats.total.panics, parts + 1);
    panic_message(&*outcome.expect_err("a panic")).to_owned()
}

fn panic_of_the_body(kind: Kind) {
    for workers in WORKERS {
        assert_eq!(panic_of(kind, workers, true, |_| false), "planned: body");
    }
}

fn panic_of_one(kind: Kind) {
    for workers in WORKERS {
        assert_eq!(panic_of(kind, workers, false, |number| number == 50), "planned: part");
    }
}

fn panics_of_many(kind: Kind) {
    for workers in WORKERS {
        assert_eq!(panic_of(kind, workers, false, |_| true), "planned: part");
    }
}

fn panics_of_body_and_parts(kind: Kind) {
    for workers in WORKERS {
        assert_eq!(panic_of(kind, workers, true, |number| number % 2 == 0), "planned: body");
    }
}

/// A panic leaves the inner scope and is caught in a part of the outer scope, which returns.
fn panic_within_nested(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (caught, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let inner = || {
            heist::scope(|scope| {
                scope.spawn(|_| panic!("planned: inner"));
                scope.spawn(|_| one_more(&count));
            });
        };
        pool.scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|_| {
                    let payload = catch_unwind(AssertUnwindSafe(inner)).expect_err("a panic");
                    assert_eq!(panic_message(&*payload), "planned: inner");
                    one_more(&caught);
                });
            }
        });
        assert_eq!((caught.into_inner(), count.into_inner()), (50, 50));
    }
}

/// Scopes and joins, nested in each other.
fn joins_and_scopes(kind: Kind) {
    fn tree(count: &AtomicUsize, depth: usize) {
        if depth == 0 {
            return one_more(count);
        }
        let below = || {
            heist::scope(|scope| {
                scope.spawn(|_| tree(count, depth - 1));
                tree(count, depth - 1);
            });
        };
        heist::join(below, below);
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let count = AtomicUsize::new(0);
        pool.scope(|scope| (0..4).for_each(|_| scope.spawn(|_| tree(&count, 5))));
        assert_eq!(count.into_inner(), 4 * 4_usize.pow(5));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}
