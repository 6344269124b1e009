//! The contract of `isolate`: a thread that waits inside runs only what was forked inside.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use heist::Pool;

use crate::common::{Kind, Rng, WORKERS, assert_balanced, for_every_strategy, panic_message};

for_every_strategy! {
    lock_across_a_join,
    nothing_else_runs_inside,
    stolen_halves_inherit_isolation,
    results_and_panics,
    panics_restore,
    outside_of_any_pool,
}

const ROUNDS: usize = if cfg!(debug_assertions) { 50 } else { 500 };

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}

/// Calls `f` for each item, in forks.
fn for_each(items: usize, f: &(impl Fn() + Sync)) {
    if items == 1 {
        return f();
    }
    heist::join(|| for_each(items / 2, f), || for_each(items - items / 2, f));
}

/// Many items of one loop want one lock, and fork while they hold it. If a wait inside ran another item,
/// that one would wait for the thread that it runs on.
fn lock_across_a_join(kind: Kind) {
    const ITEMS: usize = 50;
    for workers in [2, 3, 4] {
        let pool = kind.pool(workers);
        let shared = Mutex::new(0);
        let item = || {
            heist::isolate(|| {
                let mut sum = shared.lock().expect("no panic");
                let (left, right) = heist::join(|| fib(6), || fib(7));
                *sum += left + right;
            });
        };
        (0..ROUNDS).for_each(|_| pool.install(|| for_each(ITEMS, &item)));
        assert_eq!(shared.into_inner().expect("no panic"), (ROUNDS * ITEMS * 21) as u64);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

thread_local! {
    /// The innermost isolated call of the newest job on this thread; zero for none.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Returns whether a call is inside another. The number of an inner call is eight times that of the
/// outer one, plus a digit.
fn descends(mut inner: u64, outer: u64) -> bool {
    while inner > outer {
        inner /= 8;
    }
    inner == outer
}

/// Runs a part of an isolated call (zero for none), after a check of what is beneath it on the stack of
/// this thread.
fn part<R>(call: u64, f: impl FnOnce() -> R) -> R {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let beneath = INSIDE.get();
    assert!(descends(call, beneath), "a part of {call:o} on top of {beneath:o}");
    let _restore = Restore(INSIDE.replace(call));
    f()
}

/// A random tree of forks and isolated calls. Some nodes panic, and the panics are caught further up.
fn tree(call: u64, seed: u64, depth: u32) -> usize {
    if depth == 0 {
        return 1;
    }
    let mut rng = Rng::new(seed);
    let [a, b] = [1, 2].map(|n| seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(2 * n + 1));
    let half = move |seed| move || part(call, || tree(call, seed, depth - 1));
    match rng.below(8) {
        0..4 => {
            let (left, right) = heist::join(half(a), half(b));
            left + right
        }
        4 => {
            let count = AtomicUsize::new(0);
            heist::scope(|scope| {
                for seed in [a, b] {
                    let count = &count;
                    scope.spawn(move |_| _ = count.fetch_add(half(seed)(), Ordering::Relaxed));
                }
            });
            count.into_inner()
        }
        5 | 6 => {
            let inner = call * 8 + 1 + rng.below(7) as u64;
            heist::isolate(|| part(inner, || 2 * tree(inner, a, depth - 1)))
        }
        _ => {
            let inner = call * 8 + 1 + rng.below(7) as u64;
            let panics = || -> usize {
                heist::isolate(|| part(inner, || panic!("planned: {}", tree(inner, a, depth - 1))))
            };
            let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err("a panic");
            let text = panic_message(&*payload).to_owned();
            text.strip_prefix("planned: ").and_then(|n| n.parse().ok()).expect(&text)
        }
    }
}

/// The tree has the same value as on one thread, and every job that ran on top of an isolated call was
/// forked inside it.
fn nothing_else_runs_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for seed in 0..ROUNDS as u64 {
            let whole = move |seed| move || part(0, || tree(0, seed, 10));
            // Unrelated tasks.
            let tasks = [0, 1, 2].map(|n| pool.spawn(whole(3 * seed + n)));
            let again = [0, 1, 2].map(|n| pool.install(whole(3 * seed + n)));
            assert_eq!(tasks.map(|task| task.join().expect("a result")), again, "seed {seed}");
        }
    }
}

/// Keeps forking until another thread has set the flag.
fn fork_until(happened: &AtomicBool) {
    while !happened.load(Ordering::Acquire) {
        heist::join(|| (), thread::yield_now);
    }
}

/// The isolated half of a fork moves to another thread and waits there, while an unrelated half of the
/// same task could be run.
fn stolen_halves_inherit_isolation(kind: Kind) {
    for workers in [2, 3, 4] {
        let pool = kind.pool(workers);
        for _ in 0..ROUNDS {
            pool.install(|| inherit(&pool));
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn inherit(pool: &Pool) {
    let started = &AtomicBool::new(false);
    let unrelated = || (0..10).for_each(|seed| _ = part(0, || tree(0, seed, 4)));
    let isolated = || {
        heist::isolate(|| {
            part(1, || {
                let other = || {
                    started.store(true, Ordering::Release);
                    part(1, || tree(1, 7, 8))
                };
                heist::join(|| fork_until(started), other);
            });
        });
    };
    pool.scope(|scope| {
        (0..4).for_each(|_| scope.spawn(move |_| unrelated()));
        heist::join(isolated, unrelated);
    });
}

fn results_and_panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.install(|| heist::isolate(|| fib(12))), 144);
        assert_eq!(pool.install(|| heist::isolate(|| heist::isolate(|| fib(12)))), 144);
        // What it borrows need not be `Send`.
        let borrowed = pool.install(|| {
            let local = Cell::new(1);
            heist::isolate(|| local.set(2));
            local.get()
        });
        assert_eq!(borrowed, 2);
        let panics =
            || pool.install(|| heist::isolate(|| heist::join(|| (), || panic!("planned"))));
        let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { panics() }));
        assert_eq!(panic_message(&*payload.expect_err("a panic")), "planned");
    }
}

/// A panic that leaves an isolated call restores the state from before: forks work as before, inside and
/// outside of it.
fn panics_restore(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let panic_inside = || {
            let panics = || {
                heist::isolate(|| {
                    heist::join(|| fib(5), || fib(5));
                    panic!("planned")
                })
            };
            assert!(catch_unwind(panics).is_err());
        };
        pool.install(|| {
            for round in 0..ROUNDS as u64 {
                panic_inside();
                assert_eq!(fib(10), 55);
                heist::isolate(|| {
                    panic_inside();
                    part(1, || tree(1, round, 6));
                });
                part(0, || tree(0, round, 6));
            }
        });
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// The closure is called directly, and forks inside use the global pool.
fn outside_of_any_pool(kind: Kind) {
    let here = thread::current().id();
    assert_eq!(heist::isolate(|| thread::current().id()), here);
    assert_eq!(heist::isolate(|| fib(10)), 55);
    let pool = kind.pool(2);
    let shared = Mutex::new(0);
    heist::isolate(|| {
        let mut sum = shared.lock().expect("no panic");
        *sum += pool.install(|| heist::isolate(|| fib(10)));
    });
    assert_eq!(shared.into_inner().expect("no panic"), 55);
}
