//! The contract of `yield_now`: tasks that were queued before start first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heist::Strategy;

use crate::common::{
    Gate, Kind, WORKERS, assert_balanced, assert_counts, eventually, for_every_strategy, once,
};

for_every_strategy! {
    nothing_is_queued,
    tasks_from_outside_start_first,
    own_task_starts_first,
    own_tasks_start,
    many_tasks_that_yield,
    in_parts,
    no_thread_to_take_over,
    while_stopping,
    cancelled_by_stop_now,
}

once! {
    outside_of_a_pool,
}

fn outside_of_a_pool() {
    heist::yield_now();
    let (one, another) = heist::join(heist::yield_now, heist::yield_now);
    assert_eq!((one, another), ((), ()));
}

fn nothing_is_queued(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.install(|| (0..1000).for_each(|_| heist::yield_now()));
        assert_counts(&pool, 1, 0, 0);
    }
}

/// One worker, and tasks in the injector behind the one that yields.
fn tasks_from_outside_start_first(kind: Kind) {
    const TASKS: usize = 1000;
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let started = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&started);
    let yields = pool.spawn(move || {
        heist::yield_now();
        counter.load(Ordering::SeqCst)
    });
    for _ in 0..TASKS {
        let started = Arc::clone(&started);
        pool.spawn(move || started.fetch_add(1, Ordering::SeqCst));
    }
    gate.open();
    let before = yields.join().expect("a result");
    // A batch is 32 tasks. The one worker has taken two of them at most, and the thread that yields one.
    let least = if kind.strategy == Strategy::WorkStealing { TASKS - 3 * 32 } else { TASKS };
    assert!(before >= least, "only {before} of {TASKS} tasks have started");
    assert_counts(&pool, TASKS as u64 + 2, 0, 0);
}

/// The only task that is queued starts before the yield returns, whatever the worker does first.
fn own_task_starts_first(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..50 {
        let started = pool.spawn(|| {
            let started = Arc::new(AtomicUsize::new(0));
            let other = Arc::clone(&started);
            heist::spawn(move || other.store(1, Ordering::SeqCst));
            heist::yield_now();
            started.load(Ordering::SeqCst)
        });
        assert_eq!(started.join().expect("a result"), 1);
    }
    assert_counts(&pool, 100, 0, 0);
}

fn own_tasks_start(kind: Kind) {
    const TASKS: usize = 100;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let all = pool.spawn(|| {
            let started = Arc::new(AtomicUsize::new(0));
            for _ in 0..TASKS {
                let started = Arc::clone(&started);
                heist::spawn(move || started.fetch_add(1, Ordering::SeqCst));
            }
            while started.load(Ordering::SeqCst) < TASKS {
                heist::yield_now();
            }
        });
        all.join().expect("a result");
        assert_counts(&pool, TASKS as u64 + 1, 0, 0);
    }
}

fn many_tasks_that_yield(kind: Kind) {
    const TASKS: u64 = 40;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let tasks: Vec<_> = (0..TASKS)
            .map(|n| {
                pool.spawn(move || {
                    (0..3).for_each(|_| heist::yield_now());
                    n
                })
            })
            .collect();
        let sum: u64 = tasks.into_iter().map(|task| task.join().expect("a result")).sum();
        assert_eq!(sum, TASKS * (TASKS - 1) / 2);
        assert_counts(&pool, TASKS, 0, 0);
    }
}

fn in_parts(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            pool.spawn(|| ());
            let sum = pool.install(|| {
                heist::spawn(|| ());
                let half = || {
                    heist::yield_now();
                    1
                };
                let (a, b) = heist::join(half, half);
                let parts = AtomicUsize::new(0);
                heist::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|_| _ = parts.fetch_add(half(), Ordering::Relaxed));
                    }
                });
                a + b + parts.into_inner()
            });
            assert_eq!(sum, 6);
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn no_thread_to_take_over(kind: Kind) {
    let pool = kind.builder(1).max_threads(1).build().expect("a pool");
    let done = pool.spawn(|| {
        let other = heist::spawn(|| ());
        heist::yield_now();
        other.is_finished()
    });
    assert!(done.join().expect("a result"), "the only thread has run it on top");
    assert_counts(&pool, 2, 0, 0);
}

fn while_stopping(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            pool.spawn(|| {
                heist::spawn(|| ());
                heist::yield_now();
            });
        }
        assert_counts(&pool, 40, 0, 0);
    }
}

/// Tasks that yield go on, and what is queued is refused.
fn cancelled_by_stop_now(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let yielding = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                let yielding = Arc::clone(&yielding);
                let here = pool.handle();
                pool.spawn(move || {
                    yielding.fetch_add(1, Ordering::SeqCst);
                    // Until tasks are refused.
                    while !matches!(here.spawn(|| ()).join(), Err(heist::JoinError::Cancelled)) {
                        heist::spawn(|| ());
                        heist::yield_now();
                    }
                })
            })
            .collect();
        eventually("all of them run", || yielding.load(Ordering::SeqCst) == workers);
        pool.stop_now();
        tasks.into_iter().for_each(|task| task.join().expect("a result"));
        assert_balanced(&pool.stats());
    }
}
