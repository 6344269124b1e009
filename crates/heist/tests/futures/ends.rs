//! How futures end other than by a result: by a panic, by a cancellation, and by the end of their pool. Each is dropped, its
//! handle is notified, and the counters stay exact.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use heist::JoinError;

use crate::common::{
    Gate, Kind, WORKERS, assert_balanced, assert_counts, block_on, eventually, for_every_strategy,
};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    panics_in_a_poll,
    panic_of_a_detached_future,
    destructor_that_panics,
    cancel,
    cancel_before_the_first_poll,
    cancel_during_a_poll,
    cancel_after_the_end,
    cancel_against_wake_ups,
    stop_runs_what_is_ready,
    stop_waits_for_tasks_that_wake,
    stop_drops_what_is_pending,
    drop_of_the_pool,
    stop_now_cancels,
    spawned_after_the_stop,
    woken_after_the_end,
    woken_against_the_end,
    destructor_that_uses_the_pool,
    a_long_chain_needs_no_stack,
}

fn panics_in_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let at_once = pool.spawn_future(async { panic!("planned") });
        let later = pool.spawn_future(async {
            Yields(1).await;
            panic!("planned later")
        });
        for (future, text) in [(at_once, "planned"), (later, "planned later")] {
            let result: Result<(), _> = future.join();
            let Err(JoinError::Panicked(panic)) = result else { panic!("{result:?}") };
            assert_eq!(panic.message(), text);
        }
        assert_eq!(pool.stats().total.panics, 2, "a panic is counted before it is delivered");
        assert_eq!(pool.spawn_future(async { 1 }).join().expect("a result"), 1);
        assert_counts(&pool, 2, 2, 0);
    }
}

fn panic_of_a_detached_future(kind: Kind) {
    let (report, reports) = mpsc::channel();
    let builder =
        kind.builder(1).on_panic(move |panic| _ = report.send(panic.message().to_owned()));
    let pool = builder.build().expect("a pool");
    drop(pool.spawn_future(async { panic!("planned") }));
    assert_counts(&pool, 0, 1, 0);
    drop(pool);
    assert_eq!(reports.into_iter().collect::<Vec<_>>(), ["planned"]);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("planned: dropped");
    }
}

fn destructor_that_panics(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        // At the end of its last poll.
        let ended = pool.spawn_future(async { drop(Bomb) }).join();
        assert!(matches!(ended, Err(JoinError::Panicked(_))));
        // By a cancellation, and by the end of the pool.
        let bomb = || {
            let signal = Signal::default();
            let (bomb, waits) = (Bomb, signal.clone());
            let future = pool.spawn_future(async move {
                let _bomb = bomb;
                waits.await;
            });
            eventually("the future waits", || signal.is_awaited());
            future
        };
        let (cancelled, pending) = (bomb(), bomb());
        cancelled.cancel();
        assert!(matches!(cancelled.join(), Err(JoinError::Cancelled)));
        assert_counts(&pool, 2, 1, 1);
        assert!(matches!(pending.join(), Err(JoinError::Cancelled)));
    }
}

fn cancel(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (signal, owned) = (Signal::default(), Arc::new(()));
        let (waits, captured) = (signal.clone(), Arc::clone(&owned));
        let future = pool.spawn_future(async move {
            let _captured = captured;
            waits.await;
        });
        eventually("the future waits", || signal.is_awaited());
        future.cancel();
        future.cancel();
        assert!(matches!(future.join(), Err(JoinError::Cancelled)));
        assert_eq!(Arc::strong_count(&owned), 1, "it was dropped before the handle was notified");
        signal.set();
        assert_counts(&pool, 1, 0, 1);
    }
}

fn cancel_before_the_first_poll(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let future = pool.spawn_future(async { unreachable!("it was cancelled") });
    future.cancel();
    assert!(!future.is_finished());
    gate.open();
    let result: Result<(), _> = future.join();
    assert!(matches!(result, Err(JoinError::Cancelled)));
    assert_counts(&pool, 1, 0, 1);
}

/// The poll ends; then the future is dropped, unless it was the last poll.
fn cancel_during_a_poll(kind: Kind) {
    for last in [false, true] {
        let pool = kind.pool(1);
        let (begin, begun) = mpsc::channel();
        let (open, opened) = mpsc::channel::<()>();
        let opened = std::sync::Mutex::new(opened);
        let future = pool.spawn_future(async move {
            begin.send(()).expect("a test that listens");
            let _ = opened.lock().expect("no panic").recv();
            if !last {
                std::future::pending::<()>().await;
            }
        });
        begun.recv().expect("a poll");
        future.cancel();
        drop(open);
        assert_eq!(future.join().is_ok(), last);
        assert_counts(&pool, 1, 0, u64::from(!last));
    }
}

fn cancel_after_the_end(kind: Kind) {
    let pool = kind.pool(1);
    let future = pool.spawn_future(async { 1 });
    eventually("the future has ended", || future.is_finished());
    future.cancel();
    assert_eq!(future.join().expect("a result"), 1);
    assert_counts(&pool, 1, 0, 0);
}

fn cancel_against_wake_ups(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let future = pool.spawn_future(Yields(20));
            thread::scope(|scope| _ = scope.spawn(|| future.cancel()));
            assert!(matches!(future.join(), Ok(()) | Err(JoinError::Cancelled)));
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// What was woken before the stop, or wakes itself, is not lost.
fn stop_runs_what_is_ready(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let futures: Vec<_> = (0..100).map(|_| pool.spawn_future(Yields(20))).collect();
        let signals: Vec<_> = (0..100).map(|_| Signal::default()).collect();
        let woken: Vec<_> =
            signals.iter().map(|signal| pool.spawn_future(signal.clone())).collect();
        signals.iter().for_each(Signal::set);
        pool.stop();
        futures.into_iter().chain(woken).for_each(|future| future.join().expect("a result"));
        assert_balanced(&pool.stats());
    }
}

/// A future waits for tasks of the pool, which run after the stop has begun.
fn stop_waits_for_tasks_that_wake(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let futures: Vec<_> = (0..20)
            .map(|n| {
                let task = pool.spawn(move || n);
                pool.spawn_future(async move {
                    let one = task.await.expect("a result");
                    one + heist::spawn(|| 1).await.expect("a result")
                })
            })
            .collect();
        thread::scope(|scope| {
            scope.spawn(|| pool.stop());
            eventually("the pool refuses tasks", || pool.spawn(|| ()).is_finished());
            gate.open();
        });
        for (n, future) in futures.into_iter().enumerate() {
            assert_eq!(future.join().expect("a result"), n + 1);
        }
        assert_balanced(&pool.stats());
    }
}

fn stop_drops_what_is_pending(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let owned = Arc::new(());
        let futures: Vec<_> = (0..20)
            .map(|_| {
                let captured = Arc::clone(&owned);
                pool.spawn_future(async move {
                    let _captured = captured;
                    std::future::pending::<()>().await;
                })
            })
            .collect();
        assert_counts(&pool, 20, 0, 0);
        assert_eq!(Arc::strong_count(&owned), 1);
        for future in futures {
            assert!(matches!(block_on(future), Err(JoinError::Cancelled)));
        }
    }
}

fn drop_of_the_pool(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (signal, owned) = (Signal::default(), Arc::new(()));
        let (waits, captured) = (signal.clone(), Arc::clone(&owned));
        let future = pool.spawn_future(async move {
            waits.await;
            drop(captured);
        });
        eventually("the future waits", || signal.is_awaited());
        let waiter = thread::spawn(|| future.join());
        drop(pool);
        assert!(matches!(waiter.join().expect("no panic"), Err(JoinError::Cancelled)));
        assert_eq!(Arc::strong_count(&owned), 1);
    }
}

fn stop_now_cancels(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let signal = Signal::default();
        let pending = pool.spawn_future(signal.clone());
        eventually("the future waits", || signal.is_awaited());
        let gate = Gate::close(&pool);
        let tasks = gate.tasks();
        let never_polled = pool.spawn_future(async { unreachable!("it was cancelled") });
        signal.set();
        let probes = gate.stop_now(&pool);
        assert!(matches!(pending.join(), Err(JoinError::Cancelled)));
        let result: Result<(), _> = never_polled.join();
        assert!(matches!(result, Err(JoinError::Cancelled)));
        assert_counts(&pool, 1 + tasks, 0, 2 + probes);
    }
}

fn spawned_after_the_stop(kind: Kind) {
    let pool = kind.pool(1);
    pool.stop();
    let owned = Arc::new(());
    let captured = Arc::clone(&owned);
    let future = pool.spawn_future(async move { drop(captured) });
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(matches!(future.join(), Err(JoinError::Stopped)));
    assert_counts(&pool, 0, 0, 0);
}

fn woken_after_the_end(kind: Kind) {
    let pool = kind.pool(1);
    let signal = Signal::default();
    let future = pool.spawn_future(signal.clone());
    eventually("the future waits", || signal.is_awaited());
    let waker = signal.waker().expect("it waits");
    drop(pool);
    waker.wake_by_ref();
    signal.set();
    waker.wake();
    future.cancel();
    assert!(matches!(future.join(), Err(JoinError::Cancelled)));
}

/// Whoever comes first: the handle is notified, and the future is dropped.
fn woken_against_the_end(kind: Kind) {
    for workers in [1, 2] {
        for _ in 0..100 {
            let pool = kind.pool(workers);
            let (signal, owned) = (Signal::default(), Arc::new(()));
            let (waits, captured) = (signal.clone(), Arc::clone(&owned));
            let future = pool.spawn_future(async move {
                waits.await;
                drop(captured);
            });
            let waker = thread::spawn(move || signal.set());
            pool.stop();
            assert!(matches!(future.join(), Ok(()) | Err(JoinError::Cancelled)));
            waker.join().expect("no panic");
            assert_eq!(Arc::strong_count(&owned), 1);
            assert_balanced(&pool.stats());
        }
    }
}

/// A future that is dropped at the end of its pool spawns there, and waits for what it has spawned.
fn destructor_that_uses_the_pool(kind: Kind) {
    struct Spawns(heist::PoolHandle, Arc<AtomicUsize>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let refused = self.0.spawn_future(async {}).join().is_err();
            drop(self.0.spawn(|| ()));
            self.1.fetch_add(usize::from(refused), Ordering::Relaxed);
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let refused = Arc::new(AtomicUsize::new(0));
        let spawns = Spawns(pool.handle(), Arc::clone(&refused));
        let future = pool.spawn_future(async move {
            let _spawns = spawns;
            std::future::pending::<()>().await;
        });
        pool.stop();
        assert!(future.join().is_err());
        assert_eq!(refused.load(Ordering::Relaxed), 1);
        assert_balanced(&pool.stats());
    }
}

/// Each future awaits the one before, and none is ever ready.
fn a_long_chain_needs_no_stack(kind: Kind) {
    let pool = kind.pool(2);
    let mut last = pool.spawn_future(std::future::pending::<()>());
    for _ in 0..60_000 {
        let before = last;
        last = pool.spawn_future(async move { drop(before.await) });
    }
    pool.stop();
    assert!(matches!(last.join(), Err(JoinError::Cancelled)));
    assert_balanced(&pool.stats());
}
