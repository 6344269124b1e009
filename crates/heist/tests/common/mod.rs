//! What the tests share: the strategies, tests that run once for each strategy, gates that keep
//! workers busy, and checks of a pool's counters. Helpers that need no type of heist are in
//! `heist-testkit`.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test binary uses its own part of this module"
)]

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use heist::{Builder, Counters, JoinError, JoinHandle, Pool, Stats, Strategy};

pub(crate) use heist_testkit::executor::{WakeCounter, block_on, poll_once};
pub(crate) use heist_testkit::ledger::{Ledger, Tracked};
pub(crate) use heist_testkit::panics::panic_message;
pub(crate) use heist_testkit::process::in_child;
pub(crate) use heist_testkit::random::Rng;
pub(crate) use heist_testkit::threads::{LiveThreads, ThreadGroup};
pub(crate) use heist_testkit::watchdog::{eventually, watched};

pub(crate) mod pipeline;

/// The numbers of workers with which a test runs, one after the other.
pub(crate) const WORKERS: [usize; 3] = [1, 2, 4];

/// A strategy, and what tests have to know of it. Tests get it as a value: what is generic over a strategy would be compiled
/// for each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) strategy: Strategy,
    /// Whether a worker has a queue of its own, from which others steal.
    pub(crate) steals: bool,
}

impl Kind {
    pub(crate) const WORK_STEALING: Self = Self { strategy: Strategy::WorkStealing, steals: true };
    pub(crate) const LOCKED_DEQUES: Self = Self { strategy: Strategy::LockedDeques, steals: true };
    pub(crate) const GLOBAL_QUEUE: Self = Self { strategy: Strategy::GlobalQueue, steals: false };

    pub(crate) fn builder(self, workers: usize) -> Builder {
        Pool::builder().workers(workers).strategy(self.strategy)
    }

    /// Like [`Kind::builder`]; the threads of the pool belong to this group.
    pub(crate) fn builder_in(self, threads: &ThreadGroup, workers: usize) -> Builder {
        let prefix = threads.prefix().to_owned();
        self.builder(workers).thread_name(move |index| format!("{prefix}{index}"))
    }

    /// Like [`Kind::builder`]; the threads of the pool are counted.
    pub(crate) fn counted_builder(self, workers: usize) -> (Builder, Arc<LiveThreads>) {
        let live = Arc::new(LiveThreads::default());
        let (starting, stopping) = (Arc::clone(&live), Arc::clone(&live));
        let builder = self
            .builder(workers)
            .on_thread_start(move |_| starting.started())
            .on_thread_stop(move |_| stopping.stopped());
        (builder, live)
    }

    pub(crate) fn pool(self, workers: usize) -> Pool {
        self.builder(workers).build().expect("a pool")
    }
}

/// Runs a test, given with its [path](heist_testkit::test_path), for one strategy and under the watchdog.
pub(crate) fn run_test(path: &'static str, test: fn(Kind), kind: Kind) {
    watched(path, || test(kind));
}

/// Makes `mod name { #[test] fn test() { test(kind) } ... }` for one strategy. Each test is under the watchdog.
macro_rules! tests_for {
    ($name:ident: $kind:ident, { $($test:ident),* $(,)? }) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    let path = heist_testkit::test_path!(stringify!($test));
                    $crate::common::run_test(path, super::$test, $crate::common::Kind::$kind);
                }
            )*
        }
    };
}
pub(crate) use tests_for;

/// Runs each test, a function of a [`Kind`], for every strategy.
macro_rules! for_every_strategy {
    (@all $tests:tt) => {
        $crate::common::tests_for!(work_stealing: WORK_STEALING, $tests);
        $crate::common::tests_for!(locked_deques: LOCKED_DEQUES, $tests);
        $crate::common::tests_for!(global_queue: GLOBAL_QUEUE, $tests);
    };
    ($($test:ident),* $(,)?) => {
        $crate::common::for_every_strategy!(@all { $($test),* });
    };
}
pub(crate) use for_every_strategy;

/// Runs each test, a function without arguments, once and under the watchdog: no strategy makes a difference to it.
macro_rules! once {
    ($($test:ident),* $(,)?) => {
        mod once {
            $(
                #[test]
                fn $test() {
                    let path = heist_testkit::test_path!(stringify!($test));
                    $crate::common::watched(path, super::$test);
                }
            )*
        }
    };
}
pub(crate) use once;

/// Keeps every worker of a pool busy until it is opened, or dropped.
pub(crate) struct Gate {
    held: Vec<Sender<()>>,
}

impl Gate {
    /// Returns once every worker is busy.
    pub(crate) fn close(pool: &Pool) -> Self {
        let (enter, entered) = mpsc::channel();
        let mut held = Vec::new();
        for _ in 0..pool.workers() {
            let (open, opened) = mpsc::channel();
            let enter = enter.clone();
            held.push(open);
            pool.spawn(move || {
                enter.send(()).expect("a test that waits");
                // This waits until the gate is dropped, which is an error.
                let _ = opened.recv();
            });
        }
        held.iter().for_each(|_| entered.recv().expect("a worker that reaches the gate"));
        Self { held }
    }

    /// Returns how many tasks the gate has submitted.
    pub(crate) fn tasks(&self) -> u64 {
        self.held.len() as u64
    }

    pub(crate) fn open(self) {}

    /// Calls `stop_now` while the workers are still busy, and opens the gate when the pool refuses
    /// tasks. Returns how many probing tasks the pool accepted before; all of them are cancelled.
    pub(crate) fn stop_now(self, pool: &Pool) -> u64 {
        stop_now_before(pool, || self.open())
    }
}

/// Spawns a task that runs until the sender is dropped.
pub(crate) fn held_task(pool: &Pool) -> (Sender<()>, JoinHandle<()>) {
    let (open, opened) = mpsc::channel();
    (open, pool.spawn(move || _ = opened.recv()))
}

/// Calls `stop_now`, and calls `let_go` for the running tasks when the pool refuses tasks. Returns how
/// many probing tasks the pool accepted before; if no worker was free, all of them are cancelled.
pub(crate) fn stop_now_before(pool: &Pool, let_go: impl FnOnce()) -> u64 {
    thread::scope(|scope| {
        let stopper = scope.spawn(|| pool.stop_now());
        let mut admitted = 0;
        eventually("the pool refuses tasks", || {
            let probe = pool.spawn(|| ());
            // An accepted task may have been run, or cancelled, by a free worker.
            let refused = probe.is_finished() && matches!(probe.join(), Err(JoinError::Stopped));
            admitted += u64::from(!refused);
            refused
        });
        // Refusing new tasks and cancelling queued ones need not be one step. This leaves time for the
        // second.
        thread::sleep(Duration::from_millis(20));
        let_go();
        stopper.join().expect("no panic");
        admitted
    })
}

/// The name and value of every counter.
pub(crate) fn fields(counters: &Counters) -> [(&'static str, u64); 18] {
    macro_rules! fields {
        ($($field:ident)*) => { [$((stringify!($field), counters.$field)),*] };
    }
    fields! {
        tasks_submitted tasks_completed panics cancellations steal_attempts successful_steals
        near_steals far_steals failed_cas tasks_moved local_pops injector_pops overflows idle_spins parks wake_ups_sent
        futile_wake_ups lock_contention
    }
}

/// Returns how many tasks have ended: completed, panicked or cancelled.
pub(crate) fn ended(counters: &Counters) -> u64 {
    counters.tasks_completed + counters.panics + counters.cancellations
}

/// Panics unless these can be the counters of a pool that has no task left.
pub(crate) fn assert_balanced(stats: &Stats) {
    assert_eq!(stats.total.tasks_submitted, ended(&stats.total), "{:?}", stats.total);
    for (index, (name, total)) in fields(&stats.total).into_iter().enumerate() {
        let sum: u64 = stats.per_worker.iter().map(|worker| fields(worker)[index].1).sum();
        assert!(sum <= total, "{name}: {sum} by workers, {total} in all");
    }
}

/// Stops the pool, and panics unless these numbers of tasks completed, panicked and were cancelled.
pub(crate) fn assert_counts(pool: &Pool, completed: u64, panics: u64, cancellations: u64) {
    pool.stop();
    let stats = pool.stats();
    assert_balanced(&stats);
    let ends = (stats.total.tasks_completed, stats.total.panics, stats.total.cancellations);
    assert_eq!(ends, (completed, panics, cancellations));
}
