//! The contract of panics in forks: both halves end, one panic is passed on, and nobody else notices.

#![cfg(not(any(loom, shuttle)))]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, mpsc};
use std::thread;

use common::{Kind, WORKERS, for_every_strategy, text};

for_every_strategy! {
    both,
    poisoned_all_the_same,
    others_do_not_unwind,
}

/// The first closure's is passed on, whoever runs the second.
fn both<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        for _ in 0..100 {
            let join = || pool.join(|| panic!("planned: a"), || panic!("planned: b"));
            let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { join() }));
            assert_eq!(text(&*payload.expect_err("a panic")), "planned: a");
        }
        assert_eq!(pool.install(|| 1), 1);
    }
}

/// A panic under a lock leaves word, even where its join was about to panic anyway.
fn poisoned_all_the_same<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        let mutex = Mutex::new(());
        let second = || {
            let _guard = mutex.lock().expect("nobody has panicked yet");
            panic!("planned: b")
        };
        let join = || pool.join(|| panic!("planned: a"), second);
        let payload = catch_unwind(AssertUnwindSafe(|| -> ((), ()) { join() }));
        assert_eq!(text(&*payload.expect_err("a panic")), "planned: a");
        assert!(mutex.is_poisoned(), "{workers} workers");
    }
}

/// A thread whose first closure has panicked waits for the second, and has time for another's job:
/// to that, nothing has panicked.
fn others_do_not_unwind<S: Kind>() {
    let pool = S::pool(3);
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
    assert!(!panicking, "an innocent job is told that it panics");
}
