//! The order in which tasks start, with so many tasks that the bounds mean something. Each schedule is long, so
//! there are few of them.

use std::sync::Arc;

use heist::Strategy;
use heist_deque::BATCH_LIMIT;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use shuttle::sync::mpsc;
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { @with explore_few
    requests
    requests_with_a_scope
    older_tasks_beside_a_treadmill
    tasks_from_outside_beside_a_treadmill
    parts_beside_a_treadmill
}

/// Queues requests while all workers are busy. All but those that a thread has taken and not started yet start
/// in order, but for what each worker has moved to its own deque, and once more as much for what was stolen.
fn in_order(strategy: Strategy, request: fn()) {
    const WORKERS: usize = 2;
    const COUNT: usize = 6 * WORKERS * BATCH_LIMIT;
    /// A thread may be stopped while it moves requests from one queue to another.
    const STOPPED: usize = WORKERS * BATCH_LIMIT;
    let pool = pool(strategy, WORKERS);
    let (enter, entered) = mpsc::channel();
    let gates = [(); WORKERS].map(|()| {
        let (open, opened) = mpsc::channel();
        let enter = enter.clone();
        pool.spawn(move || {
            enter.send(()).unwrap();
            opened.recv().unwrap();
        });
        open
    });
    gates.iter().for_each(|_| entered.recv().unwrap());
    let started = Arc::new(AtomicUsize::new(0));
    let requests: Vec<_> = (0..COUNT)
        .map(|place| {
            let started = Arc::clone(&started);
            pool.spawn(move || {
                let late = started.fetch_add(1, SeqCst).saturating_sub(place);
                request();
                late
            })
        })
        .collect();
    gates.into_iter().for_each(|gate| gate.send(()).unwrap());
    let mut late: Vec<_> = requests.into_iter().map(|request| request.join().unwrap()).collect();
    late.sort_unstable();
    let most = late[COUNT - 1 - STOPPED];
    assert!(most <= WORKERS * 2 * BATCH_LIMIT, "a request is {most} places late");
    pool.stop();
    exact(&pool);
}

fn requests(strategy: Strategy) {
    in_order(strategy, || ());
}

fn requests_with_a_scope(strategy: Strategy) {
    in_order(strategy, || {
        heist::scope(|scope| (0..2).for_each(|_| scope.spawn(|_| thread::yield_now())));
    });
}

/// A worker takes every 251st task from another queue than its own newest end, in turn.
const TURN: usize = 251 * 8;
/// How many other tasks there are.
const OTHERS: usize = 2;

/// A task that spawns itself again and again until it is told to end. It counts its starts, and gives up when
/// there were too many.
#[derive(Clone)]
struct Treadmill(Arc<(AtomicUsize, AtomicBool)>);

impl Treadmill {
    fn new() -> Self {
        Self(Arc::new((AtomicUsize::new(0), AtomicBool::new(false))))
    }

    fn run(&self) {
        let count = self.0.0.fetch_add(1, SeqCst);
        if count < TURN * (OTHERS + 2) && !self.0.1.load(SeqCst) {
            let again = self.clone();
            heist::spawn(move || again.run());
        }
    }

    fn starts(&self) -> usize {
        self.0.0.load(SeqCst)
    }

    /// Ends it, and checks how many starts each of the other tasks has seen before its own.
    fn end(&self, mut seen: Vec<usize>) {
        self.0.1.store(true, SeqCst);
        seen.sort_unstable();
        assert_eq!(seen.len(), OTHERS);
        for (position, seen) in seen.into_iter().enumerate() {
            assert!(seen <= TURN * (position + 1), "task {position} has started after {seen}");
        }
    }
}

fn older_tasks_beside_a_treadmill(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let treadmill = Treadmill::new();
    let mill = treadmill.clone();
    let others = pool.spawn(move || {
        let others = [(); OTHERS].map(|()| {
            let mill = mill.clone();
            heist::spawn(move || mill.starts())
        });
        heist::spawn(move || mill.run());
        others
    });
    let others = others.join().unwrap();
    treadmill.end(others.into_iter().map(|other| other.join().unwrap()).collect());
    pool.stop();
    exact(&pool);
}

/// The tasks are in the injector before the treadmill starts, which the only worker does first.
fn tasks_from_outside_beside_a_treadmill(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let treadmill = Treadmill::new();
    let (go, gone) = mpsc::channel();
    let mill = treadmill.clone();
    pool.spawn(move || {
        gone.recv().unwrap();
        mill.run();
    });
    let others = [(); OTHERS].map(|()| {
        let mill = treadmill.clone();
        pool.spawn(move || mill.starts())
    });
    go.send(()).unwrap();
    treadmill.end(others.into_iter().map(|other| other.join().unwrap()).collect());
    pool.stop();
    exact(&pool);
}

/// The core of a task that waits inside a scope was handed off to the treadmill. The parts of the scope start
/// nevertheless.
fn parts_beside_a_treadmill(strategy: Strategy) {
    let (here, there) = (pool(strategy, 1), pool(strategy, 1));
    let treadmill = Treadmill::new();
    let (start, started) = mpsc::channel();
    let slow = there.spawn(move || started.into_iter().collect::<Vec<usize>>());
    let mill = treadmill.clone();
    let seen = here.spawn(move || {
        let again = mill.clone();
        heist::spawn(move || again.run());
        heist::scope(|scope| {
            for _ in 0..OTHERS {
                let (start, mill) = (start.clone(), mill.clone());
                scope.spawn(move |_| start.send(mill.starts()).unwrap());
            }
            drop(start);
            slow.join().unwrap()
        })
    });
    treadmill.end(seen.join().unwrap());
    here.stop();
    there.stop();
    exact(&here);
}
