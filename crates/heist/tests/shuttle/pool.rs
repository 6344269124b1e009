//! Spawns, waits and stops of whole pools.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use heist::{JoinError, JoinHandle, Pool, Strategy};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! {
    joins
    bursts
    tree
    overflow
    chain_of_spawns
    chain_of_handles
    stop_race
    stop_now_race
    future
    batch
    refused_threads
}

/// Two external threads spawn and wait.
fn joins(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let other = Arc::clone(&pool);
    let asker = thread::spawn(move || assert_eq!(other.spawn(|| 1).join().unwrap(), 1));
    assert_eq!(pool.spawn(|| 2).join().unwrap(), 2);
    asker.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// The workers fall asleep between two tasks.
fn bursts(strategy: Strategy) {
    let pool = pool(strategy, 2);
    for n in 0..3 {
        assert_eq!(pool.spawn(move || n).join().unwrap(), n);
    }
    pool.stop();
    exact(&pool);
}

/// Tasks spawn tasks, and the stop waits for all of them.
fn tree(strategy: Strategy) {
    fn grow(pool: &Arc<Pool>, count: &Arc<AtomicUsize>, depth: usize) {
        count.fetch_add(1, SeqCst);
        for _ in 0..if depth > 0 { 2 } else { 0 } {
            let (deeper, counted) = (Arc::clone(pool), Arc::clone(count));
            pool.spawn(move || grow(&deeper, &counted, depth - 1));
        }
    }
    let pool = pool(strategy, 2);
    let count = Arc::new(AtomicUsize::new(0));
    let (root, counted) = (Arc::clone(&pool), Arc::clone(&count));
    pool.spawn(move || grow(&root, &counted, 2));
    pool.stop();
    assert_eq!(count.load(SeqCst), 7);
    exact(&pool);
}

/// One task spawns more than its worker's deque holds.
fn overflow(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let count = Arc::new(AtomicUsize::new(0));
    let (inner, counted) = (Arc::clone(&pool), Arc::clone(&count));
    pool.spawn(move || {
        for _ in 0..10 {
            let counted = Arc::clone(&counted);
            inner.spawn(move || counted.fetch_add(1, SeqCst));
        }
    });
    pool.stop();
    assert_eq!(count.load(SeqCst), 10);
    exact(&pool);
}

/// Each task spawns the next and waits for it.
fn chain_of_spawns(strategy: Strategy) {
    fn link(pool: &Arc<Pool>, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        let next = Arc::clone(pool);
        1 + pool.spawn(move || link(&next, left - 1)).join().unwrap()
    }
    let pool = pool(strategy, 2);
    let inner = Arc::clone(&pool);
    assert_eq!(pool.spawn(move || link(&inner, 4)).join().unwrap(), 4);
    pool.stop();
    exact(&pool);
}

/// Each task waits for the one that was spawned before it. A worker that ran other tasks on top while it
/// waits would block what those wait for.
fn chain_of_handles(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let mut last: JoinHandle<usize> = pool.spawn(|| 0);
    for _ in 0..4 {
        last = pool.spawn(move || 1 + last.join().unwrap());
    }
    assert_eq!(last.join().unwrap(), 4);
    pool.stop();
    exact(&pool);
}

/// Spawns from outside race with a stop, and with another stop.
fn stop_race(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (spawner, stopper) = (Arc::clone(&pool), Arc::clone(&pool));
    let spawner = thread::spawn(move || {
        for n in 0..3 {
            match spawner.spawn(move || n).join() {
                Ok(found) => assert_eq!(found, n),
                Err(error) => assert!(matches!(error, JoinError::Stopped), "{error}"),
            }
        }
    });
    let stopper = thread::spawn(move || stopper.stop());
    pool.stop();
    assert!(matches!(pool.spawn(|| ()).join(), Err(JoinError::Stopped)));
    spawner.join().unwrap();
    stopper.join().unwrap();
    exact(&pool);
}

/// An immediate stop cancels the tasks that have not started.
fn stop_now_race(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let inner = Arc::clone(&pool);
    let parent = pool.spawn(move || inner.spawn(|| 1));
    let sibling = pool.spawn(|| 2);
    pool.stop_now();
    match parent.join() {
        Ok(child) => assert!(matches!(child.join(), Ok(1) | Err(JoinError::Cancelled))),
        Err(error) => assert!(matches!(error, JoinError::Cancelled), "{error}"),
    }
    assert!(matches!(sibling.join(), Ok(2) | Err(JoinError::Cancelled)));
    exact(&pool);
}

/// Wakes a thread.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A handle is awaited.
fn future(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let mut handle = pin!(pool.spawn(|| 42));
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let result = loop {
        match handle.as_mut().poll(&mut context) {
            Poll::Ready(result) => break result,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(result.unwrap(), 42);
    pool.stop();
    exact(&pool);
}

/// A batch is split between the workers.
fn batch(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let squares = pool.spawn_batch((0..5).map(|n| move || n * n));
    assert_eq!(squares.join().unwrap(), [0, 1, 4, 9, 16]);
    pool.stop();
    exact(&pool);
}

/// The system refuses threads, so no standby thread can take over from a task that waits for a batch.
/// The last worker that is awake runs the batch.
fn refused_threads(strategy: Strategy) {
    let name = |index| if index < 2 { "worker".to_owned() } else { "refused".to_owned() };
    let pool = Pool::builder().workers(2).strategy(strategy).thread_name(name).build();
    let pool = Arc::new(pool.expect("a small pool"));
    let waits = [2, 3].map(|count| {
        let here = Arc::clone(&pool);
        pool.spawn(move || here.spawn_batch((0..count).map(|n| move || n)).join().unwrap().len())
    });
    let counts = waits.map(|wait| wait.join().unwrap());
    assert_eq!(counts, [2, 3]);
    pool.stop();
    exact(&pool);
}
