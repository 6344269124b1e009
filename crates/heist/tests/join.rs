//! The contract of `join`: both closures run, once each, wherever; results and panics come home.

#![cfg(not(any(loom, shuttle)))]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Kind, for_every_strategy};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}

fn a_fork_at_every_call<S: Kind>() {
    for workers in [1, 2, 4] {
        let pool = S::pool(workers);
        assert_eq!(pool.install(|| fib(20)), 6765);
        pool.stop();
        let stats = pool.stats();
        assert_eq!(stats.tasks_submitted, stats.tasks_completed);
    }
}

fn a_panic_waits_for_the_other_half<S: Kind>() {
    let pool = S::pool(2);
    let ran = AtomicUsize::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.join(|| panic!("left"), || ran.fetch_add(1, Ordering::Relaxed))
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "left");
    assert_eq!(ran.into_inner(), 1);
}

fn scopes_wait_for_all<S: Kind>() {
    let pool = S::pool(3);
    let count = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..1000 {
            scope.spawn(|scope| {
                scope.spawn(|_| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
    });
    assert_eq!(count.into_inner(), 1000);
}

fn an_isolated_scope_ends<S: Kind>() {
    let pool = S::pool(1);
    let count = AtomicUsize::new(0);
    pool.install(|| {
        heist::isolate(|| {
            heist::scope(|scope| {
                for _ in 0..100 {
                    scope.spawn(|_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            })
        })
    });
    assert_eq!(count.into_inner(), 100);
}

for_every_strategy!(
    a_fork_at_every_call,
    a_panic_waits_for_the_other_half,
    scopes_wait_for_all,
    an_isolated_scope_ends
);
