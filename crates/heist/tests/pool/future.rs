//! The contract of a handle as a future: the waker of the last poll is called when the result is ready, and
//! no waker can harm the pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread;

use heist::{JoinError, JoinHandle};

use crate::common::{
    Gate, Kind, WORKERS, WakeCounter, assert_counts, block_on, eventually, for_every_strategy,
    poll_once,
};

for_every_strategy! {
    smoke,
    waker_is_used,
    waker_is_replaced,
    drop_drops_the_waker,
    waker_that_panics,
    waker_whose_drop_panics,
    waker_whose_drop_panics_behind_a_dropped_handle,
    joined_after_a_poll,
    polled_on_several_threads,
    polled_inside,
    polled_after_the_result,
    hundred_at_once,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(block_on(pool.spawn(|| 1)).expect("a result"), 1);
        let sum = async {
            let first = pool.spawn(|| 2).await.expect("a result");
            first + pool.spawn(move || first).await.expect("a result")
        };
        assert_eq!(block_on(sum), 4);
        let panicked = block_on(pool.spawn(|| panic!("planned")));
        assert!(matches!(panicked, Err(JoinError::Panicked(_))));
        pool.stop();
        assert!(matches!(block_on(pool.spawn(|| 1)), Err(JoinError::Stopped)));
    }
}

/// The waker is called after the result is available, not before.
fn waker_is_used(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let mut handle = pool.spawn(|| "done");
        let counter = WakeCounter::new();
        for _ in 0..100 {
            assert!(poll_once(&mut handle, &counter.waker()).is_pending());
        }
        assert_eq!(counter.wakes(), 0);
        assert!(counter.wakers() <= 1, "one of a hundred is enough");
        gate.open();
        eventually("the counter rings", || counter.wakes() > 0);
        assert!(handle.is_finished());
        match poll_once(&mut handle, &counter.waker()) {
            Poll::Ready(result) => assert_eq!(result.expect("a result"), "done"),
            Poll::Pending => panic!("woken for nothing"),
        }
        assert_eq!(counter.wakes(), 1);
        drop(handle);
        eventually("no waker is kept", || counter.wakers() == 0);
    }
}

/// Only the waker of the last poll is called.
fn waker_is_replaced(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let mut handle = pool.spawn(|| ());
    let alarms = [(); 20].map(|()| WakeCounter::new());
    for counter in &alarms {
        assert!(poll_once(&mut handle, &counter.waker()).is_pending());
    }
    gate.open();
    eventually("the last counter rings", || alarms[19].wakes() > 0);
    assert!(poll_once(&mut handle, Waker::noop()).is_ready());
    drop(handle);
    eventually("no waker is kept", || alarms.iter().all(|counter| counter.wakers() == 0));
}

/// Dropping the handle drops the waker.
fn drop_drops_the_waker(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let counter = WakeCounter::new();
    let mut handle = pool.spawn(|| ());
    assert!(poll_once(&mut handle, &counter.waker()).is_pending());
    drop(handle);
    gate.open();
    pool.stop();
    assert_eq!(counter.wakers(), 0);
}

fn waker_that_panics(kind: Kind) {
    struct Loud;
    impl Wake for Loud {
        fn wake(self: Arc<Self>) {
            panic!("planned: woken");
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..10 {
            let gate = Gate::close(&pool);
            let mut handle = pool.spawn(|| 1);
            assert!(poll_once(&mut handle, &Waker::from(Arc::new(Loud))).is_pending());
            gate.open();
            eventually("the task has ended", || handle.is_finished());
            assert_eq!(handle.join().expect("a result"), 1);
            assert_eq!(pool.spawn(|| 2).join().expect("a result"), 2);
        }
        assert_counts(&pool, 10 * (workers as u64 + 2), 0, 0);
    }
}

/// A waker that can be called, but panics when it is dropped.
#[derive(Default)]
struct Bomb(AtomicUsize);

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("planned: dropped");
    }
}

fn waker_whose_drop_panics(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..10 {
        let gate = Gate::close(&pool);
        let mut handle = pool.spawn(|| 1);
        assert!(poll_once(&mut handle, &Waker::from(Arc::<Bomb>::default())).is_pending());
        gate.open();
        eventually("the task has ended", || handle.is_finished());
        let result = catch_unwind(AssertUnwindSafe(|| handle.join()));
        assert_eq!(result.map_or(1, |result| result.expect("a result")), 1);
        assert_eq!(pool.spawn(|| 2).join().expect("a result"), 2);
    }
    assert_counts(&pool, 30, 0, 0);
}

/// The task holds the last waker, and a worker drops it.
fn waker_whose_drop_panics_behind_a_dropped_handle(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..10 {
            let gate = Gate::close(&pool);
            let mut handle = pool.spawn(|| 1);
            let waker = Waker::from(Arc::<Bomb>::default());
            assert!(poll_once(&mut handle, &waker).is_pending());
            // The thread that drops the last waker panics, which may be this one.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
            let _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
            gate.open();
            assert_eq!(pool.spawn(|| 2).join().expect("a result"), 2);
        }
        assert_counts(&pool, 10 * (workers as u64 + 2), 0, 0);
    }
}

fn joined_after_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let counter = WakeCounter::new();
        let mut handle = pool.spawn(|| 1);
        assert!(poll_once(&mut handle, &counter.waker()).is_pending());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| handle.join());
            gate.open();
            assert_eq!(waiter.join().expect("no panic").expect("a result"), 1);
        });
        eventually("no waker is kept", || counter.wakers() == 0);
    }
}

fn polled_on_several_threads(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let mut handle = pool.spawn(|| 1);
        for _ in 0..4 {
            handle = thread::scope(|scope| {
                let poller = scope.spawn(move || {
                    assert!(poll_once(&mut handle, Waker::noop()).is_pending());
                    handle
                });
                poller.join().expect("no panic")
            });
        }
        let waiter = thread::spawn(|| block_on(handle));
        gate.open();
        assert_eq!(waiter.join().expect("no panic").expect("a result"), 1);
    }
}

/// A task blocks its thread in an executor. Another worker has to run the other tasks.
fn polled_inside(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let outer = pool.spawn(|| block_on(heist::spawn(|| 5)).expect("a result"));
            assert_eq!(outer.join().expect("a result"), 5);
        }
    }
}

fn polled_after_the_result(kind: Kind) {
    let pool = kind.pool(1);
    let mut handle = pool.spawn(|| 1);
    eventually("the task has ended", || handle.is_finished());
    assert!(poll_once(&mut handle, Waker::noop()).is_ready());
    for _ in 0..2 {
        let again = catch_unwind(AssertUnwindSafe(|| poll_once(&mut handle, Waker::noop())));
        assert!(again.is_err(), "a result is yielded once");
    }
    drop(handle);
    assert_eq!(pool.spawn(|| 2).join().expect("a result"), 2);
}

/// All tasks are submitted before the first poll, and one waker serves them all.
fn hundred_at_once(kind: Kind) {
    async fn all<T>(mut handles: Vec<JoinHandle<T>>) -> Vec<T> {
        let mut results: Vec<Option<T>> = handles.iter().map(|_| None).collect();
        std::future::poll_fn(move |context| {
            for (handle, result) in handles.iter_mut().zip(&mut results) {
                if result.is_some() {
                    continue;
                }
                if let Poll::Ready(value) = poll_once(handle, context.waker()) {
                    *result = Some(value.expect("a result"));
                }
            }
            if results.iter().all(Option::is_some) {
                Poll::Ready(results.drain(..).flatten().collect())
            } else {
                Poll::Pending
            }
        })
        .await
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            let handles = (0..100).map(|n| pool.spawn(move || n)).collect();
            assert!(block_on(all(handles)).into_iter().eq(0..100));
        }
    }
}
