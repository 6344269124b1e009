//! The contract of the counters: exact once the pool has stopped, never contradictory before, and constant
//! while nothing happens.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use heist::{Counters, Pool, Stats};

use crate::common::{
    Gate, Kind, ThreadGroup, WORKERS, assert_balanced, assert_counts, ended, eventually, fields,
    for_every_strategy,
};

for_every_strategy! {
    fresh,
    shape,
    mixed,
    waits,
    batches,
    after_each_join,
    while_running,
    steals,
    single_worker_steals_nothing,
    sources,
    idle,
    idle_again,
    after_the_end,
}

fn fresh(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let stats = pool.stats();
        assert_eq!(stats.per_worker.len(), workers);
        assert_eq!((stats.total.tasks_submitted, ended(&stats.total)), (0, 0));
        assert_counts(&pool, 0, 0, 0);
    }
}

/// Plain values that can be kept and compared.
fn shape(kind: Kind) {
    let pool = kind.pool(1);
    pool.spawn(|| ());
    pool.stop();
    let stats: Stats = pool.stats();
    let total: Counters = stats.total;
    assert_eq!(total, stats.total);
    assert_ne!(total, Counters::default());
    assert!(format!("{stats:?}").contains("tasks_submitted"));
}

/// Every way for a task to end, at once.
fn mixed(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
        for n in 0..300 {
            let handle = pool.spawn(move || assert!(n % 3 > 0, "planned"));
            if n % 2 == 0 {
                assert_eq!(handle.join().is_err(), n % 3 == 0);
            }
        }
        pool.spawn(|| (0..50).for_each(|_| drop(heist::spawn(|| panic!("planned")))));
        eventually("all has ended", || ended(&pool.stats().total) == 351);
        let gate = Gate::close(&pool);
        (0..40).for_each(|_| drop(pool.spawn(|| ())));
        let held = gate.tasks();
        let probes = gate.stop_now(&pool);
        assert_counts(&pool, 200 + 1 + held, 100 + 50, 40 + probes);
    }
}

/// A task is counted once, whichever thread runs it.
fn waits(kind: Kind) {
    fn grow(depth: u32) {
        if depth > 0 {
            let others = [(); 2].map(|()| heist::spawn(move || grow(depth - 1)));
            others.into_iter().for_each(|other| other.join().expect("a result"));
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.spawn(|| grow(9)).join().expect("a result");
        assert_counts(&pool, (1 << 10) - 1, 0, 0);
    }
}

fn batches(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for size in [0, 1, 10, 1000_u64] {
            let batch = pool.spawn_batch((0..size).map(|n| move || assert!(n != 5, "planned")));
            assert_eq!(batch.join().is_err(), size > 5);
        }
        assert_counts(&pool, 1009, 2, 0);
    }
}

/// A task is counted before its result is available.
fn after_each_join(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let mut tasks = 0;
        for size in (0..2000).map(|round| round % 9) {
            pool.spawn_batch((0..size).map(|_| || ())).join().expect("results");
            pool.spawn(|| ()).join().expect("a result");
            tasks += size + 1;
            let stats = pool.stats();
            assert_eq!((stats.total.tasks_submitted, stats.total.tasks_completed), (tasks, tasks));
        }
    }
}

fn assert_later(earlier: &Counters, later: &Counters) {
    for (before, after) in fields(earlier).into_iter().zip(fields(later)) {
        assert!(before.1 <= after.1, "{before:?}, then {after:?}");
    }
}

/// A snapshot may be old, but it is consistent.
fn while_running(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = pool.stats();
                    while !done.load(Ordering::Acquire) {
                        let stats = pool.stats();
                        assert!(
                            ended(&stats.total) <= stats.total.tasks_submitted,
                            "{:?}",
                            stats.total
                        );
                        assert_later(&last.total, &stats.total);
                        for (before, after) in last.per_worker.iter().zip(&stats.per_worker) {
                            assert_later(before, after);
                        }
                        last = stats;
                    }
                });
            }
            for n in 0..10_000 {
                pool.spawn(move || {
                    assert!(n % 10 > 0, "planned");
                    if n % 5 == 1 {
                        heist::spawn(|| ());
                    }
                });
            }
            pool.stop();
            done.store(true, Ordering::Release);
        });
        assert_counts(&pool, 9000 + 2000, 1000, 0);
    }
}

/// Work that the compiler cannot optimize away.
fn toil() {
    (0..20_000_u64).for_each(|n| _ = black_box(n));
}

fn steals(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        // One steal is enough, but on a busy machine the other workers may not get to run.
        eventually("a steal", || {
            let source = pool.spawn(|| (0..200).for_each(|_| drop(heist::spawn(toil))));
            source.join().expect("a result");
            eventually("all has ended", || {
                ended(&pool.stats().total) == pool.stats().total.tasks_submitted
            });
            !kind.steals || pool.stats().total.successful_steals > 0
        });
        pool.stop();
        let stats = pool.stats();
        assert_balanced(&stats);
        assert!(stats.total.successful_steals <= stats.total.steal_attempts);
        assert!(stats.total.successful_steals <= stats.total.tasks_moved);
        let by_distance = stats.total.near_steals + stats.total.far_steals;
        assert_eq!(by_distance, stats.total.successful_steals);
        if !kind.steals {
            assert_eq!((stats.total.successful_steals, stats.total.tasks_moved), (0, 0));
        }
    }
}

fn single_worker_steals_nothing(kind: Kind) {
    let pool = kind.pool(1);
    pool.spawn(|| (0..1000).for_each(|_| drop(heist::spawn(|| ())))).join().expect("a result");
    pool.stop();
    assert_eq!(pool.stats().total.successful_steals, 0);
    assert_counts(&pool, 1001, 0, 0);
}

/// Tasks from outside come through the injector; those from inside need not.
fn sources(kind: Kind) {
    let pool = kind.pool(1);
    (0..100).for_each(|_| drop(pool.spawn(|| ())));
    pool.stop();
    assert!(pool.stats().total.injector_pops > 0);
    let pool = kind.pool(1);
    pool.spawn(|| (0..100).for_each(|_| drop(heist::spawn(|| ()))));
    pool.stop();
    let stats = pool.stats();
    if kind.steals {
        assert!(stats.total.local_pops > 0, "{:?}", stats.total);
    }
    assert!(
        stats.total.local_pops + stats.total.injector_pops + stats.total.tasks_moved >= 101,
        "{:?}",
        stats.total
    );
}

/// Panics unless every worker goes to sleep, and stays asleep.
fn assert_idle(pool: &Pool, group: &ThreadGroup) {
    // A pool is idle if its threads sleep and its counters do not change over a longer time. How soon it
    // becomes idle does not matter.
    let mut last = pool.stats();
    eventually("nothing changes any more", || {
        thread::sleep(Duration::from_millis(100));
        let stats = pool.stats();
        let still = stats.total == last.total && stats.total.parks >= pool.workers() as u64;
        last = stats;
        still && group.all_sleep()
    });
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(10));
        assert_eq!(pool.stats().total, last.total, "an idle pool does nothing");
    }
}

fn idle(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        assert_idle(&kind.builder_in(&group, workers).build().expect("a pool"), &group);
    }
}

fn idle_again(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        for _ in 0..3 {
            let handles: Vec<_> = (0..100).map(|_| pool.spawn(toil)).collect();
            handles.into_iter().for_each(|handle| handle.join().expect("a result"));
            pool.spawn(|| heist::spawn(toil).join()).join().expect("a result").expect("a result");
            assert_idle(&pool, &group);
        }
        assert_counts(&pool, 306, 0, 0);
    }
}

/// The counters do not change after the stop.
fn after_the_end(kind: Kind) {
    let pool = kind.pool(2);
    (0..100).for_each(|_| drop(pool.spawn(|| ())));
    pool.stop();
    let stats = pool.stats();
    pool.spawn(|| ());
    pool.stop_now();
    assert_eq!(pool.stats(), stats);
}
