//! Futures that a builder spawns: the priority of their polls, tokens and names.

use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use heist::engine::Engine;
use heist::{CancelToken, JoinError, Priority, current_priority, worker_index};

use crate::common::{Gate, Kind, assert_balanced, eventually, for_every_strategy};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    polls_in_the_order_of_priorities,
    inherited_by_what_it_spawns,
    inherited_from_a_task,
    a_token_drops_a_pending_future,
    a_token_that_was_cancelled_before,
    a_token_during_a_poll,
    a_token_after_the_end,
    many_by_one_token,
    stops,
    names,
    near_a_worker,
    near_a_worker_that_retires,
}

/// Every poll is near the worker, and runs elsewhere if that is busy.
fn near_a_worker(kind: Kind) {
    let pool = kind.pool(1);
    pool.task().near(7).spawn_future(Yields(9)).join().unwrap();
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (10, 0), "ten polls");

    let pool = kind.pool(2);
    let (held, hold) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    pool.spawn(move || {
        tell.send(worker_index().expect("a worker")).unwrap();
        let _ = hold.recv();
    });
    let busy = told.recv().unwrap();
    let signal = Signal::default();
    let awaited = signal.clone();
    let future = pool.task().near(busy).spawn_future(async move {
        awaited.await;
        worker_index()
    });
    eventually("it waits", || signal.is_awaited());
    signal.set();
    assert_eq!(future.join().unwrap(), Some(1 - busy));
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (0, 2), "two polls");
    drop(held);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn near_a_worker_that_retires(kind: Kind) {
    let pool = kind.pool(2);
    let signal = Signal::default();
    let awaited = signal.clone();
    let future = pool.task().near(1).spawn_future(async move {
        awaited.await;
        worker_index()
    });
    eventually("it waits", || signal.is_awaited());
    // Both workers are busy.
    let gate = Gate::close(&pool);
    pool.resize(1).unwrap();
    signal.set();
    assert!(pool.dump().to_string().contains("near the workers: [1, 0]"), "{}", pool.dump());
    gate.open();
    future.join().unwrap();
    pool.stop();
    assert_balanced(&pool.stats());
}

/// With one worker that is busy, whatever is woken first.
fn polls_in_the_order_of_priorities(kind: Kind) {
    let pool = kind.pool(1);
    let log = Arc::new(Mutex::new(Vec::new()));
    let signals = [Priority::Low, Priority::Normal, Priority::High].map(|priority| {
        let (signal, log) = (Signal::default(), Arc::clone(&log));
        let awaited = signal.clone();
        let future = pool.task().priority(priority).spawn_future(async move {
            awaited.await;
            assert_eq!(current_priority(), priority);
            log.lock().unwrap().push(priority);
        });
        eventually("it waits", || signal.is_awaited());
        (signal, future)
    });
    let gate = Gate::close(&pool);
    signals.iter().for_each(|(signal, _)| signal.set());
    gate.open();
    signals.into_iter().for_each(|(_, future)| future.join().unwrap());
    assert_eq!(*log.lock().unwrap(), [Priority::High, Priority::Normal, Priority::Low]);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn inherited_by_what_it_spawns(kind: Kind) {
    let pool = kind.pool(2);
    let here = pool.handle();
    let seen = pool.task().priority(Priority::Low).spawn_future(async move {
        let task = here.spawn(current_priority);
        Yields(1).await;
        let future = here.spawn_future(async { current_priority() });
        let (a, b) = heist::join(current_priority, current_priority);
        [task.await.unwrap(), future.await.unwrap(), a, b, current_priority()]
    });
    assert_eq!(seen.join().unwrap(), [Priority::Low; 5]);
}

fn inherited_from_a_task(kind: Kind) {
    let pool = kind.pool(2);
    let here = pool.handle();
    let future = pool.task().priority(Priority::High).spawn(move || {
        here.spawn_future(async {
            Yields(3).await;
            current_priority()
        })
    });
    assert_eq!(future.join().unwrap().join().unwrap(), Priority::High);
}

fn a_token_drops_a_pending_future(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let kept = Arc::new(());
    let inside = Arc::clone(&kept);
    let future = pool.task().cancel_on(&token).spawn_future(async move {
        pending::<()>().await;
        drop(inside);
    });
    token.cancel();
    assert!(matches!(future.join(), Err(JoinError::Cancelled)));
    assert_eq!(Arc::strong_count(&kept), 1, "it was dropped before the handle told so");
    pool.stop();
    assert_balanced(&pool.stats());
}

fn a_token_that_was_cancelled_before(kind: Kind) {
    let pool = kind.pool(1);
    let token = CancelToken::new();
    token.cancel();
    let future = pool
        .task()
        .cancel_on(&token.child())
        .spawn_future(async { unreachable!("it is not polled") });
    assert!(matches!(future.join(), Err(JoinError::Cancelled)));
    pool.stop();
    assert_balanced(&pool.stats());
}

fn a_token_during_a_poll(kind: Kind) {
    let pool = kind.pool(1);
    let token = CancelToken::new();
    let canceller = token.clone();
    let future = pool.task().cancel_on(&token).spawn_future(async move {
        assert!(!heist::is_cancelled());
        canceller.cancel();
        assert!(heist::is_cancelled());
        // It is not polled again.
        Yields(1).await;
        unreachable!("it was cancelled");
    });
    assert!(matches!(future.join(), Err(JoinError::Cancelled)));
    let own = token.child();
    assert!(own.is_cancelled());
}

fn a_token_after_the_end(kind: Kind) {
    let pool = kind.pool(1);
    let token = CancelToken::new();
    let ended = pool.task().cancel_on(&token).spawn_future(async { 3 });
    let left = pool.task().cancel_on(&token).spawn_future(pending::<()>());
    eventually("it has ended", || ended.is_finished());
    pool.stop();
    token.cancel();
    assert_eq!(ended.join().unwrap(), 3);
    assert!(matches!(left.join(), Err(JoinError::Cancelled)));
    assert_balanced(&pool.stats());
}

fn many_by_one_token(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let futures: Vec<_> =
        (0..1_000).map(|_| pool.task().cancel_on(&token).spawn_future(pending::<()>())).collect();
    token.cancel();
    assert!(futures.into_iter().all(|future| matches!(future.join(), Err(JoinError::Cancelled))));
    pool.stop();
    assert_balanced(&pool.stats());
}

fn stops(kind: Kind) {
    for priority in Priority::ALL {
        let pool = kind.pool(2);
        let signal = Signal::default();
        let awaited = signal.clone();
        let future = pool.task().priority(priority).spawn_future(async move {
            Yields(5).await;
            awaited.await;
        });
        eventually("it waits", || signal.is_awaited());
        pool.stop();
        signal.set();
        assert!(matches!(future.join(), Err(JoinError::Cancelled)));
        let late = pool.task().priority(priority).spawn_future(async {});
        assert!(matches!(late.join(), Err(JoinError::Stopped)));
        assert_balanced(&pool.stats());
    }
}

fn names(kind: Kind) {
    let pool = kind.builder(1).trace(1_000).build().unwrap();
    pool.task().name("fetch").spawn_future(Yields(2)).join().unwrap();
    pool.stop();
    let trace = pool.trace_snapshot().unwrap();
    let names: Vec<_> = trace.threads[0].events.iter().filter_map(|event| event.name).collect();
    assert_eq!(names, ["fetch"; 3]);
}

/// The threads of an engine poll futures as well.
#[test]
fn on_an_engine() {
    let (engine, workers) = Engine::new(2, false);
    let run = |worker: heist::engine::Worker| thread::spawn(|| worker.run(|| (), || ()));
    let threads: Vec<_> = workers.into_iter().map(run).collect();
    let result = engine.run(|_| {
        heist::scope(|scope| {
            scope.task().priority(Priority::High).spawn_future(async { 6 * 7 }).join().unwrap()
        })
    });
    assert_eq!(result, 42);
    engine.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
