//! Stops while forks run: parts of a running task are never cancelled, and everything is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use heist::{JoinError, Pool};

use crate::common::{
    Kind, Ledger, ThreadGroup, WORKERS, assert_balanced, for_every_strategy, stop_now_before,
};

for_every_strategy! {
    stop_waits_for_forks,
    stop_waits_for_an_install,
    stop_now_in_a_join,
    stop_now_in_a_scope,
    stop_now_over_and_over,
    dropped_after_an_install,
    dropped_with_forks_to_come,
}

const ROUNDS: usize = if cfg!(debug_assertions) { 20 } else { 100 };

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}

fn scoped(parts: usize) -> usize {
    let count = AtomicUsize::new(0);
    heist::scope(|scope| {
        for _ in 0..parts {
            scope.spawn(|scope| scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed)));
        }
    });
    count.into_inner()
}

/// Panics unless exactly this many tasks were cancelled and none panicked.
fn assert_only_cancelled(pool: &Pool, cancelled: u64) {
    let stats = pool.stats();
    assert_balanced(&stats);
    assert_eq!((stats.total.cancellations, stats.total.panics), (cancelled, 0));
}

fn stop_waits_for_forks(kind: Kind) {
    for workers in WORKERS {
        for _ in 0..ROUNDS {
            let pool = kind.pool(workers);
            let forks = [(); 4].map(|()| pool.spawn(|| fib(12)));
            let scopes = [(); 4].map(|()| pool.spawn(|| scoped(50)));
            pool.stop();
            forks.into_iter().for_each(|fork| assert_eq!(fork.join().expect("a result"), 144));
            scopes.into_iter().for_each(|scope| assert_eq!(scope.join().expect("a result"), 50));
            assert_only_cancelled(&pool, 0);
        }
    }
}

/// Another thread stops the pool during an `install`.
fn stop_waits_for_an_install(kind: Kind) {
    for workers in WORKERS {
        for _ in 0..ROUNDS {
            let pool = kind.pool(workers);
            let (start, started) = mpsc::channel();
            thread::scope(|threads| {
                threads.spawn(|| {
                    let result = pool.install(|| {
                        start.send(()).expect("a test that waits");
                        (fib(12), scoped(50))
                    });
                    assert_eq!(result, (144, 50));
                });
                started.recv().expect("a start");
                pool.stop();
            });
            assert_only_cancelled(&pool, 0);
        }
    }
}

/// Returns when the pool is about to stop.
type Hold<'h> = &'h (dyn Fn() + Sync);

/// Calls `stop_now` when `work` has started. The function that `work` receives returns when no further
/// task may start.
fn stop_now_during(kind: Kind, workers: usize, work: fn(Hold<'_>) -> usize, expected: usize) {
    let pool = kind.pool(workers);
    let (start, started) = mpsc::channel();
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let running = pool.spawn(move || {
        work(&|| {
            start.send(()).expect("a test that waits");
            held.lock().expect("no panic").recv().expect("an end");
        })
    });
    started.recv().expect("a start");
    let admitted = stop_now_before(&pool, || let_go.send(()).expect("a task that waits"));
    assert_eq!(running.join().expect("a result"), expected);
    assert!(matches!(pool.spawn(|| ()).join(), Err(JoinError::Stopped)));
    // A free worker may have run some of the accepted tasks. No fork is among the cancelled ones.
    let cancelled = pool.stats().total.cancellations;
    assert!(if workers == 1 { cancelled == admitted } else { cancelled <= admitted });
    assert_only_cancelled(&pool, cancelled);
}

/// The task forks after the stop has begun.
fn stop_now_in_a_join(kind: Kind) {
    for workers in WORKERS {
        stop_now_during(
            kind,
            workers,
            |hold| {
                hold();
                let (left, right) = heist::join(|| fib(15), || scoped(200));
                assert_eq!(left, 610);
                right
            },
            200,
        );
    }
}

/// Some parts are spawned before the stop and may not have started; others are spawned later.
fn stop_now_in_a_scope(kind: Kind) {
    fn work(hold: Hold<'_>) -> usize {
        let count = AtomicUsize::new(0);
        heist::scope(|scope| {
            let spawn = || scope.spawn(|_| _ = count.fetch_add(fib(5) as usize, Ordering::Relaxed));
            (0..100).for_each(|_| spawn());
            hold();
            (0..100).for_each(|_| spawn());
        });
        count.into_inner()
    }
    for workers in WORKERS {
        stop_now_during(kind, workers, work, 1000);
    }
}

/// Stops at arbitrary moments: a task that has started completes, and the others never start.
fn stop_now_over_and_over(kind: Kind) {
    const TASKS: usize = 8;
    for workers in WORKERS {
        for _ in 0..ROUNDS {
            let pool = kind.pool(workers);
            let ledger = Ledger::new(TASKS);
            let tasks: Vec<_> = (0..TASKS)
                .map(|number| {
                    let item = ledger.item(number);
                    pool.spawn(move || (item.number, fib(10), scoped(20)))
                })
                .collect();
            pool.stop_now();
            let mut cancelled = 0;
            for (number, task) in tasks.into_iter().enumerate() {
                match task.join() {
                    Ok(result) => assert_eq!(result, (number, 55, 20)),
                    Err(JoinError::Cancelled) => cancelled += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
            ledger.assert_each_once();
            assert_only_cancelled(&pool, cancelled);
        }
    }
}

fn dropped_after_an_install(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        for _ in 0..ROUNDS {
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            assert_eq!(pool.install(|| heist::join(|| fib(10), || scoped(20))), (55, 20));
            drop(pool);
        }
        group.assert_gone();
    }
}

/// Dropping the pool waits for all tasks and for their forks.
fn dropped_with_forks_to_come(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        for _ in 0..ROUNDS {
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            let tasks = [(); 4].map(|()| pool.spawn(|| heist::join(|| fib(10), || scoped(20))));
            drop(pool);
            tasks.into_iter().for_each(|task| assert_eq!(task.join().expect("a result"), (55, 20)));
        }
        group.assert_gone();
    }
}
