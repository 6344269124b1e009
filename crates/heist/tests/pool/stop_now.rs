//! The contract of an immediate stop, and of races with any stop: no further task starts, running tasks are
//! waited for, and every handle yields an outcome.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use heist::{JoinError, Pool};

use crate::common::{
    Gate, Kind, Ledger, Rng, ThreadGroup, WORKERS, assert_balanced, assert_counts, eventually,
    for_every_strategy, stop_now_before,
};

for_every_strategy! {
    smoke,
    idle_workers,
    while_running,
    nested_spawns,
    during_stop,
    stop_after_now,
    racing_spawns,
    racing_spawns_now,
    racing_drops,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let ledger = Ledger::new(100);
        let gate = Gate::close(&pool);
        let handles: Vec<_> = (0..100)
            .map(|n| {
                let captured = ledger.item(n);
                pool.spawn(move || drop(captured))
            })
            .collect();
        let completed = gate.tasks();
        let probes = gate.stop_now(&pool);
        group.assert_gone();
        ledger.assert_each_once();
        for handle in handles {
            assert!(handle.is_finished());
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
        }
        assert_counts(&pool, completed, 0, 100 + probes);
    }
}

fn idle_workers(kind: Kind) {
    for _ in 0..20 {
        let pool = kind.pool(4);
        Gate::close(&pool).open();
        pool.stop_now();
        assert_counts(&pool, 4, 0, 0);
    }
}

/// Running tasks are waited for, and their results are available.
fn while_running(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (start, started) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let handle = pool.spawn(move || {
            start.send(()).expect("a test that waits");
            gone.recv().expect("a test that lets go")
        });
        started.recv().expect("a start");
        stop_now_before(&pool, || go.send(5).expect("a task that waits"));
        assert!(handle.is_finished());
        assert_eq!(handle.join().expect("a result"), 5);
        assert_balanced(&pool.stats());
    }
}

/// A running task may submit and wait: it receives a result or an error.
fn nested_spawns(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (start, started) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let handle = pool.spawn(move || {
            start.send(()).expect("a test that waits");
            gone.recv().expect("a test that lets go");
            (0..20).map(|n| heist::spawn(move || n).join()).collect::<Vec<_>>()
        });
        started.recv().expect("a start");
        stop_now_before(&pool, || go.send(()).expect("a task that waits"));
        for (n, result) in handle.join().expect("results").into_iter().enumerate() {
            match result {
                Ok(value) => assert_eq!(value, n),
                Err(JoinError::Cancelled | JoinError::Stopped) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_balanced(&pool.stats());
    }
}

/// An immediate stop overtakes a graceful one, and both return.
fn during_stop(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (start, started) = mpsc::channel();
        let all_held = Arc::new(Barrier::new(workers));
        for _ in 0..workers {
            let (start, all_held) = (start.clone(), Arc::clone(&all_held));
            // Blocks its worker until no task may start any more, which cannot be observed from outside.
            pool.spawn(move || {
                all_held.wait();
                start.send(()).expect("a test that waits");
                while heist::spawn(|| ()).join().is_ok() {
                    thread::yield_now();
                }
            });
        }
        (0..workers).for_each(|_| started.recv().expect("a start"));
        let handles: Vec<_> = (0..100).map(|_| pool.spawn(|| ())).collect();
        thread::scope(|scope| {
            let patient = scope.spawn(|| pool.stop());
            eventually("the pool refuses tasks", || pool.spawn(|| ()).is_finished());
            pool.stop_now();
            patient.join().expect("no panic");
        });
        for handle in handles {
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
        }
        assert_balanced(&pool.stats());
    }
}

fn stop_after_now(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let handle = pool.spawn(|| 1);
    gate.stop_now(&pool);
    pool.stop();
    assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
}

/// External threads submit tasks while another thread stops the pool. Returns how many of these tasks
/// were cancelled.
fn race(kind: Kind, workers: usize, seed: u64, stop: fn(&Pool)) -> u64 {
    let pool = kind.pool(workers);
    let start = Barrier::new(4);
    let submit = |seed| {
        start.wait();
        let mut rng = Rng::new(seed);
        let (mut results, mut cancelled, mut refused) = (0, 0, 0);
        let handles: Vec<_> = (0..300)
            .map(|n| {
                (0..rng.below(100)).for_each(|_| std::hint::spin_loop());
                pool.spawn(move || n)
            })
            .collect();
        for (n, handle) in handles.into_iter().enumerate() {
            match handle.join() {
                Ok(value) => {
                    assert_eq!(value, n);
                    results += 1;
                }
                Err(JoinError::Cancelled) => cancelled += 1,
                Err(JoinError::Stopped) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        (results, cancelled, refused)
    };
    let submit = &submit;
    let ends = thread::scope(|scope| {
        let threads = [0, 1, 2].map(|n| scope.spawn(move || submit(3 * seed + n)));
        start.wait();
        (0..Rng::new(seed).below(20_000)).for_each(|_| std::hint::spin_loop());
        stop(&pool);
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let [results, cancelled, refused] =
        ends.into_iter().fold([0; 3], |[a, b, c], end| [a + end.0, b + end.1, c + end.2]);
    let stats = pool.stats();
    assert_balanced(&stats);
    assert_eq!((stats.total.tasks_completed, stats.total.panics), (results, 0));
    // A task that is submitted at the moment of the stop may have been counted before it was refused.
    assert!(
        (cancelled..=cancelled + refused).contains(&stats.total.cancellations),
        "{:?}",
        stats.total
    );
    cancelled
}

fn racing_spawns(kind: Kind) {
    for workers in WORKERS {
        for seed in 0..30 {
            let cancelled = race(kind, workers, seed, Pool::stop);
            assert_eq!(cancelled, 0, "a graceful stop");
        }
    }
}

fn racing_spawns_now(kind: Kind) {
    for workers in WORKERS {
        for seed in 0..30 {
            race(kind, workers, seed, Pool::stop_now);
        }
    }
}

/// The destructors of cancelled tasks submit and wait in turn, whether a worker, the stop or a late
/// caller drops the task. They receive a result or an error, and nothing is left over.
fn racing_drops(kind: Kind) {
    struct Last(Arc<Pool>, Arc<AtomicUsize>);
    impl Drop for Last {
        fn drop(&mut self) {
            match self.0.spawn(|| ()).join() {
                Ok(()) | Err(JoinError::Cancelled | JoinError::Stopped) => {}
                Err(other) => panic!("{other:?}"),
            }
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    for (workers, stop) in
        WORKERS.into_iter().flat_map(|n| [(n, Pool::stop as fn(&Pool)), (n, Pool::stop_now)])
    {
        for seed in 0..20 {
            let pool = Arc::new(kind.pool(workers));
            let drops = Arc::new(AtomicUsize::new(0));
            let start = Barrier::new(3);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..100 {
                            let last = Last(Arc::clone(&pool), Arc::clone(&drops));
                            pool.spawn(move || drop(last));
                        }
                    });
                }
                start.wait();
                (0..Rng::new(seed).below(50_000)).for_each(|_| std::hint::spin_loop());
                stop(&pool);
            });
            assert_balanced(&pool.stats());
            assert_eq!(drops.load(Ordering::Relaxed), 200);
        }
    }
}
