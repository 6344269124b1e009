//! The contract of `install`: a closure that borrows runs on the pool, and the caller receives its value or
//! its panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use heist::Pool;

use crate::common::{
    Gate, Kind, Ledger, ThreadGroup, WORKERS, assert_balanced, for_every_strategy, panic_message,
};

for_every_strategy! {
    smoke,
    borrowed,
    large,
    not_send_inside,
    panics,
    nested,
    within_a_task,
    other_pool,
    threads_of_no_pool,
    spawns_inside,
    while_busy,
    does_not_return_early,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        assert_eq!(pool.install(|| 42), 42);
        assert!(pool.install(|| group.has_current()));
        assert!(!group.has_current());
        for n in 0..1000 {
            assert_eq!(pool.install(|| n), n);
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn borrowed(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let mut words = vec![String::from("a"), String::from("b")];
        let last = pool.install(|| {
            words.push("c".into());
            words.iter_mut().for_each(|word| word.push('!'));
            words.last_mut().expect("a word")
        });
        last.push('?');
        assert_eq!(words, ["a!", "b!", "c!?"]);
        let mut numbers = [0_u64; 1000];
        let (left, right) = numbers.split_at_mut(500);
        thread::scope(|scope| {
            scope.spawn(|| pool.install(|| left.fill(1)));
            scope.spawn(|| pool.install(|| right.fill(2)));
        });
        assert_eq!(numbers.iter().sum::<u64>(), 1500);
    }
}

fn large(kind: Kind) {
    #[repr(align(128))]
    struct Large([u64; 1000]);
    let pool = kind.pool(2);
    for n in 0..100 {
        let captured = Large([n; 1000]);
        let result = pool.install(move || {
            assert_eq!((&raw const captured).addr() % 128, 0);
            Large(captured.0.map(|n| n + 1))
        });
        assert!(result.0.iter().all(|&word| word == n + 1));
    }
}

/// A value that is created and dropped inside need not be `Send`.
fn not_send_inside(kind: Kind) {
    let pool = kind.pool(1);
    let count = pool.install(|| {
        let local = std::rc::Rc::new(5);
        *local + std::rc::Rc::strong_count(&local)
    });
    assert_eq!(count, 6);
}

/// The panic is propagated to the caller, and all captured values are dropped.
fn panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind
            .builder(workers)
            .on_panic(|_| unreachable!("the caller receives the panic"))
            .build();
        let pool = pool.expect("a pool");
        let ledger = Ledger::new(100);
        for n in 0..100 {
            let captured = ledger.item(n);
            let install = || {
                pool.install(|| {
                    let captured = captured;
                    panic!("planned: {}", captured.number)
                })
            };
            let result: Result<(), _> = catch_unwind(AssertUnwindSafe(install));
            assert_eq!(panic_message(&*result.expect_err("a panic")), format!("planned: {n}"));
        }
        ledger.assert_each_once();
        assert_eq!(pool.install(|| 1), 1);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// A nested `install` runs on the same thread.
fn nested(kind: Kind) {
    fn dive(pool: &Pool, depth: u32) -> u32 {
        if depth == 0 {
            return 0;
        }
        let outer = thread::current().id();
        pool.install(|| {
            assert_eq!(thread::current().id(), outer);
            dive(pool, depth - 1) + 1
        })
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.install(|| dive(&pool, 100)), 100);
        // Its value need not be `Send`.
        let mut number = 1;
        pool.install(|| pool.install(|| number += 1));
        assert_eq!(number, 2);
        let inner = || pool.install(|| pool.install(|| panic!("planned: inner")));
        let payload = catch_unwind(AssertUnwindSafe(|| -> () { inner() })).expect_err("a panic");
        assert_eq!(panic_message(&*payload), "planned: inner");
    }
}

fn within_a_task(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        let handles: Vec<_> = (0..100)
            .map(|n| {
                let inner = Arc::clone(&pool);
                pool.spawn(move || {
                    let outer = thread::current().id();
                    inner.install(|| (thread::current().id() == outer).then_some(n))
                })
            })
            .collect();
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().expect("a result"), Some(n));
        }
    }
}

/// A worker of one pool installs on another pool, and back.
fn other_pool(kind: Kind) {
    for workers in WORKERS {
        let groups = [ThreadGroup::new(), ThreadGroup::new()];
        let [ours, theirs] =
            groups.each_ref().map(|group| kind.builder_in(group, workers).build().expect("a pool"));
        for _ in 0..50 {
            ours.install(|| {
                assert!(groups[0].has_current());
                theirs.install(|| {
                    assert!(groups[1].has_current());
                    ours.install(|| assert!(groups[0].has_current()));
                });
            });
        }
    }
}

fn threads_of_no_pool(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        thread::scope(|scope| {
            for thread in 0..8_u64 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut sum = 0;
                    (0..300).for_each(|n| pool.install(|| sum += thread * n));
                    assert_eq!(sum, thread * 299 * 150);
                });
            }
        });
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Inside, the pool is the current pool.
fn spawns_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let sum = pool.install(|| {
            let handles: Vec<_> = (0..1000_u64).map(|n| heist::spawn(move || n)).collect();
            handles.into_iter().map(|handle| handle.join().expect("a result")).sum::<u64>()
        });
        assert_eq!(sum, 999 * 500);
        pool.stop();
        assert!(pool.stats().total.tasks_submitted >= 1000);
    }
}

/// While the workers are busy, an `install` waits for its turn.
fn while_busy(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        thread::scope(|scope| {
            let caller = scope.spawn(|| pool.install(|| 1));
            gate.open();
            assert_eq!(caller.join().expect("no panic"), 1);
        });
    }
}

/// A worker of another pool waits here, and no standby thread can take over, because its name panics.
/// The `install` must not return before the closure has run, because the closure borrows.
fn does_not_return_early(kind: Kind) {
    let named = kind.builder(1).thread_name(|n| {
        assert!(n < 1, "planned: no name for {n}");
        format!("heist-{n}")
    });
    let (ours, theirs) = (named.build().expect("a pool"), Arc::new(kind.pool(1)));
    let gate = Gate::close(&theirs);
    let (start, started) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let waiter = ours.spawn(move || {
        let done = Arc::new(AtomicBool::new(false));
        start.send(()).expect("a test that listens");
        // The closure owns what it could borrow, such that a failure of this test is not undefined
        // behaviour.
        let set = Arc::clone(&done);
        let install = || theirs.install(move || set.store(true, Ordering::Relaxed));
        let _ = catch_unwind(AssertUnwindSafe(install));
        tell.send(done.load(Ordering::Relaxed)).expect("a test that listens");
    });
    started.recv().expect("a start");
    let other = ours.spawn(|| ());
    thread::sleep(Duration::from_millis(20));
    gate.open();
    if !told.recv().expect("a word") {
        // The test does not wait for this pool.
        std::mem::forget(ours);
        panic!("left before the closure has run");
    }
    waiter.join().expect("a result");
    other.join().expect("a result");
}
