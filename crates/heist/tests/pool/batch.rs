//! The contract of a batch: every closure is an ordinary task. The batch yields the results in the order of
//! the closures, or the first failure.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;
use std::{hint, thread};

use heist::{JoinError, Pool};

use crate::common::{
    Gate, Kind, Ledger, WORKERS, assert_balanced, assert_counts, block_on, eventually,
    for_every_strategy, in_child, panic_message, stop_now_before,
};

for_every_strategy! {
    smoke,
    order,
    empty,
    one,
    many,
    large,
    from_inside,
    within_batches,
    deep_within_batches,
    closures_that_wait_for_each_other,
    closures_on_all_workers,
    on_a_deep_stack,
    cancelled_while_awaited,
    future,
    detached,
    is_finished,
    panics,
    detached_panics,
    cancelled,
    partly_cancelled,
    stopped,
    results_whose_drop_panics,
    iterators_with_wrong_size_hints,
    iterator_that_panics,
    iterator_that_spawns,
}

type Job = Box<dyn FnOnce() -> usize + Send>;

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let batch = pool.spawn_batch((0..10).map(|n| move || n * n));
        assert_eq!(batch.join().expect("results"), [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]);
        let jobs: [Job; 2] = [Box::new(|| 1), Box::new(|| 2)];
        assert_eq!(pool.spawn_batch(jobs).join().expect("results"), [1, 2]);
        assert_counts(&pool, 12, 0, 0);
    }
}

/// The first closure ends last.
fn order(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        let ended = Arc::new(AtomicUsize::new(0));
        let batch = pool.spawn_batch((0..100_usize).map(|n| {
            let ended = Arc::clone(&ended);
            move || {
                while n == 0 && ended.load(Ordering::Acquire) < 99 {
                    thread::yield_now();
                }
                ended.fetch_add(1, Ordering::Release);
                n
            }
        }));
        assert!(batch.join().expect("results").into_iter().eq(0..100));
    }
}

fn empty(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    // There is nothing to wait for.
    let batch = pool.spawn_batch(iter::empty::<fn() -> String>());
    assert!(batch.is_finished());
    assert_eq!(batch.join().expect("results"), Vec::<String>::new());
    assert_eq!(block_on(pool.spawn_batch([(); 0].map(|()| || 1))).expect("results"), [0; 0]);
    drop(pool.spawn_batch(iter::empty::<fn()>()));
    gate.open();
    assert_counts(&pool, 1, 0, 0);
}

fn one(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn_batch(iter::once(|| "one")).join().expect("results"), ["one"]);
        assert_eq!(pool.spawn_batch(Some(|| ())).join().expect("results"), [()]);
        assert_counts(&pool, 2, 0, 0);
    }
}

fn many(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let batches = [(); 3].map(|()| pool.spawn_batch((0..10_000_u64).map(|n| move || n)));
        for batch in batches {
            assert!(batch.join().expect("results").into_iter().eq(0..10_000));
        }
        assert_counts(&pool, 30_000, 0, 0);
    }
}

/// Closures and results that do not fit where small ones do.
fn large(kind: Kind) {
    let pool = kind.pool(2);
    let batch = pool.spawn_batch((0..200).map(|n| {
        let ballast = [n; 200];
        move || ballast.map(|n| n + 1)
    }));
    let results = batch.join().expect("results");
    assert!(results.into_iter().eq((1..201).map(|n| [n; 200])));
    // No values at all.
    assert_eq!(pool.spawn_batch([|| (); 100]).join().expect("results"), [(); 100]);
}

fn from_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        let inner = Arc::clone(&pool);
        let sum = pool.spawn(move || {
            let batch = inner.spawn_batch((0..5000_u64).map(|n| move || n));
            batch.join().expect("results").into_iter().sum::<u64>()
        });
        assert_eq!(sum.join().expect("a result"), 4999 * 5000 / 2);
    }
}

fn within_batches(kind: Kind) {
    fn grow(pool: &Arc<Pool>, depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let batch = pool.spawn_batch((0..4).map(|_| {
            let pool = Arc::clone(pool);
            move || grow(&pool, depth - 1)
        }));
        batch.join().expect("results").into_iter().sum()
    }
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        assert_eq!(grow(&pool, 5), 1024);
    }
}

/// Each level waits inside a task of the level above.
fn deep_within_batches(kind: Kind) {
    fn descend(pool: &Arc<Pool>, depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        let batch = pool.spawn_batch([true, false].map(|deeper| {
            let pool = Arc::clone(pool);
            move || if deeper { descend(&pool, depth - 1) } else { 1 }
        }));
        batch.join().expect("results").into_iter().sum()
    }
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        let inner = Arc::clone(&pool);
        assert_eq!(pool.spawn(move || descend(&inner, 400)).join().expect("a result"), 400);
        assert_counts(&pool, 801, 0, 0);
    }
}

/// The thread that waits for a batch runs its closures one after the other, and the first one waits for the last. So
/// another worker takes that one, although the first thread is blocked.
fn closures_that_wait_for_each_other(kind: Kind) {
    for size in [2, 3, 16, 40_usize] {
        let pool = Arc::new(kind.pool(2));
        let inner = Arc::clone(&pool);
        let (send, receive) = mpsc::channel();
        let mut ends: Vec<Job> = (1..size).map(|n| Box::new(move || n) as Job).collect();
        ends.pop();
        let first: Job = Box::new(move || receive.recv().expect("the last one sends"));
        let last: Job = Box::new(move || {
            send.send(7).expect("the first one waits");
            8
        });
        let jobs = iter::once(first).chain(ends).chain(iter::once(last)).collect::<Vec<_>>();
        let results = pool.spawn(move || inner.spawn_batch(jobs).join()).join().expect("a result");
        let results = results.expect("results");
        assert_eq!((results.len(), results[0], results[size - 1]), (size, 7, 8));
        assert_counts(&pool, size as u64 + 1, 0, 0);
    }
}

/// All closures of a batch wait for each other, one on each worker. The pool is warm, so that all other workers sleep or
/// search when the batch is spawned.
fn closures_on_all_workers(kind: Kind) {
    for workers in [2, 4, 8] {
        let pool = Arc::new(kind.pool(workers));
        for round in 0..20 {
            let (inner, barrier) = (Arc::clone(&pool), Arc::new(Barrier::new(workers)));
            if round % 2 == 0 {
                // Time for the workers to fall asleep; whether they do is not important.
                thread::sleep(Duration::from_millis(1));
            }
            let outer = pool.spawn(move || {
                let closure = |_| {
                    let barrier = Arc::clone(&barrier);
                    move || _ = barrier.wait()
                };
                inner.spawn_batch((0..workers).map(closure)).join()
            });
            outer.join().expect("a result").expect("results");
        }
    }
}

/// A batch that is joined on a deep stack, where the pool may have no more threads, runs there and is waited for.
fn on_a_deep_stack(kind: Kind) {
    /// Calls `f` so that its frame is more than that many bytes away from `from`.
    fn sink(from: usize, bytes: usize, f: &mut dyn FnMut()) {
        let page = hint::black_box([0_u8; 4 << 10]);
        let is_deep = (&raw const page).addr().abs_diff(from) > bytes;
        if is_deep {
            f()
        } else {
            sink(from, bytes, f)
        }
        hint::black_box(page);
    }
    for workers in [1, 2] {
        let builder = kind.builder(workers).max_threads(workers).stack_size(2 << 20);
        let pool = Arc::new(builder.build().expect("a small pool"));
        let inner = Arc::clone(&pool);
        let outer = pool.spawn(move || {
            let mut sum = 0;
            sink((&raw const sum).addr(), 700 << 10, &mut || {
                let batch = inner.spawn_batch((0..100_u64).map(|n| move || n));
                sum = batch.join().expect("results").into_iter().sum();
            });
            sum
        });
        assert_eq!(outer.join().expect("a result"), 4950);
        assert_counts(&pool, 101, 0, 0);
    }
}

/// A pool that is stopped at once refuses those closures of a batch that have not started, also on a thread that waits
/// for the batch and runs them.
fn cancelled_while_awaited(kind: Kind) {
    for size in [2, 10, 40] {
        let pool = Arc::new(kind.pool(1));
        let inner = Arc::clone(&pool);
        let ledger = Arc::new(Ledger::new(size));
        let (items, runs) = (Arc::clone(&ledger), Arc::new(AtomicUsize::new(0)));
        let (open, opened) = mpsc::channel::<()>();
        let (opened, started) = (Arc::new(Mutex::new(opened)), Arc::clone(&runs));
        let outer = pool.spawn(move || {
            let closures = (0..size).map(|n| {
                let (captured, runs) = (items.item(n), Arc::clone(&runs));
                let opened = Arc::clone(&opened);
                move || {
                    runs.fetch_add(1, Ordering::Relaxed);
                    let _ = opened.lock().expect("no panic").recv();
                    captured
                }
            });
            inner.spawn_batch(closures).join()
        });
        eventually("the first has started", || started.load(Ordering::Relaxed) == 1);
        let probes = stop_now_before(&pool, || drop(open));
        assert!(matches!(outer.join(), Ok(Err(JoinError::Cancelled))));
        assert_counts(&pool, 2, 0, size as u64 - 1 + probes);
        ledger.assert_each_once();
    }
}

fn future(kind: Kind) {
    let pool = kind.pool(2);
    for size in [1, 2, 50] {
        let batch = pool.spawn_batch((0..size).map(|n| move || n));
        assert!(block_on(batch).expect("results").into_iter().eq(0..size));
    }
}

fn detached(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Arc::new(Ledger::new(200));
        let runs = Arc::new(AtomicUsize::new(0));
        drop(pool.spawn_batch((0..100).map(|n| {
            let (captured, ledger, runs) = (ledger.item(n), Arc::clone(&ledger), Arc::clone(&runs));
            move || {
                runs.fetch_add(1, Ordering::Relaxed);
                drop(captured);
                ledger.item(100 + n)
            }
        })));
        assert_counts(&pool, 100, 0, 0);
        assert_eq!(runs.load(Ordering::Relaxed), 100);
        ledger.assert_each_once();
    }
}

/// A batch is finished when its last task has ended.
fn is_finished(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let batch = pool.spawn_batch([|| 1, || 2, || 3]);
    assert!(!batch.is_finished());
    gate.open();
    eventually("the batch is finished", || batch.is_finished());
    assert_eq!(batch.join().expect("results"), [1, 2, 3]);
}

/// The batch reports the first panic by index, not by time, and every other closure has run.
fn panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Arc::new(Ledger::new(100));
        let batch = pool.spawn_batch((0..100).map(|n| {
            let ledger = Arc::clone(&ledger);
            move || {
                let value = ledger.item(n);
                assert!(n != 7 && n != 3 && n != 99, "planned: {n}");
                value
            }
        }));
        match batch.join() {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), "planned: 3"),
            other => panic!("{other:?}"),
        }
        assert_counts(&pool, 97, 3, 0);
        ledger.assert_each_once();
    }
}

/// The handle is gone, so the panic goes to the hook.
fn detached_panics(kind: Kind) {
    let (tell, told) = mpsc::channel();
    let builder = kind.builder(2).on_panic(move |panic| {
        tell.send(panic.message().to_owned()).expect("a test that listens");
    });
    let pool = builder.build().expect("a pool");
    let gate = Gate::close(&pool);
    drop(pool.spawn_batch((0..10).map(|n| move || assert!(n != 4, "planned: {n}"))));
    gate.open();
    assert_counts(&pool, 2 + 9, 1, 0);
    drop(pool);
    assert_eq!(told.iter().collect::<Vec<_>>(), ["planned: 4"]);
}

fn cancelled(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let ledger = Ledger::new(100);
        let batch = pool.spawn_batch((0..100).map(|n| {
            let captured = ledger.item(n);
            move || captured
        }));
        let completed = gate.tasks();
        let probes = gate.stop_now(&pool);
        assert!(matches!(batch.join(), Err(JoinError::Cancelled)));
        assert_counts(&pool, completed, 0, 100 + probes);
        ledger.assert_each_once();
    }
}

/// Results of tasks that have completed are dropped once.
fn partly_cancelled(kind: Kind) {
    let pool = kind.pool(1);
    let ledger = Ledger::new(100);
    let runs = Arc::new(AtomicUsize::new(0));
    let (open, opened) = mpsc::channel::<()>();
    let opened = Arc::new(Mutex::new(opened));
    let batch = pool.spawn_batch((0..100).map(|n| {
        let (captured, runs, opened) = (ledger.item(n), Arc::clone(&runs), Arc::clone(&opened));
        move || {
            // The tenth task blocks its worker.
            if runs.fetch_add(1, Ordering::Relaxed) == 9 {
                let _ = opened.lock().expect("no panic").recv();
            }
            captured
        }
    }));
    eventually("ten have started", || runs.load(Ordering::Relaxed) == 10);
    let probes = stop_now_before(&pool, || drop(open));
    assert!(matches!(batch.join(), Err(JoinError::Cancelled)));
    assert_counts(&pool, 10, 0, 90 + probes);
    ledger.assert_each_once();
}

fn stopped(kind: Kind) {
    let pool = kind.pool(2);
    pool.stop();
    let ledger = Ledger::new(10);
    let batch = pool.spawn_batch((0..10).map(|n| {
        let captured = ledger.item(n);
        move || captured
    }));
    assert!(matches!(batch.join(), Err(JoinError::Stopped)));
    ledger.assert_each_once();
    assert_counts(&pool, 0, 0, 0);
}

/// Drops several results that no handle takes, because of a failure or because the handle was dropped. This
/// runs in a child process, because it might abort.
fn results_whose_drop_panics(kind: Kind) {
    in_child("drop", &[], || {
        for workers in WORKERS {
            let pool = kind.builder(workers).on_panic(drop).build().expect("a pool");
            let ledger = Arc::new(Ledger::new(20));
            let batch = |first: usize, fails: bool| {
                pool.spawn_batch((first..first + 10).map(|n| {
                    let ledger = Arc::clone(&ledger);
                    move || {
                        let result = ledger.bomb(n);
                        if fails && n % 10 == 5 {
                            drop(result.defuse());
                            panic!("planned: {n}");
                        }
                        result
                    }
                }))
            };
            assert!(matches!(batch(0, true).join(), Err(JoinError::Panicked(_))));
            let gate = Gate::close(&pool);
            drop(batch(10, false));
            gate.open();
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
            assert_counts(&pool, 9 + 10 + 1 + workers as u64, 1, 0);
            ledger.assert_each_once();
        }
    });
}

/// The number of tasks is that of the items that the iterator yields, not that of its size hint.
fn iterators_with_wrong_size_hints(kind: Kind) {
    struct Sloppy(u32, (usize, Option<usize>));
    impl Iterator for Sloppy {
        type Item = Box<dyn FnOnce() -> u32 + Send>;

        fn next(&mut self) -> Option<Self::Item> {
            let n = self.0.checked_sub(1)?;
            self.0 = n;
            Some(Box::new(move || n))
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            self.1
        }
    }
    let pool = kind.pool(2);
    for hint in [(0, None), (0, Some(0)), (1, Some(1)), (9, Some(9)), (11, Some(11)), (500, None)] {
        let batch = pool.spawn_batch(Sloppy(10, hint));
        assert!(batch.join().expect("results").into_iter().eq((0..10).rev()), "{hint:?}");
    }
    assert_counts(&pool, 60, 0, 0);
}

/// The panic reaches the caller. The closures before it were run or dropped, and counted.
fn iterator_that_panics(kind: Kind) {
    let pool = kind.pool(2);
    let ledger = Ledger::new(10);
    let jobs = (0..20).map(|n| {
        assert!(n < 10, "planned: no more");
        let captured = ledger.item(n);
        move || captured
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| pool.spawn_batch(jobs)));
    assert_eq!(panic_message(&*outcome.map(drop).expect_err("a panic")), "planned: no more");
    assert_eq!(pool.spawn_batch([|| 1]).join().expect("results"), [1]);
    pool.stop();
    assert_balanced(&pool.stats());
    ledger.assert_each_once();
}

/// The pool can be used while the iterator of a batch runs.
fn iterator_that_spawns(kind: Kind) {
    let pool = kind.pool(1);
    let batch = pool.spawn_batch((0..50).map(|n| {
        let handle = pool.spawn(move || n);
        let done = pool.spawn_batch([|| 1, || 2]).join().expect("results");
        assert_eq!(done, [1, 2]);
        move || handle.join().expect("a result")
    }));
    assert!(batch.join().expect("results").into_iter().eq(0..50));
    assert_counts(&pool, 200, 0, 0);
}
