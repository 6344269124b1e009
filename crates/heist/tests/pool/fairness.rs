//! The contract of fairness: a task that spawns itself again and again does not keep other tasks from starting.
//! Each of them starts after a bounded number of other starts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::common::{Gate, Kind, eventually, for_every_strategy, held_task};

for_every_strategy! {
    older_tasks_of_the_same_worker,
    tasks_from_outside,
    parts_of_a_scope_whose_core_was_handed_off,
    older_tasks_of_busy_workers,
}

/// A worker takes every 251st task from another queue than its own newest end. There are a few such queues, and
/// this leaves a factor for the order in which it looks at them.
const TURN: usize = 251 * 8;

/// A task that spawns itself again and again until it is told to end, and counts its starts.
#[derive(Clone, Default)]
struct Treadmill {
    starts: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
}

impl Treadmill {
    /// Returns how often it has started.
    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.end.store(true, Ordering::SeqCst);
    }

    /// Starts once, and spawns itself again on the worker that runs it. It gives up after `most` starts.
    fn run(&self, most: usize) {
        let count = self.starts.fetch_add(1, Ordering::SeqCst);
        if count < most && !self.end.load(Ordering::SeqCst) {
            let again = self.clone();
            heist::spawn(move || again.run(most));
        }
    }
}

/// How many other tasks there are.
const OTHERS: usize = 8;
/// After this many starts the test has failed.
const MOST: usize = TURN * (OTHERS + 1) * 4;

/// Checks how many starts of the treadmill each task has seen before its own.
fn assert_bounded(mut seen: Vec<usize>) {
    seen.sort_unstable();
    for (position, seen) in seen.into_iter().enumerate() {
        let bound = TURN * (position + 1);
        assert!(seen <= bound, "task {position} has started after {seen} others, not {bound}");
    }
}

/// The only worker has older tasks in its deque. The oldest comes first.
fn older_tasks_of_the_same_worker(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let mill = treadmill.clone();
    let others = pool.spawn(move || {
        let others: Vec<_> = (0..OTHERS)
            .map(|_| {
                let mill = mill.clone();
                heist::spawn(move || mill.starts())
            })
            .collect();
        heist::spawn(move || mill.run(MOST));
        others
    });
    let seen = others
        .join()
        .expect("handles")
        .into_iter()
        .map(|other| other.join().expect("a result"))
        .collect();
    treadmill.end();
    assert_bounded(seen);
}

/// Tasks are queued from outside while the treadmill runs.
fn tasks_from_outside(kind: Kind) {
    let pool = kind.pool(1);
    let treadmill = Treadmill::default();
    let gate = Gate::close(&pool);
    let others: Vec<_> = (0..=OTHERS)
        .map(|n| {
            let mill = treadmill.clone();
            pool.spawn(move || {
                if n == 0 {
                    mill.run(MOST);
                }
                mill.starts()
            })
        })
        .collect();
    gate.open();
    let seen: Vec<_> =
        others.into_iter().skip(1).map(|other| other.join().expect("a result")).collect();
    treadmill.end();
    assert_bounded(seen);
}

/// A task has spawned parts of a scope and then waits for a task on another pool, which ends only after all
/// parts have started. The treadmill runs on the core that was handed off.
fn parts_of_a_scope_whose_core_was_handed_off(kind: Kind) {
    let (here, there) = (kind.pool(1), kind.pool(1));
    let treadmill = Treadmill::default();
    let (start, started) = mpsc::channel();
    let slow = there.spawn(move || started.into_iter().collect::<Vec<usize>>());
    let mill = treadmill.clone();
    let seen = here.spawn(move || {
        let again = mill.clone();
        heist::spawn(move || again.run(MOST));
        heist::scope(|scope| {
            for _ in 0..OTHERS {
                let (start, mill) = (start.clone(), mill.clone());
                scope.spawn(move |_| start.send(mill.starts()).expect("a task that waits"));
            }
            drop(start);
            slow.join().expect("a result")
        })
    });
    let seen = seen.join().expect("a result");
    treadmill.end();
    assert_bounded(seen);
}

/// Each of several workers has a treadmill and older tasks. The system may stop a worker for any time, so there
/// is no bound on the number of starts here, but each task starts.
fn older_tasks_of_busy_workers(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        let treadmill = Treadmill::default();
        let (busy, held): (Vec<_>, Vec<_>) = (1..workers).map(|_| held_task(&pool)).unzip();
        let others: Vec<_> = (0..workers)
            .map(|_| {
                let mill = treadmill.clone();
                pool.spawn(move || {
                    let others = [(); 4].map(|()| heist::spawn(|| ()));
                    heist::spawn(move || mill.run(usize::MAX));
                    others
                })
            })
            .collect();
        drop(busy);
        held.into_iter().for_each(|held| held.join().expect("a result"));
        let others: Vec<_> =
            others.into_iter().flat_map(|others| others.join().expect("handles")).collect();
        let all_ended = || others.iter().all(heist::JoinHandle::is_finished);
        let guard = EndOnDrop(&treadmill);
        eventually("all of the older tasks start", all_ended);
        drop(guard);
    }
}

/// Ends the treadmill, also if the test fails: the pool waits for it.
struct EndOnDrop<'a>(&'a Treadmill);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
