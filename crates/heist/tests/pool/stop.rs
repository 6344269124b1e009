//! The contract of stopping: a graceful stop runs every task, an immediate stop starts no further task.
//! Neither leaves a thread behind, and every handle yields an outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use heist::{JoinError, Pool};

use crate::common::{
    Gate, Kind, Ledger, ThreadGroup, WORKERS, assert_balanced, assert_counts, eventually,
    for_every_strategy, panic_message,
};

for_every_strategy! {
    smoke,
    nothing_to_do,
    everything_completes,
    trees_complete,
    again,
    from_many_threads,
    from_a_task,
    from_a_task_of_another_pool,
    from_a_thread_hook,
    drop_stops,
    drop_in_own_task,
    drop_in_own_task_with_work_left,
    spawn_afterwards,
    install_afterwards,
    threads_of_waiters,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let handle = pool.spawn(|| 1);
        pool.stop();
        group.assert_gone();
        assert!(handle.is_finished());
        assert_eq!(handle.join().expect("a result"), 1);
        assert_counts(&pool, 1, 0, 0);
        // The methods of a stopped pool still work.
        assert_eq!((pool.workers(), pool.strategy()), (workers, kind.strategy));
        assert!(format!("{pool:?}").starts_with("Pool"));
    }
}

fn nothing_to_do(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        for round in 0..20 {
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            match round % 3 {
                0 => pool.stop(),
                1 => pool.stop_now(),
                _ => drop(pool),
            }
        }
        group.assert_gone();
    }
}

fn everything_completes(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let runs = Arc::new(AtomicU64::new(0));
        let gate = Gate::close(&pool);
        for _ in 0..1000 {
            let runs = Arc::clone(&runs);
            pool.spawn(move || runs.fetch_add(1, Ordering::Relaxed));
        }
        gate.open();
        assert_counts(&pool, workers as u64 + 1000, 0, 0);
        assert_eq!(runs.load(Ordering::Relaxed), 1000);
    }
}

/// Tasks submitted by tasks during a stop run as well, at any depth.
fn trees_complete(kind: Kind) {
    fn grow(depth: u32, leaves: Arc<AtomicU64>) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // This is slow enough that the stop begins in the middle.
        thread::yield_now();
        for _ in 0..2 {
            let leaves = Arc::clone(&leaves);
            heist::spawn(move || grow(depth - 1, leaves));
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let leaves = Arc::new(AtomicU64::new(0));
        let gate = Gate::close(&pool);
        for _ in 0..4 {
            let leaves = Arc::clone(&leaves);
            pool.spawn(move || grow(9, leaves));
        }
        thread::scope(|scope| {
            let stopper = scope.spawn(|| pool.stop());
            eventually("the pool refuses tasks", || pool.spawn(|| ()).is_finished());
            gate.open();
            stopper.join().expect("no panic");
        });
        assert_eq!(leaves.load(Ordering::Relaxed), 4 << 9);
        assert_balanced(&pool.stats());
        let stats = pool.stats();
        assert_eq!((stats.total.panics, stats.total.cancellations), (0, 0));
    }
}

fn again(kind: Kind) {
    let pool = kind.pool(2);
    pool.spawn(|| ());
    for _ in 0..3 {
        pool.stop();
        pool.stop_now();
    }
    assert_counts(&pool, 1, 0, 0);
}

/// Every call returns when all tasks have ended, not only the first one.
fn from_many_threads(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let runs = Arc::new(AtomicU64::new(0));
        for _ in 0..500 {
            let runs = Arc::clone(&runs);
            pool.spawn(move || {
                thread::yield_now();
                runs.fetch_add(1, Ordering::Relaxed)
            });
        }
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    pool.stop();
                    assert_eq!(runs.load(Ordering::Relaxed), 500);
                });
            }
        });
        assert_counts(&pool, 500, 0, 0);
        group.assert_gone();
    }
}

/// A stop from inside a task would wait for itself, so it panics with a message.
fn from_a_task(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        for now in [false, true] {
            let inner = Arc::clone(&pool);
            let task = pool.spawn(move || if now { inner.stop_now() } else { inner.stop() });
            match task.join() {
                Err(JoinError::Panicked(panic)) => {
                    assert!(panic.message().contains("stop"), "{}", panic.message());
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
            let panicked = catch_unwind(AssertUnwindSafe(|| pool.install(|| pool.stop())));
            assert!(panicked.is_err());
        }
        assert_eq!(pool.install(|| 2), 2);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn from_a_task_of_another_pool(kind: Kind) {
    let (ours, theirs) = (kind.pool(1), Arc::new(kind.pool(1)));
    let handle = theirs.spawn(|| 1);
    let stopper = Arc::clone(&theirs);
    ours.spawn(move || stopper.stop()).join().expect("a result");
    assert_eq!(handle.join().expect("a result"), 1);
    assert_counts(&theirs, 1, 0, 0);
}

/// The hooks run on threads of the pool. A stop in the start hook would wait for the pool to be built,
/// and one in the stop hook for its own thread, so both panic with a message.
fn from_a_thread_hook(kind: Kind) {
    for workers in WORKERS {
        for stop in [Pool::stop, Pool::stop_now] {
            let group = ThreadGroup::new();
            let there = Arc::new(OnceLock::<Weak<Pool>>::new());
            let told = Arc::new(AtomicUsize::new(0));
            let hook = || {
                let (there, told) = (Arc::clone(&there), Arc::clone(&told));
                move |_| {
                    let pool = loop {
                        match there.get() {
                            Some(pool) => break pool,
                            None => thread::yield_now(),
                        }
                    };
                    let pool = pool.upgrade().expect("a pool, while a test stops it");
                    let outcome = catch_unwind(AssertUnwindSafe(|| stop(&pool)));
                    told.fetch_add(usize::from(outcome.is_err()), Ordering::Relaxed);
                    panic!("planned: as if nobody had caught it");
                }
            };
            let builder =
                kind.builder_in(&group, workers).on_thread_start(hook()).on_thread_stop(hook());
            let pool = Arc::new(builder.build().expect("a pool"));
            there.set(Arc::downgrade(&pool)).expect("set once");
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
            assert_counts(&pool, 1, 0, 0);
            assert_eq!(told.load(Ordering::Relaxed), 2 * workers);
            group.assert_gone();
        }
    }
}

fn drop_stops(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let runs = Arc::new(AtomicU64::new(0));
        for _ in 0..500 {
            let runs = Arc::clone(&runs);
            pool.spawn(move || runs.fetch_add(1, Ordering::Relaxed));
        }
        drop(pool);
        assert_eq!(runs.load(Ordering::Relaxed), 500);
        group.assert_gone();
    }
}

/// A task drops the last reference to the pool. It cannot wait for itself, and does not.
fn drop_in_own_task(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        for _ in 0..20 {
            let pool = Arc::new(kind.builder_in(&group, workers).build().expect("a pool"));
            let gate = Gate::close(&pool);
            let inner = Arc::clone(&pool);
            let handle = pool.spawn(move || drop(inner));
            drop(pool);
            gate.open();
            handle.join().expect("a result");
        }
        group.assert_gone();
    }
}

fn drop_in_own_task_with_work_left(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let runs = Arc::new(AtomicUsize::new(0));
        let pool = Arc::new(kind.builder_in(&group, workers).build().expect("a pool"));
        let gate = Gate::close(&pool);
        let inner = Arc::clone(&pool);
        let runs_within = Arc::clone(&runs);
        let dropper = pool.spawn(move || {
            drop(inner);
            let last = heist::spawn(move || runs_within.fetch_add(1, Ordering::Relaxed));
            last.join().map(drop)
        });
        let handles: Vec<_> = (0..100)
            .map(|_| {
                let runs = Arc::clone(&runs);
                pool.spawn(move || runs.fetch_add(1, Ordering::Relaxed))
            })
            .collect();
        drop(pool);
        gate.open();
        dropper.join().expect("a result").expect("a task of the pool may go on submitting");
        handles.into_iter().for_each(|handle| _ = handle.join().expect("a result"));
        assert_eq!(runs.load(Ordering::Relaxed), 101);
        group.assert_gone();
    }
}

fn spawn_afterwards(kind: Kind) {
    for stop in [Pool::stop, Pool::stop_now] {
        let pool = kind.pool(2);
        stop(&pool);
        let ledger = Ledger::new(10);
        for n in 0..10 {
            let captured = ledger.item(n);
            let handle = pool.spawn(move || {
                let _captured = captured;
                unreachable!("a task after the end")
            });
            assert_eq!(ledger.dropped(), n + 1, "nothing is kept");
            assert!(handle.is_finished());
            let result: Result<(), _> = handle.join();
            assert!(matches!(result, Err(JoinError::Stopped)));
        }
        ledger.assert_each_once();
        assert_counts(&pool, 0, 0, 0);
    }
}

fn install_afterwards(kind: Kind) {
    let pool = kind.pool(1);
    pool.stop();
    let runs = AtomicBool::new(false);
    let install = || pool.install(|| runs.store(true, Ordering::Relaxed));
    let payload = catch_unwind(AssertUnwindSafe(install)).expect_err("a panic");
    assert!(panic_message(&*payload).contains("stop"), "{}", panic_message(&*payload));
    assert!(!runs.load(Ordering::Relaxed));
}

/// The standby threads are gone as well.
fn threads_of_waiters(kind: Kind) {
    for stop in [Pool::stop, Pool::stop_now] {
        for workers in WORKERS {
            let group = ThreadGroup::new();
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            let other = kind.pool(1);
            let gate = Gate::close(&other);
            let waiting = Arc::new(AtomicUsize::new(0));
            for _ in 0..20 {
                let (slow, waiting) = (other.spawn(|| ()), Arc::clone(&waiting));
                pool.spawn(move || {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    slow.join().expect("a result");
                });
            }
            eventually("all of them wait", || waiting.load(Ordering::Relaxed) == 20);
            thread::scope(|scope| {
                let stopper = scope.spawn(|| stop(&pool));
                eventually("the pool refuses tasks", || pool.spawn(|| ()).is_finished());
                gate.open();
                stopper.join().expect("no panic");
            });
            assert_balanced(&pool.stats());
            group.assert_gone();
        }
    }
}
