//! The contract of a task that joins a future: if the future is queued for a poll, the thread that waits polls it itself, once.
//! Nothing is lost or counted twice, whoever polls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};

use heist::{FutureHandle, JoinError, Pool, Priority};

use crate::common::{
    Gate, Kind, WORKERS, assert_balanced, assert_counts, eventually, for_every_strategy,
    stop_now_before,
};
use crate::signal::{Signal, Yields};

for_every_strategy! {
    polled_on_the_thread_that_waits,
    a_chain_needs_one_thread,
    a_long_chain_needs_few_threads,
    large_frames,
    woken_before_the_wait,
    every_priority,
    near_another_worker,
    polled_by_another_thread,
    pending_after_that_poll,
    wakes_itself,
    panics,
    cancelled_before,
    cancelled_by_its_token,
    cancelled_against_the_wait,
    stop_now_refuses,
    stop_waits,
    many_at_once,
    polled_as_a_future_before,
    memory_of_many_joins,
    memory_of_many_joins_on_a_deep_stack,
}

/// Returns the thread on which a future is polled.
async fn here() -> ThreadId {
    thread::current().id()
}

/// Runs a task in which a future is spawned and then joined. Checks that it was polled on the thread of the task. The pool has
/// one worker, so nobody else is there.
fn assert_polled_here(
    pool: &Pool,
    spawn: impl FnOnce() -> FutureHandle<ThreadId> + Send + 'static,
) {
    let task = pool.spawn(|| (spawn().join().expect("a result"), thread::current().id()));
    let (polled, waited) = task.join().expect("no panic");
    assert_eq!(polled, waited);
}

fn polled_on_the_thread_that_waits(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..10 {
        assert_polled_here(&pool, || heist::spawn_future(here()));
    }
    assert_counts(&pool, 20, 0, 0);
    assert_eq!(pool.stats().peak_threads, 1);
}

/// A task waits for a future, in whose poll a task waits for the next one.
fn descend(length: u64) -> u64 {
    if length == 0 {
        return 0;
    }
    let future = heist::spawn_future(async move {
        heist::spawn(move || descend(length - 1)).join().expect("a result")
    });
    future.join().expect("a result") + 1
}

fn a_chain_needs_one_thread(kind: Kind) {
    const LENGTH: u64 = 8;
    let pool = kind.pool(1);
    assert_eq!(pool.spawn(|| descend(LENGTH)).join().expect("a result"), LENGTH);
    assert_counts(&pool, 2 * LENGTH + 1, 0, 0);
    assert_eq!(pool.stats().peak_threads, 1);
}

/// It does not fit on one stack. A thread that has used a good part of its stack has another one poll the future, at once.
fn a_long_chain_needs_few_threads(kind: Kind) {
    const LENGTH: u64 = 2_000;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn(|| descend(LENGTH)).join().expect("a result"), LENGTH);
        assert_counts(&pool, 2 * LENGTH + 1, 0, 0);
        // Without a claim there would be a thread for each poll. With several workers, others poll some of the futures.
        let threads = pool.stats().peak_threads as u64;
        assert!(workers > 1 || threads < LENGTH / 4, "{threads} threads");
    }
}

/// A few of these fill a stack.
fn large_frames(kind: Kind) {
    fn descend(length: u64) -> u64 {
        let frame = std::hint::black_box([length as u8; 128 << 10]);
        if length == 0 {
            return 0;
        }
        let below = heist::spawn_future(async move { descend(length - 1) });
        let below = below.join().expect("a result");
        assert_eq!(std::hint::black_box(frame)[4096], length as u8);
        below + 1
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn(|| descend(100)).join().expect("a result"), 100);
        assert_counts(&pool, 101, 0, 0);
    }
}

/// It was polled before, and is woken by the task that then waits for it.
fn woken_before_the_wait(kind: Kind) {
    let pool = kind.pool(1);
    let signal = Signal::default();
    let awaited = signal.clone();
    let future = pool.spawn_future(async move {
        awaited.await;
        here().await
    });
    eventually("the future waits", || signal.is_awaited());
    assert_polled_here(&pool, move || {
        signal.set();
        future
    });
    assert_counts(&pool, 3, 0, 0);
    assert_eq!(pool.stats().peak_threads, 1);
}

/// It has its own priority while it is polled there.
fn every_priority(kind: Kind) {
    let pool = kind.pool(1);
    for of_task in Priority::ALL {
        for of_future in Priority::ALL {
            let handle = pool.handle();
            let task = pool.task().priority(of_task).spawn(move || {
                let builder = handle.task().priority(of_future);
                let future = builder.spawn_future(async {
                    let inherited = heist::spawn_future(async { heist::current_priority() });
                    (heist::current_priority(), inherited.await.expect("a result"))
                });
                (future.join().expect("a result"), heist::current_priority())
            });
            let expected = ((of_future, of_future), of_task);
            assert_eq!(task.join().expect("a result"), expected);
        }
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

/// The future is near a worker that runs another task.
fn near_another_worker(kind: Kind) {
    let pool = kind.pool(2);
    let (tell, told) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    pool.spawn(move || {
        tell.send(heist::worker_index().expect("a worker")).expect("a test that listens");
        let _ = opened.recv();
    });
    let busy = told.recv().expect("a task that runs");
    let handle = pool.handle();
    let task = pool.spawn(move || {
        let future = handle.task().near(busy).spawn_future(here());
        (future.join().expect("a result"), thread::current().id())
    });
    let (polled, waited) = task.join().expect("no panic");
    assert_eq!(polled, waited);
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (0, 1));
    drop(open);
    assert_counts(&pool, 3, 0, 0);
}

/// There is nothing to claim while another thread polls it.
fn polled_by_another_thread(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        let (begin, begun) = mpsc::channel();
        let (open, opened) = mpsc::channel::<()>();
        let opened = Mutex::new(opened);
        let future = pool.spawn_future(async move {
            begin.send(()).expect("a test that listens");
            let _ = opened.lock().expect("no panic").recv();
            thread::current().id()
        });
        begun.recv().expect("a poll");
        let (start, started) = mpsc::channel();
        let task = pool.spawn(move || {
            start.send(()).expect("a test that listens");
            (future.join().expect("a result"), thread::current().id())
        });
        started.recv().expect("a task that runs");
        drop(open);
        let (polled, waited) = task.join().expect("no panic");
        assert_ne!(polled, waited);
        assert_counts(&pool, 2, 0, 0);
    }
}

/// The poll of the thread that waits was not the last one.
fn pending_after_that_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let signal = Signal::default();
        let awaited = signal.clone();
        let task = pool.spawn(|| heist::spawn_future(awaited).join());
        eventually("the future waits", || signal.is_awaited());
        signal.set();
        task.join().expect("no panic").expect("a result");
        assert_counts(&pool, 3, 0, 0);
    }
}

/// Later polls come behind what is queued.
fn wakes_itself(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let task = pool.spawn(|| heist::spawn_future(Yields(20)).join());
        task.join().expect("no panic").expect("a result");
        assert_counts(&pool, 22, 0, 0);
    }
}

fn panics(kind: Kind) {
    let pool = kind.pool(1);
    let task = pool.spawn(|| heist::spawn_future(async { panic!("planned") }).join());
    let result: Result<(), _> = task.join().expect("it does not panic itself");
    let Err(JoinError::Panicked(panic)) = result else { panic!("{result:?}") };
    assert_eq!(panic.message(), "planned");
    assert_counts(&pool, 1, 1, 0);
}

fn cancelled_before(kind: Kind) {
    let pool = kind.pool(1);
    let owned = Arc::new(());
    let captured = Arc::clone(&owned);
    let task = pool.spawn(move || {
        let future = heist::spawn_future(async move { drop(captured) });
        future.cancel();
        future.join()
    });
    let result = task.join().expect("no panic");
    assert!(matches!(result, Err(JoinError::Cancelled)));
    assert_eq!(Arc::strong_count(&owned), 1);
    assert_counts(&pool, 1, 0, 1);
    assert_eq!(pool.stats().peak_threads, 1);
}

fn cancelled_by_its_token(kind: Kind) {
    let pool = kind.pool(1);
    let handle = pool.handle();
    let task = pool.spawn(move || {
        let token = heist::CancelToken::new();
        let future = handle.task().cancel_on(&token).spawn_future(async { unreachable!() });
        token.cancel();
        future.join()
    });
    let result: Result<(), _> = task.join().expect("no panic");
    assert!(matches!(result, Err(JoinError::Cancelled)));
    assert_counts(&pool, 1, 0, 1);
}

fn cancelled_against_the_wait(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..100 {
            let token = heist::CancelToken::new();
            let (handle, of_future) = (pool.handle(), token.clone());
            let task = pool
                .spawn(move || handle.task().cancel_on(&of_future).spawn_future(Yields(5)).join());
            thread::scope(|scope| _ = scope.spawn(|| token.cancel()));
            let result = task.join().expect("no panic");
            assert!(matches!(result, Ok(()) | Err(JoinError::Cancelled)));
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// The task goes on after `stop_now`, and waits for a future that was not polled.
fn stop_now_refuses(kind: Kind) {
    let pool = kind.pool(1);
    let (begin, begun) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    let task = pool.spawn(move || {
        let future = heist::spawn_future(async { unreachable!("it was refused") });
        begin.send(()).expect("a test that listens");
        let _ = opened.recv();
        future.join()
    });
    begun.recv().expect("a task that runs");
    let probes = stop_now_before(&pool, || drop(open));
    let result: Result<(), _> = task.join().expect("it had started");
    assert!(matches!(result, Err(JoinError::Cancelled)));
    assert_counts(&pool, 1, 0, 1 + probes);
}

/// The task goes on after the stop has begun.
fn stop_waits(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let task = pool.spawn(|| {
            let future = heist::spawn_future(async {
                Yields(3).await;
                heist::spawn_future(async { 1 }).join().expect("a result")
            });
            future.join().expect("a result")
        });
        thread::scope(|scope| {
            scope.spawn(|| pool.stop());
            eventually("the pool refuses tasks", || pool.spawn(|| ()).is_finished());
            gate.open();
        });
        assert_eq!(task.join().expect("a result"), 1);
        assert_balanced(&pool.stats());
    }
}

/// Tasks that wait for each other's futures, on all workers.
fn many_at_once(kind: Kind) {
    const TASKS: usize = 200;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let polls = Arc::new(AtomicUsize::new(0));
        let futures = (0..TASKS).map(|n| {
            let polls = Arc::clone(&polls);
            pool.spawn_future(async move {
                polls.fetch_add(1, Ordering::Relaxed);
                Yields(n % 3).await;
                n
            })
        });
        let futures: Vec<_> = futures.collect();
        let join = |future: FutureHandle<usize>| pool.spawn(move || future.join());
        let tasks: Vec<_> = futures.into_iter().rev().map(join).collect();
        let sum: usize =
            tasks.into_iter().map(|task| task.join().expect("no panic").expect("a result")).sum();
        assert_eq!(sum, TASKS * (TASKS - 1) / 2);
        assert_eq!(polls.load(Ordering::Relaxed), TASKS);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// The handle was polled by a future before a thread joins it.
fn polled_as_a_future_before(kind: Kind) {
    let pool = kind.pool(1);
    let task = pool.spawn(|| {
        let mut future = heist::spawn_future(here());
        let counter = crate::common::WakeCounter::new();
        assert!(crate::common::poll_once(&mut future, &counter.waker()).is_pending());
        (future.join().expect("a result"), thread::current().id())
    });
    let (polled, waited) = task.join().expect("no panic");
    assert_eq!(polled, waited);
    assert_counts(&pool, 2, 0, 0);
}

/// Returns how many entries there are in the queue for tasks from outside.
fn injected(pool: &Pool) -> usize {
    let text = pool.dump().to_string();
    let line = text.lines().find(|line| line.starts_with("injector 0: ")).expect("a line");
    line.split(' ').nth(2).expect("a word").parse().unwrap_or(0)
}

/// Joins futures one after the other, below frames of so many bytes, and returns the largest number of entries that were left
/// of them in the queue.
fn most_entries(pool: &Pool, depth: usize) -> usize {
    let frame = std::hint::black_box([0_u8; 4096]);
    if depth > frame.len() {
        return most_entries(pool, depth - frame.len()) + usize::from(frame[77]);
    }
    let mut most = 0;
    for n in 0..3_000 {
        let future = heist::spawn_future(async move { n });
        assert_eq!(future.join().expect("a result"), n);
        most = most.max(injected(pool));
    }
    most
}

/// What is left in the queue of polls that were claimed does not collect while a task runs on.
fn memory_of_many_joins(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        let here = Arc::clone(&pool);
        let most = pool.spawn(move || most_entries(&here, 0)).join().expect("no panic");
        assert!(most < 500, "{most} entries");
    }
}

/// Another thread runs the polls.
fn memory_of_many_joins_on_a_deep_stack(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        let here = Arc::clone(&pool);
        let most = pool.spawn(move || most_entries(&here, 640 << 10)).join().expect("no panic");
        assert!(most < 500, "{most} entries");
    }
}
