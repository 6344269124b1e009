//! The contract of the counters of cores: a core that a waiting task hands off is counted, and so is one that a task
//! gets back after its wait, and the time that it ran without one.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use heist::{Counters, JoinHandle, Pool};

use crate::common::{Kind, WORKERS, assert_balanced, eventually, for_every_strategy, held_task};

for_every_strategy! {
    a_worker_returns_its_core_after_a_task,
    a_task_that_waits_returns_its_core,
    a_core_is_taken_at_the_end_of_the_task,
}

/// A pool in which all workers but one are busy. On that one a task has waited, so that its core went to another task,
/// and has gone on without a core.
struct Resumed {
    pool: Arc<Pool>,
    /// Keeps the other workers busy.
    others: Vec<Sender<()>>,
    /// Lets the first task go on, to call `f` and then to end.
    go_on: Sender<()>,
    /// Tells that the first task has called `f`.
    called: Receiver<()>,
    first: JoinHandle<()>,
    /// Lets the second task, which has the core, go on to call `g` and then to end.
    end: Sender<()>,
    second: JoinHandle<()>,
}

impl Resumed {
    fn new(
        kind: Kind,
        workers: usize,
        f: impl FnOnce() + Send + 'static,
        g: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (pool, there) = (Arc::new(kind.pool(workers)), kind.pool(1));
        let (enter, entered) = mpsc::channel();
        let others = (1..workers)
            .map(|_| {
                let (open, opened) = mpsc::channel::<()>();
                let enter = enter.clone();
                pool.spawn(move || {
                    enter.send(()).expect("a test that waits");
                    let _ = opened.recv();
                });
                entered.recv().expect("a task that has started");
                open
            })
            .collect();
        let (open, slow) = held_task(&there);
        let (go_on, may_go_on) = mpsc::channel();
        let (call, called) = mpsc::channel();
        let begin = enter.clone();
        let first = pool.spawn(move || {
            begin.send(()).expect("a test that waits");
            slow.join().expect("a result");
            let resumed = Instant::now();
            begin.send(()).expect("a test that waits");
            may_go_on.recv().expect("a test that goes on");
            // The clock may be coarse.
            while Instant::now() <= resumed {
                thread::yield_now();
            }
            f();
            call.send(()).expect("a test that waits");
        });
        entered.recv().expect("a task that is about to wait");
        assert_eq!(pool.stats().total.hand_offs, 0, "nothing else is queued");
        let (end, may_end) = mpsc::channel();
        let second = pool.spawn(move || {
            enter.send(()).expect("a test that waits");
            may_end.recv().expect("a test that goes on");
            g();
        });
        entered.recv().expect("a task that runs on the core");
        drop(open);
        entered.recv().expect("a task that has gone on");
        let resumed = Self { pool, others, go_on, called, first, end, second };
        resumed.assert(|total| (total.hand_offs, total.cores_returned), (1, 0));
        resumed.assert(|total| total.nanoseconds_without_core, 0);
        resumed
    }

    fn total(&self) -> Counters {
        self.pool.stats().total
    }

    fn assert<T: PartialEq + std::fmt::Debug>(&self, of: impl Fn(&Counters) -> T, expected: T) {
        let total = self.total();
        assert_eq!(of(&total), expected, "{total:?}");
    }

    /// Lets the second task go on, and waits until the first one has got the core.
    fn return_core(&self) {
        self.end.send(()).expect("a task that waits");
        eventually("the core is returned", || self.total().cores_returned > 0);
        self.assert(|total| (total.hand_offs, total.cores_returned), (1, 1));
        self.assert(|total| total.nanoseconds_without_core, 0);
    }

    /// Lets the first task call `f`.
    fn go_on(&self) {
        self.go_on.send(()).expect("a task that waits");
        self.called.recv().expect("a task that goes on");
    }

    /// Ends all tasks and the pool, and returns its counters.
    fn finish(self) -> Counters {
        self.first.join().expect("a result");
        self.second.join().expect("a result");
        drop(self.others);
        self.pool.stop();
        let stats = self.pool.stats();
        assert_balanced(&stats);
        stats.total
    }
}

/// The second task ends. The first one takes the core when it next spawns.
fn a_worker_returns_its_core_after_a_task(kind: Kind) {
    for workers in WORKERS {
        let resumed = Resumed::new(kind, workers, || drop(heist::spawn(|| ())), || ());
        resumed.return_core();
        resumed.go_on();
        assert!(resumed.total().nanoseconds_without_core > 0);
        let total = resumed.finish();
        assert_eq!((total.hand_offs, total.cores_returned), (1, 1), "{total:?}");
    }
}

/// The second task waits in its turn, while nothing is queued.
fn a_task_that_waits_returns_its_core(kind: Kind) {
    for workers in WORKERS {
        let there = kind.pool(1);
        let (open, slow) = held_task(&there);
        let wait = move || slow.join().expect("a result");
        let resumed = Resumed::new(kind, workers, || drop(heist::spawn(|| ())), wait);
        resumed.return_core();
        resumed.go_on();
        assert!(resumed.total().nanoseconds_without_core > 0);
        drop(open);
        let total = resumed.finish();
        assert_eq!(total.hand_offs, 1, "{total:?}");
    }
}

/// The first task does not call into the pool before it ends.
fn a_core_is_taken_at_the_end_of_the_task(kind: Kind) {
    for workers in WORKERS {
        let resumed = Resumed::new(kind, workers, || (), || ());
        resumed.return_core();
        resumed.go_on();
        let total = resumed.finish();
        assert_eq!((total.hand_offs, total.cores_returned), (1, 1), "{total:?}");
        assert!(total.nanoseconds_without_core > 0, "{total:?}");
    }
}
