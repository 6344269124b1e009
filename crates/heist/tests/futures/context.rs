//! The contract of `Builder::context` for futures: every poll is in the context in which the future was spawned.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use heist::{CancelToken, JoinError, Pool, Priority};

use crate::common::{Kind, WORKERS, assert_counts, eventually, for_every_strategy, panic_message};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    every_poll,
    nothing_is_left_behind,
    what_a_poll_spawns,
    cancelled_while_it_waits,
    a_capture_that_panics,
    a_capture_that_panics_after_a_poll,
    a_restore_that_panics,
}

thread_local! {
    static REQUEST: Cell<usize> = const { Cell::new(0) };
}

fn pool(kind: Kind, workers: usize) -> Pool {
    let capture = || {
        let request = REQUEST.get();
        move |run: &mut dyn FnMut()| {
            let before = REQUEST.replace(request);
            run();
            REQUEST.set(before);
        }
    };
    kind.builder(workers).context(capture).build().expect("a pool")
}

/// Polls a future that many times, wakes itself in between, and returns the contexts.
async fn contexts(polls: usize) -> Vec<usize> {
    let mut seen = Vec::new();
    poll_fn(|context| {
        seen.push(REQUEST.get());
        if seen.len() == polls {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    seen
}

/// Whoever wakes it, and whatever the context of that is.
fn every_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers);
        let signal = Signal::default();
        let awaited = signal.clone();
        REQUEST.set(7);
        let woken = pool.spawn_future(async move {
            let before = REQUEST.get();
            awaited.await;
            (before, REQUEST.get())
        });
        REQUEST.set(8);
        let built = pool.task().priority(Priority::High).near(1).spawn_future(contexts(5));
        let many: Vec<_> = (0..100)
            .map(|request| {
                REQUEST.set(request);
                pool.handle().spawn_future(contexts(3))
            })
            .collect();
        assert_eq!(built.join().expect("a result"), [8; 5]);
        for (request, future) in many.into_iter().enumerate() {
            assert_eq!(future.join().expect("a result"), [request; 3]);
        }
        eventually("it waits", || signal.is_awaited());
        REQUEST.set(9);
        signal.set();
        assert_eq!(woken.join().expect("a result"), (7, 7));
        pool.stop();
    }
}

fn nothing_is_left_behind(kind: Kind) {
    let pool = pool(kind, 2);
    REQUEST.set(3);
    pool.spawn_future(Yields(9)).join().expect("a result");
    assert!(pool.spawn_future(async { panic!("planned") }).join().is_err());
    assert_eq!(pool.broadcast(|_| REQUEST.get()), [0, 0]);
}

/// A task and a future, from a poll that is not the first.
fn what_a_poll_spawns(kind: Kind) {
    let pool = pool(kind, 1);
    REQUEST.set(4);
    let spawns = pool.spawn_future(async {
        Yields(2).await;
        let task = heist::spawn(|| REQUEST.get());
        let future = heist::spawn_future(async { REQUEST.get() });
        (task.await.expect("a result"), future.await.expect("a result"))
    });
    REQUEST.set(0);
    assert_eq!(spawns.join().expect("a result"), (4, 4));
}

fn cancelled_while_it_waits(kind: Kind) {
    let kept = Arc::new(());
    let of_hook = Arc::clone(&kept);
    let hook = move || {
        let context = Arc::clone(&of_hook);
        move |run: &mut dyn FnMut()| {
            run();
            drop(context);
        }
    };
    let pool = kind.builder(1).context(hook).build().expect("a pool");
    let (token, signal) = (CancelToken::new(), Signal::default());
    let future = pool.task().cancel_on(&token).spawn_future(signal.clone());
    eventually("it waits", || signal.is_awaited());
    token.cancel();
    assert!(matches!(future.join(), Err(JoinError::Cancelled)));
    drop(signal);
    pool.stop();
    eventually("only the hook has it", || Arc::strong_count(&kept) == 2);
}

/// The panic comes out of the spawn, and nothing is spawned.
fn a_capture_that_panics(kind: Kind) {
    let hook = || {
        assert_ne!(REQUEST.get(), 13, "planned");
        |run: &mut dyn FnMut()| run()
    };
    let pool = kind.builder(1).context(hook).build().expect("a pool");
    REQUEST.set(13);
    let spawned = catch_unwind(AssertUnwindSafe(|| pool.spawn_future(async {})));
    assert!(panic_message(&*spawned.expect_err("a panic")).contains("planned"));
    REQUEST.set(0);
    assert_counts(&pool, 0, 0, 0);
}

/// The future ends with that panic.
fn a_capture_that_panics_after_a_poll(kind: Kind) {
    let captures = Arc::new(AtomicUsize::new(0));
    let hook = move || {
        assert_ne!(captures.fetch_add(1, Ordering::Relaxed), 2, "planned");
        |run: &mut dyn FnMut()| run()
    };
    let pool = kind.builder(1).context(hook).build().expect("a pool");
    let Err(JoinError::Panicked(panic)) = pool.spawn_future(Yields(9)).join() else {
        panic!("no panic")
    };
    assert!(panic.message().contains("planned"));
    assert_counts(&pool, 1, 1, 0);
}

fn a_restore_that_panics(kind: Kind) {
    for is_after in [false, true] {
        let hook = move || {
            move |run: &mut dyn FnMut()| {
                assert!(is_after, "before");
                run();
                panic!("after");
            }
        };
        let pool = kind.builder(1).context(hook).build().expect("a pool");
        for future in [pool.spawn_future(Yields(0)), pool.spawn_future(Yields(1))] {
            let Err(JoinError::Panicked(panic)) = future.join() else { panic!("no panic") };
            assert_eq!(panic.message(), if is_after { "after" } else { "before" });
        }
        assert_counts(&pool, 0, 2, 0);
    }
}
