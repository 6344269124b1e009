//! The contract of panics in forks: both halves finish, one panic is propagated, and no other task is
//! affected.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::common::{Kind, Ledger, WORKERS, assert_balanced, for_every_strategy, panic_message};

for_every_strategy! {
    both,
    lock_is_poisoned,
    unrelated_jobs_see_no_panic,
    second,
    values_are_dropped,
}

/// The panic of the first closure is propagated, whichever thread runs the second.
fn both(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let join = || pool.join(|| panic!("planned: a"), || panic!("planned: b"));
            let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { join() }));
            assert_eq!(panic_message(&*payload.expect_err("a panic")), "planned: a");
        }
        assert_eq!(pool.install(|| 1), 1);
    }
}

/// A panic under a lock poisons the lock, even if the join was about to panic anyway.
fn lock_is_poisoned(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let mutex = Mutex::new(());
        let second = || {
            let _guard = mutex.lock().expect("nobody has panicked yet");
            panic!("planned: b")
        };
        let join = || pool.join(|| panic!("planned: a"), second);
        let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { join() }));
        assert_eq!(panic_message(&*payload.expect_err("a panic")), "planned: a");
        assert!(mutex.is_poisoned(), "{workers} workers");
    }
}

/// A thread whose first closure has panicked waits for the second and may run an unrelated job
/// meanwhile. To that job, the thread is not panicking.
fn unrelated_jobs_see_no_panic(kind: Kind) {
    let pool = kind.pool(3);
    let (start, started) = mpsc::channel();
    let (let_go, held) = mpsc::channel::<()>();
    let (run, runs) = mpsc::channel();
    let panics = pool.spawn(move || {
        let first = move || {
            started.recv().expect("a start");
            panic!("planned: a");
        };
        let second = move || {
            start.send(()).expect("a fork that listens");
            held.recv().expect("an end");
        };
        heist::join(first, second);
    });
    let other = pool.spawn(move || {
        let second = move || {
            run.send(()).expect("a fork that listens");
            thread::panicking()
        };
        heist::join(move || runs.recv().expect("a start"), second).1
    });
    let panicking = other.join().expect("a result");
    let_go.send(()).expect("a part that waits");
    assert!(panics.join().is_err());
    assert!(!panicking, "an unrelated job sees that the thread is panicking");
}

/// Keeps forking until another thread has set the flag.
fn fork_until(happened: &AtomicBool) {
    while !happened.load(Ordering::Acquire) {
        heist::join(|| (), thread::yield_now);
    }
}

/// The panic of the second closure is propagated if it is the only one, from this thread or from
/// another.
fn second(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(|_| unreachable!("it is passed on")).build();
        let pool = pool.expect("a pool");
        for round in 0..100 {
            let started = AtomicBool::new(workers == 1 || round % 2 == 0);
            let second = || {
                started.store(true, Ordering::Release);
                panic!("planned: b");
            };
            let join = || pool.join(|| fork_until(&started), second);
            let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { join() }));
            assert_eq!(panic_message(&*payload.expect_err("a panic")), "planned: b");
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Captured values, and the result of a half that returns, are dropped once, whichever half panics.
fn values_are_dropped(kind: Kind) {
    const ROUNDS: usize = 120;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Ledger::new(4 * ROUNDS);
        for round in 0..ROUNDS {
            let (one, other) = [(true, false), (false, true), (true, true)][round % 3];
            let [a, b, left, right] = [0, 1, 2, 3].map(|number| ledger.item(4 * round + number));
            let started = &AtomicBool::new(workers == 1 || round % 2 == 0);
            let first = move || {
                fork_until(started);
                assert!(!one, "planned: {}", a.number);
                left
            };
            let second = move || {
                started.store(true, Ordering::Release);
                assert!(!other, "planned: {}", b.number);
                right
            };
            let payload = catch_unwind(AssertUnwindSafe(|| pool.join(first, second)));
            let number = 4 * round + usize::from(!one);
            assert_eq!(
                panic_message(&*payload.expect_err("a panic")),
                format!("planned: {number}")
            );
        }
        ledger.assert_each_once();
        pool.stop();
        assert_balanced(&pool.stats());
    }
}
