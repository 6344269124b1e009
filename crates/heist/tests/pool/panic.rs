//! The contract of panics: each panic is reported once, to the handle of the task or else to the hook. No
//! panic harms a worker, whichever user function it comes from.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use heist::{Builder, JoinError, Panic};

use crate::common::{
    Gate, Kind, Ledger, ThreadGroup, WORKERS, assert_balanced, assert_counts, block_on, eventually,
    for_every_strategy, panic_message,
};

for_every_strategy! {
    payload,
    resume,
    error_texts,
    pool_survives_many_panics,
    thread_is_clean,
    detached_before,
    detached_after,
    waited_for,
    default_hook,
    hook_that_panics,
    result_whose_drop_panics,
    payload_whose_drop_panics,
    captured_value_whose_drop_panics,
    cancelled_value_whose_drop_panics,
    refused_value_whose_drop_panics,
    thread_hooks_that_panic,
    during_stop,
}

fn panicked<T>(result: Result<T, JoinError>) -> Panic {
    match result {
        Err(JoinError::Panicked(panic)) => panic,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a result"),
    }
}

/// Returns a builder whose panic hook sends the message of every panic.
fn told(kind: Kind, workers: usize) -> (Builder, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let builder = kind.builder(workers).on_panic(move |panic| {
        tell.send(panic.message().to_owned()).expect("a test that listens");
    });
    (builder, told)
}

fn payload(kind: Kind) {
    #[derive(Debug, PartialEq)]
    struct Custom(Vec<u8>);
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let panic = panicked(pool.spawn(|| panic!("planned")).join());
        assert_eq!(panic.message(), "planned");
        assert_eq!(panic.into_payload().downcast_ref(), Some(&"planned"));
        let number = 5;
        let panic = panicked(pool.spawn(move || panic!("planned: {number}")).join());
        assert_eq!(panic.message(), "planned: 5");
        assert_eq!(*panic.into_payload().downcast::<String>().expect("a text"), "planned: 5");
        let panic =
            panicked(pool.spawn(|| std::panic::resume_unwind(Box::new(Custom(vec![7])))).join());
        assert!(!panic.message().is_empty(), "something for a log");
        assert!(!format!("{panic:?}").is_empty());
        assert_eq!(panic.into_payload().downcast_ref(), Some(&Custom(vec![7])));
        assert_counts(&pool, 0, 3, 0);
    }
}

fn resume(kind: Kind) {
    let pool = kind.pool(1);
    let panic = panicked(pool.spawn(|| panic!("planned: once")).join());
    let payload = catch_unwind(AssertUnwindSafe(|| panic.resume())).expect_err("a panic");
    assert_eq!(panic_message(&*payload), "planned: once");
    // A panic that passes through two tasks stays the same.
    let outer = pool.spawn(|| {
        panicked(heist::spawn(|| panic!("planned: inner")).join()).resume();
    });
    assert_eq!(panicked(outer.join()).message(), "planned: inner");
    assert_counts(&pool, 0, 3, 0);
}

fn error_texts(kind: Kind) {
    let pool = kind.pool(1);
    let error = pool.spawn(|| panic!("planned: why")).join().expect_err("a panic");
    assert!(error.to_string().contains("planned: why"), "{error}");
    assert!(format!("{error:?}").contains("Panicked"), "{error:?}");
    let _: &(dyn std::error::Error + Send + Sync) = &error;
}

/// A pool of one worker still works after a thousand panics.
fn pool_survives_many_panics(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).on_panic(drop).build().expect("a pool");
        eventually("every thread has started", || {
            group.count() == workers || !cfg!(target_os = "linux")
        });
        let handles: Vec<_> = (0..1000).map(|_| pool.spawn(|| panic!("planned"))).collect();
        for (n, handle) in handles.into_iter().enumerate() {
            if n % 2 == 0 {
                panicked(handle.join());
            }
        }
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        if cfg!(target_os = "linux") {
            eventually("as many threads as before", || group.count() == workers);
        }
        assert_counts(&pool, 1, 1000, 0);
    }
}

fn thread_is_clean(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..10 {
        panicked(pool.spawn(|| panic!("planned")).join());
        assert!(!pool.spawn(thread::panicking).join().expect("a result"));
    }
}

fn detached_before(kind: Kind) {
    for workers in WORKERS {
        let (builder, told) = told(kind, workers);
        let pool = builder.build().expect("a pool");
        let gate = Gate::close(&pool);
        (0..50).for_each(|n| drop(pool.spawn(move || assert!(n % 2 == 1, "planned: {n}"))));
        gate.open();
        assert_counts(&pool, workers as u64 + 25, 25, 0);
        drop(pool);
        let mut told: Vec<_> = told.iter().collect();
        told.sort_by_key(|text| (text.len(), text.clone()));
        assert!(told.into_iter().eq((0..50).step_by(2).map(|n| format!("planned: {n}"))));
    }
}

/// The handle is dropped after the panic, without a join.
fn detached_after(kind: Kind) {
    for workers in WORKERS {
        let (builder, told) = told(kind, workers);
        let pool = builder.build().expect("a pool");
        let handle = pool.spawn(|| panic!("planned: late"));
        eventually("the task has ended", || handle.is_finished());
        assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(handle);
        assert_counts(&pool, 0, 1, 0);
        // The same after the pool was dropped.
        let (builder, told_last) = self::told(kind, workers);
        let last = builder.build().expect("a pool").spawn(|| panic!("planned: last"));
        drop((pool, last));
        assert_eq!(told.iter().collect::<Vec<_>>(), ["planned: late"]);
        assert_eq!(told_last.iter().collect::<Vec<_>>(), ["planned: last"]);
    }
}

/// A panic that a join has returned does not go to the hook, even if the error is dropped.
fn waited_for(kind: Kind) {
    let (builder, told) = told(kind, 2);
    let pool = Arc::new(builder.build().expect("a pool"));
    drop(pool.spawn(|| panic!("planned")).join());
    drop(block_on(pool.spawn(|| panic!("planned"))));
    drop(pool.spawn_batch([|| panic!("planned"), || ()]).join());
    let nested = pool.spawn(|| drop(heist::spawn(|| panic!("planned")).join()));
    nested.join().expect("a result");
    let installed = catch_unwind(AssertUnwindSafe(|| pool.install(|| panic!("planned"))));
    assert!(installed.is_err());
    pool.stop();
    drop(pool);
    assert_eq!(told.iter().count(), 0);
}

/// The default hook prints one line to stderr.
fn default_hook(kind: Kind) {
    let pool = kind.pool(1);
    drop(pool.spawn(|| panic!("planned")));
    drop(pool.spawn(|| panic_any(5_u8)));
    assert_counts(&pool, 0, 2, 0);
}

fn hook_that_panics(kind: Kind) {
    for workers in WORKERS {
        let calls = Arc::new(AtomicUsize::new(0));
        let builder = kind.builder(workers).on_panic({
            let calls = Arc::clone(&calls);
            move |panic| {
                calls.fetch_add(1, Ordering::Relaxed);
                panic!("{} again", panic.message());
            }
        });
        let pool = builder.build().expect("a pool");
        let gate = Gate::close(&pool);
        (0..100).for_each(|_| drop(pool.spawn(|| panic!("planned"))));
        gate.open();
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        assert_counts(&pool, workers as u64 + 1, 100, 0);
        assert_eq!(calls.load(Ordering::Relaxed), 100);
    }
}

fn result_whose_drop_panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
        let ledger = Arc::new(Ledger::new(30));
        let spawn = |n| {
            let ledger = Arc::clone(&ledger);
            pool.spawn(move || ledger.bomb(n))
        };
        // The pool drops these results.
        let gate = Gate::close(&pool);
        (0..10).for_each(|n| drop(spawn(n)));
        gate.open();
        // The caller drops these results, in different ways.
        (10..20).for_each(|n| _ = spawn(n).join().expect("a result").defuse());
        for n in 20..30 {
            let handle = spawn(n);
            eventually("the task has ended", || handle.is_finished());
            let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
        }
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        pool.stop();
        let stats = pool.stats();
        assert_balanced(&stats);
        assert_eq!(stats.total.tasks_submitted, workers as u64 + 31);
        ledger.assert_each_once();
    }
}

fn payload_whose_drop_panics(kind: Kind) {
    for workers in WORKERS {
        for with_hook in [false, true] {
            let builder = kind.builder(workers);
            let builder = if with_hook { builder.on_panic(drop) } else { builder };
            let pool = builder.build().expect("a pool");
            let ledger = Arc::new(Ledger::new(20));
            let gate = Gate::close(&pool);
            let spawn = |n| {
                let ledger = Arc::clone(&ledger);
                pool.spawn(move || std::panic::resume_unwind(Box::new(ledger.bomb(n))))
            };
            (0..10).for_each(|n| drop(spawn(n)));
            gate.open();
            for n in 10..20 {
                let handle = spawn(n);
                eventually("the task has ended", || handle.is_finished());
                let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
            }
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
            assert_counts(&pool, workers as u64 + 1, 20, 0);
            ledger.assert_each_once();
        }
    }
}

/// The drop of a captured value panics, which counts as a panic of the task.
fn captured_value_whose_drop_panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Ledger::new(20);
        for n in 0..10 {
            let captured = ledger.bomb(n);
            panicked(pool.spawn(move || drop(captured)).join());
            // The closure does or does not use the captured value.
            let captured = ledger.bomb(10 + n);
            panicked(pool.spawn(move || _ = &captured).join());
        }
        assert_counts(&pool, 0, 20, 0);
        ledger.assert_each_once();
    }
}

/// The drop of one of many cancelled tasks panics. The others are dropped all the same.
fn cancelled_value_whose_drop_panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
        let ledger = Ledger::new(100);
        let gate = Gate::close(&pool);
        let mut handles: Vec<_> = (0..100)
            .map(|n| {
                let captured = if n % 3 == 0 { ledger.bomb(n) } else { ledger.item(n) };
                pool.spawn(move || drop(captured))
            })
            .collect();
        handles.truncate(50);
        let held = gate.tasks();
        let probes = gate.stop_now(&pool);
        for handle in handles {
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
        }
        assert_counts(&pool, held, 0, 100 + probes);
        ledger.assert_each_once();
    }
}

/// A refused closure is dropped by the thread that submits it, so a panic may only reach the caller.
fn refused_value_whose_drop_panics(kind: Kind) {
    let pool = kind.pool(1);
    pool.stop();
    let ledger = Ledger::new(1);
    let captured = ledger.bomb(0);
    let refused = catch_unwind(AssertUnwindSafe(|| pool.spawn(move || drop(captured))));
    if let Ok(handle) = refused {
        assert!(matches!(handle.join(), Err(JoinError::Stopped)));
    }
    ledger.assert_each_once();
    assert_counts(&pool, 0, 0, 0);
}

fn thread_hooks_that_panic(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let hook = || {
            let calls = Arc::clone(&calls);
            move |n| {
                calls.fetch_add(1, Ordering::Relaxed);
                panic!("planned: hook {n}");
            }
        };
        let builder =
            kind.builder_in(&group, workers).on_thread_start(hook()).on_thread_stop(hook());
        let pool = builder.build().expect("a pool");
        Gate::close(&pool).open();
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        assert_counts(&pool, workers as u64 + 1, 0, 0);
        assert_eq!(calls.load(Ordering::Relaxed), 2 * workers);
        group.assert_gone();
    }
}

/// Panics during a stop do not disturb the stop, and none is lost.
fn during_stop(kind: Kind) {
    fn grow(depth: u32) {
        if depth > 0 {
            (0..2).for_each(|_| drop(heist::spawn(move || grow(depth - 1))));
        }
        panic!("planned: {depth}");
    }
    for workers in WORKERS {
        let (builder, told) = told(kind, workers);
        let pool = builder.build().expect("a pool");
        drop(pool.spawn(|| grow(8)));
        assert_counts(&pool, 0, 511, 0);
        drop(pool);
        assert_eq!(told.iter().count(), 511);
    }
}
