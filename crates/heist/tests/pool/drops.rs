//! The contract of destructors: captured values and results are dropped exactly once, whatever happens to
//! the task, the handle and the pool.

use std::sync::Arc;
use std::task::Waker;
use std::thread;

use heist::{JoinHandle, Pool};

use crate::common::{
    Gate, Kind, Ledger, Rng, Tracked, WORKERS, WakeCounter, assert_balanced, block_on, eventually,
    for_every_strategy, poll_once,
};

for_every_strategy! {
    joined,
    awaited,
    detached,
    dropped_after_the_end,
    dropped_between_polls,
    panicked,
    cancelled,
    cancelled_and_detached,
    refused,
    pool_first,
    handle_in_its_own_result,
    handle_in_a_task,
    captured_before_result,
    large,
    on_exit,
    any_order,
}

/// The number of tasks of a test. Each captures one value and returns another.
const TASKS: usize = 200;

/// Submits all tasks. Each captures its result as well, such that the result of a task that never runs
/// is dropped once, too.
fn submit(pool: &Pool, ledger: &Ledger) -> Vec<JoinHandle<Tracked>> {
    let task = |n| {
        let (captured, result) = (ledger.item(n), ledger.item(TASKS + n));
        pool.spawn(move || {
            assert_eq!(captured.number, n);
            drop(captured);
            result
        })
    };
    (0..TASKS).map(task).collect()
}

fn ledger() -> Ledger {
    Ledger::new(2 * TASKS)
}

fn joined(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        for (n, handle) in submit(&pool, &ledger).into_iter().enumerate() {
            let before = ledger.dropped();
            let result = handle.join().expect("a result");
            assert_eq!(result.number, TASKS + n);
            drop(result);
            assert!(ledger.dropped() > before);
        }
        ledger.assert_each_once();
    }
}

fn awaited(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        for handle in submit(&pool, &ledger) {
            drop(block_on(handle).expect("a result"));
        }
        ledger.assert_each_once();
    }
}

fn detached(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        drop(submit(&pool, &ledger));
        assert_eq!(ledger.dropped(), 0);
        gate.open();
        pool.stop();
        ledger.assert_each_once();
    }
}

fn dropped_after_the_end(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let handles = submit(&pool, &ledger);
        eventually("all have ended", || handles.iter().all(JoinHandle::is_finished));
        assert_eq!(ledger.dropped(), TASKS, "only what was captured");
        drop(handles);
        ledger.assert_each_once();
    }
}

fn dropped_between_polls(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        let counter = WakeCounter::new();
        let mut handles = submit(&pool, &ledger);
        for handle in &mut handles {
            assert!(poll_once(handle, &counter.waker()).is_pending());
        }
        let half = handles.split_off(TASKS / 2);
        drop(handles);
        gate.open();
        eventually("the others have ended", || half.iter().all(JoinHandle::is_finished));
        drop(half);
        pool.stop();
        ledger.assert_each_once();
        assert_eq!(counter.wakers(), 0);
    }
}

/// A panic drops the captured values, and the payload is dropped once.
fn panicked(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
        let ledger = Arc::new(ledger());
        let task = |n| {
            let (captured, ledger) = (ledger.item(n), Arc::clone(&ledger));
            pool.spawn(move || -> () {
                let _captured = captured;
                std::panic::resume_unwind(Box::new(ledger.item(TASKS + n)));
            })
        };
        for (n, handle) in (0..TASKS).map(task).enumerate() {
            match n % 3 {
                0 => drop(handle),
                1 => drop(handle.join().expect_err("a panic")),
                _ => eventually("the task has ended", || handle.is_finished()),
            }
        }
        pool.stop();
        ledger.assert_each_once();
    }
}

fn cancelled(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        let handles = submit(&pool, &ledger);
        gate.stop_now(&pool);
        // The result is dropped with the task, not with the handle.
        ledger.assert_each_once();
        assert!(handles.into_iter().all(|handle| handle.join().is_err()));
        ledger.assert_each_once();
    }
}

fn cancelled_and_detached(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        drop(submit(&pool, &ledger));
        gate.stop_now(&pool);
        ledger.assert_each_once();
    }
}

fn refused(kind: Kind) {
    let (pool, ledger) = (kind.pool(2), ledger());
    pool.stop();
    let handles = submit(&pool, &ledger);
    ledger.assert_each_once();
    drop(handles);
    ledger.assert_each_once();
}

/// A handle yields its result after the pool was dropped.
fn pool_first(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let mut handles = submit(&pool, &ledger);
        drop(pool);
        assert_eq!(ledger.dropped(), TASKS);
        handles.truncate(TASKS / 2);
        assert_eq!(ledger.dropped(), TASKS + TASKS / 2);
        handles.into_iter().for_each(|handle| drop(handle.join().expect("a result")));
        ledger.assert_each_once();
    }
}

/// A result is itself a handle, of a task that has finished or not.
fn handle_in_its_own_result(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), Arc::new(ledger()));
        for n in 0..TASKS {
            let (captured, book) = (ledger.item(n), Arc::clone(&ledger));
            let handle = pool.spawn(move || {
                heist::spawn(move || {
                    let _captured = captured;
                    book.item(TASKS + n)
                })
            });
            if n % 2 == 0 {
                drop(handle.join().expect("a handle"));
            }
        }
        pool.stop();
        ledger.assert_each_once();
    }
}

/// A task that never runs drops the handles that it captured.
fn handle_in_a_task(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        let mut before = Vec::new();
        for handle in submit(&pool, &ledger) {
            before.push(pool.spawn(move || handle.join().map(drop)));
        }
        let last = pool.spawn(move || before.into_iter().for_each(|handle| drop(handle.join())));
        gate.stop_now(&pool);
        assert!(last.join().is_err());
        ledger.assert_each_once();
    }
}

/// When a result is available, the captured values of the task have been dropped.
fn captured_before_result(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let token = Arc::new(());
        for n in 0..1000 {
            let captured = Arc::clone(&token);
            let handle = pool.spawn(move || _ = &captured);
            match n % 3 {
                0 => handle.join().expect("a result"),
                1 => block_on(handle).expect("a result"),
                _ => eventually("the task has ended", || handle.is_finished()),
            }
            assert_eq!(Arc::strong_count(&token), 1);
        }
    }
}

/// Values that do not fit into a task slot.
fn large(kind: Kind) {
    for workers in WORKERS {
        let (pool, ledger) = (kind.pool(workers), ledger());
        let gate = Gate::close(&pool);
        let task = |n| {
            let (captured, result, ballast) = (ledger.item(n), ledger.item(TASKS + n), [n; 200]);
            pool.spawn(move || {
                let _captured = captured;
                (result, ballast)
            })
        };
        let mut handles: Vec<_> = (0..TASKS).map(task).collect();
        drop(handles.split_off(TASKS / 2));
        gate.open();
        for (n, handle) in handles.into_iter().enumerate() {
            let (result, ballast) = handle.join().expect("a result");
            assert_eq!((result.number, ballast), (TASKS + n, [n; 200]));
        }
        pool.stop();
        ledger.assert_each_once();
    }
}

/// A thread exits with handles in a thread-local.
fn on_exit(kind: Kind) {
    thread_local! {
        static KEPT: std::cell::RefCell<Vec<JoinHandle<Tracked>>> = const {
            std::cell::RefCell::new(Vec::new())
        };
    }
    let (pool, ledger) = (kind.pool(2), ledger());
    let handles = submit(&pool, &ledger);
    thread::spawn(move || KEPT.set(handles)).join().expect("no panic");
    pool.stop();
    ledger.assert_each_once();
}

/// Random operations on handles while the pool stops in either way.
fn any_order(kind: Kind) {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (pool, ledger) = (kind.pool(WORKERS[rng.below(3)]), ledger());
        let mut handles = submit(&pool, &ledger);
        thread::scope(|scope| {
            let stop = if rng.below(2) == 0 { Pool::stop } else { Pool::stop_now };
            let pool = &pool;
            scope.spawn(move || stop(pool));
            while !handles.is_empty() {
                let mut handle = handles.swap_remove(rng.below(handles.len()));
                match rng.below(4) {
                    0 => drop(handle),
                    1 => drop(handle.join()),
                    2 => drop(block_on(handle)),
                    _ => drop(poll_once(&mut handle, Waker::noop())),
                }
            }
        });
        assert_balanced(&pool.stats());
        ledger.assert_each_once();
    }
}
