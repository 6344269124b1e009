//! The contract of a handle to a future: it can be joined, awaited, polled and dropped.

use std::sync::mpsc;
use std::task::Poll;

use crate::common::{
    Kind, WORKERS, WakeCounter, assert_counts, eventually, for_every_strategy, poll_once,
};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    dropped_handles,
    polled,
    joined_after_a_poll,
    results_without_a_handle_are_dropped,
    in_tokio_and_smol,
}

fn dropped_handles(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (send, receive) = mpsc::channel();
        for n in 0..100 {
            let send = send.clone();
            drop(pool.spawn_future(async move {
                Yields(2).await;
                send.send(n).expect("a test that listens");
            }));
        }
        assert_counts(&pool, 300, 0, 0);
        drop(send);
        let mut numbers: Vec<_> = receive.into_iter().collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..100));
    }
}

fn polled(kind: Kind) {
    let pool = kind.pool(1);
    let signal = Signal::default();
    let mut future = pool.spawn_future(signal.clone());
    let counter = WakeCounter::new();
    assert!(poll_once(&mut future, &counter.waker()).is_pending());
    signal.set();
    eventually("the counter rings", || counter.wakes() > 0);
    assert!(format!("{future:?}").contains("finished: true"));
    assert!(matches!(poll_once(&mut future, &counter.waker()), Poll::Ready(Ok(()))));
    drop(future);
    eventually("no waker is kept", || counter.wakers() == 0);
}

fn joined_after_a_poll(kind: Kind) {
    let pool = kind.pool(1);
    let signal = Signal::default();
    let mut future = pool.spawn_future(signal.clone());
    assert!(poll_once(&mut future, &WakeCounter::new().waker()).is_pending());
    signal.set();
    future.join().expect("a result");
}

fn results_without_a_handle_are_dropped(kind: Kind) {
    let pool = kind.pool(2);
    let owned = std::sync::Arc::new(());
    for _ in 0..20 {
        let result = std::sync::Arc::clone(&owned);
        drop(pool.spawn_future(async move { result }));
    }
    pool.stop();
    assert_eq!(std::sync::Arc::strong_count(&owned), 1);
}

/// A future on a pool awaits timers of tokio and of smol, whose threads wake it, and is awaited there.
fn in_tokio_and_smol(kind: Kind) {
    let pool = kind.pool(2);
    let limit = std::time::Duration::from_millis(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    let tokio = runtime.handle().clone();
    let future = pool.spawn_future(async move {
        let sleep = {
            let _inside = tokio.enter();
            tokio::time::sleep(limit)
        };
        sleep.await;
        smol::Timer::after(limit).await;
        heist::worker_index().is_some()
    });
    assert!(
        runtime
            .block_on(async { runtime.spawn(future).await })
            .expect("no panic")
            .expect("a result")
    );
    let future = pool.spawn_future(async { 1 });
    assert_eq!(smol::block_on(future).expect("a result"), 1);
}
