//! The contract of a future on a pool: it is polled once for each wake-up, from whatever thread that comes, and its result
//! arrives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::{
    Gate, Kind, WORKERS, assert_balanced, assert_counts, block_on, eventually, for_every_strategy,
};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    smoke,
    awaits_tasks_and_futures,
    woken_from_another_thread,
    woken_during_a_poll,
    wake_ups_before_a_poll_are_one,
    woken_by_a_task,
    many_futures_and_wake_ups,
    chain_of_futures,
    forks_in_a_poll,
    waits_in_a_poll,
    joined_by_the_only_worker,
    joined_on_every_worker,
    on_the_callers_pool,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for n in 0..100 {
            assert_eq!(pool.spawn_future(async move { n }).join().expect("a result"), n);
            let by_handle = pool.handle().spawn_future(async move { n });
            assert_eq!(block_on(by_handle).expect("a result"), n);
        }
        assert_counts(&pool, 200, 0, 0);
    }
}

fn awaits_tasks_and_futures(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let here = pool.handle();
        let sum = pool.spawn_future(async move {
            let mut sum = 0;
            for n in 0..50 {
                sum += here.spawn(move || n).await.expect("a result");
                sum += here.spawn_future(async move { n }).await.expect("a result");
            }
            sum
        });
        assert_eq!(sum.join().expect("a result"), 49 * 50);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn woken_from_another_thread(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let signal = Signal::default();
            let future = pool.spawn_future(signal.clone());
            let waker = thread::spawn(move || signal.set());
            future.join().expect("a result");
            waker.join().expect("no panic");
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Each wake-up is followed by one poll, which is one task.
fn woken_during_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.spawn_future(Yields(1000)).join().expect("a result");
        assert_counts(&pool, 1001, 0, 0);
    }
}

fn wake_ups_before_a_poll_are_one(kind: Kind) {
    let pool = kind.pool(1);
    let signal = Signal::default();
    let future = pool.spawn_future(signal.clone());
    eventually("the future waits", || signal.is_awaited());
    let gate = Gate::close(&pool);
    let waker = signal.waker().expect("it waits");
    (0..100).for_each(|_| waker.wake_by_ref());
    signal.set();
    gate.open();
    future.join().expect("a result");
    assert_counts(&pool, 3, 0, 0);
}

fn woken_by_a_task(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let signal = Signal::default();
            let future = pool.spawn_future(signal.clone());
            pool.spawn(move || signal.set());
            future.join().expect("a result");
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Many futures wake themselves and each other, and count their polls.
fn many_futures_and_wake_ups(kind: Kind) {
    const FUTURES: u64 = 100;
    const ROUNDS: u64 = 50;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let total = Arc::new(AtomicU64::new(0));
        let signals: Vec<_> = (0..FUTURES).map(|_| Signal::default()).collect();
        let futures: Vec<_> = (0..FUTURES as usize)
            .map(|n| {
                let total = Arc::clone(&total);
                let own = signals[n].clone();
                let next = signals[(n + 1) % signals.len()].clone();
                pool.spawn_future(async move {
                    for round in 0..ROUNDS {
                        Yields(1).await;
                        total.fetch_add(round, Ordering::Relaxed);
                    }
                    next.set();
                    own.await;
                    n
                })
            })
            .collect();
        for (n, future) in futures.into_iter().enumerate() {
            assert_eq!(future.join().expect("a result"), n);
        }
        assert_eq!(total.load(Ordering::Relaxed), FUTURES * ROUNDS * (ROUNDS - 1) / 2);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn chain_of_futures(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let signal = Signal::default();
        let first = signal.clone();
        let mut last = pool.spawn_future(async move {
            first.await;
            0
        });
        for _ in 0..200 {
            let before = last;
            last = pool.spawn_future(async move { before.await.expect("a result") + 1 });
        }
        signal.set();
        assert_eq!(last.join().expect("a result"), 200);
    }
}

/// A thread that joins the future may run parts of what a poll forks.
fn forks_in_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let outer = pool.spawn(|| {
            let future = heist::spawn_future(async {
                Yields(3).await;
                let squares = heist::parallel::map(0..1000_u64, |n| n * n);
                let (a, b) = heist::join(|| 1, || 2);
                squares.into_iter().sum::<u64>() + a + b
            });
            future.join().expect("a result")
        });
        assert_eq!(outer.join().expect("a result"), 332_833_500 + 3);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn waits_in_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let future = pool.spawn_future(async {
            let task = heist::spawn(|| 1).join().expect("a result");
            let inner = heist::block_on(heist::spawn_future(async {
                Yields(3).await;
                2
            }));
            task + inner.expect("a result")
        });
        assert_eq!(future.join().expect("a result"), 3);
    }
}

fn joined_by_the_only_worker(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..50 {
        let signal = Signal::default();
        let waits = signal.clone();
        let outer = pool.spawn(move || {
            let future = heist::spawn_future(async {
                waits.await;
                5
            });
            heist::spawn(move || signal.set());
            future.join().expect("a result")
        });
        assert_eq!(outer.join().expect("a result"), 5);
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

/// All workers wait for futures, which are polled all the same.
fn joined_on_every_worker(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (start, started) = mpsc::channel();
        let signals: Vec<_> = (0..2 * workers).map(|_| Signal::default()).collect();
        let waiters: Vec<_> = signals
            .iter()
            .map(|signal| {
                let (signal, start) = (signal.clone(), start.clone());
                pool.spawn(move || {
                    start.send(()).expect("a test that listens");
                    heist::spawn_future(signal).join().expect("a result");
                })
            })
            .collect();
        waiters.iter().for_each(|_| started.recv().expect("a task that starts"));
        signals.iter().for_each(Signal::set);
        waiters.into_iter().for_each(|waiter| waiter.join().expect("a result"));
    }
}

fn on_the_callers_pool(kind: Kind) {
    let pool = kind.pool(2);
    let here = pool.handle();
    let same = pool.spawn(move || {
        let there = heist::spawn_future(async { heist::Pool::current() }).join();
        there.expect("a result") == Some(here)
    });
    assert!(same.join().expect("a result"));
    let global = heist::spawn_future(async { heist::Pool::current() }).join().expect("a result");
    assert_eq!(global, Some(heist::Pool::global().handle()));
}
