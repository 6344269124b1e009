//! The contract of fairness between futures and tasks: a future that always wakes itself keeps nothing from starting, and
//! tasks do not keep a future from being polled. All of it with one worker, by counts.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::common::{Gate, Kind, for_every_strategy};
use crate::signal::Yields;

for_every_strategy! {
    tasks_from_outside,
    tasks_of_the_same_worker,
    tasks_beside_a_task_that_joins_it,
    other_futures,
    a_future_beside_tasks_without_end,
}

/// A worker takes every 251st task from another queue than its own newest end. There are a few such queues, and this
/// leaves a factor for the order in which it looks at them.
const TURN: usize = 251 * 8;

/// How many others there are.
const OTHERS: usize = 8;

/// After this many polls the test has failed.
const MOST: usize = TURN * (OTHERS + 1) * 4;

/// A future that wakes itself in every poll until it is told to end, and counts its polls.
#[derive(Clone, Default)]
struct Treadmill {
    polls: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
}

impl Treadmill {
    fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.end.store(true, Ordering::SeqCst);
    }

    /// Counts, and returns whether it goes on.
    fn count(&self) -> bool {
        let count = self.polls.fetch_add(1, Ordering::SeqCst);
        count < MOST && !self.end.load(Ordering::SeqCst)
    }
}

impl Future for Treadmill {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.count() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Checks how many polls of the treadmill each of the others has seen before it started, or before its last poll.
fn assert_at_most(bound: usize, seen: &[usize]) {
    assert!(seen.iter().all(|&polls| polls <= bound), "{seen:?}, not {bound}");
}

/// The treadmill is the first in the injector. Its next polls come after the others.
fn tasks_from_outside(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let gate = Gate::close(&pool);
    let future = pool.spawn_future(treadmill.clone());
    let others: Vec<_> = (0..OTHERS)
        .map(|_| {
            let mill = treadmill.clone();
            pool.spawn(move || mill.polls())
        })
        .collect();
    gate.open();
    let seen: Vec<_> = others.into_iter().map(|other| other.join().expect("a result")).collect();
    treadmill.end();
    future.join().expect("a result");
    assert_at_most(1, &seen);
}

/// The worker has tasks in its own deque, and takes one from the injector at times, but never two in a row.
fn tasks_of_the_same_worker(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let mill = treadmill.clone();
    let others = pool.spawn(move || {
        let future = heist::spawn_future(mill.clone());
        let other = || {
            let mill = mill.clone();
            heist::spawn(move || mill.polls())
        };
        (future, (0..OTHERS).map(|_| other()).collect::<Vec<_>>())
    });
    let (future, others) = others.join().expect("handles");
    let seen: Vec<_> = others.into_iter().map(|other| other.join().expect("a result")).collect();
    treadmill.end();
    future.join().expect("a result");
    assert_at_most(OTHERS + 1, &seen);
}

/// A task that joins the treadmill polls it itself, but only once.
fn tasks_beside_a_task_that_joins_it(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let gate = Gate::close(&pool);
    let mill = treadmill.clone();
    let task = pool.spawn(move || heist::spawn_future(mill).join());
    let others: Vec<_> = (0..OTHERS)
        .map(|_| {
            let mill = treadmill.clone();
            pool.spawn(move || mill.polls())
        })
        .collect();
    gate.open();
    let seen: Vec<_> = others.into_iter().map(|other| other.join().expect("a result")).collect();
    treadmill.end();
    task.join().expect("no panic").expect("a result");
    assert_at_most(2, &seen);
}

/// All of them are polled in turn.
fn other_futures(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let gate = Gate::close(&pool);
    let future = pool.spawn_future(treadmill.clone());
    let others: Vec<_> = (0..OTHERS)
        .map(|_| {
            let mill = treadmill.clone();
            pool.spawn_future(async move {
                Yields(3).await;
                mill.polls()
            })
        })
        .collect();
    gate.open();
    let seen: Vec<_> = others.into_iter().map(|other| other.join().expect("a result")).collect();
    treadmill.end();
    future.join().expect("a result");
    assert_at_most(4, &seen);
}

/// A task spawns itself again and again. The future is polled in between, each time after a bounded number of starts.
fn a_future_beside_tasks_without_end(kind: Kind) {
    const POLLS: usize = 5;
    fn run(mill: Treadmill) {
        if mill.count() {
            heist::spawn(move || run(mill));
        }
    }
    let pool = kind.pool(1);
    let mill = Treadmill::default();
    let gate = Gate::close(&pool);
    let tasks = mill.clone();
    pool.spawn(move || run(tasks));
    let seen = mill.clone();
    let future = pool.spawn_future(async move {
        let mut all = Vec::new();
        for _ in 0..POLLS {
            all.push(seen.polls());
            Yields(1).await;
        }
        seen.end();
        all
    });
    gate.open();
    let seen = future.join().expect("a result");
    for (poll, seen) in seen.into_iter().enumerate() {
        let bound = TURN * (poll + 1);
        assert!(seen <= bound, "poll {poll} has come after {seen} starts, not {bound}");
    }
}
