//! Forks of whole pools under shuttle: see `shuttle.rs`.

#![cfg(shuttle)]

use std::sync::Arc;

use heist::{Pool, Strategy};
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::sync::mpsc;
use shuttle::thread;

#[path = "../../deque/tests/common/schedules.rs"]
mod schedules;

/// Schedules of each kind; a pool takes many steps.
const SCHEDULES: usize = 2_000;

fn pool(strategy: Strategy, workers: usize) -> Arc<Pool> {
    Arc::new(Pool::builder().workers(workers).strategy(strategy).build().expect("a small pool"))
}

/// Everything that went in has come out, as the counters have it.
fn exact(pool: &Pool) {
    let stats = pool.stats();
    let out = stats.tasks_completed + stats.panics + stats.cancellations;
    assert_eq!(stats.tasks_submitted, out, "{stats:?}");
}

/// A test for each strategy.
macro_rules! scenarios {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn work_stealing() {
                super::schedules::check(super::SCHEDULES, || super::$name(super::Strategy::WorkStealing));
            }

            #[test]
            fn locked_deques() {
                super::schedules::check(super::SCHEDULES, || super::$name(super::Strategy::LockedDeques));
            }

            #[test]
            fn global_queue() {
                super::schedules::check(super::SCHEDULES, || super::$name(super::Strategy::GlobalQueue));
            }
        }
    )*};
}

scenarios! { meetings meetings_beside_a_task }

/// Whoever keeps forking is heard: it returns when another thread has taken the second half.
fn meet() {
    let met = AtomicBool::new(false);
    let fork = || {
        while !met.load(SeqCst) {
            _ = heist::join(thread::yield_now, || ())
        }
    };
    heist::join(fork, || met.store(true, SeqCst));
}

/// The other worker has nothing to do: whatever became of earlier forks, it takes part in the next.
fn meetings(strategy: Strategy) {
    let pool = pool(strategy, 2);
    pool.install(|| {
        for _ in 0..2 {
            heist::join(|| (), || ());
            meet();
        }
    });
    pool.stop();
    exact(&pool);
}

/// Likewise, while one of the others has something else to do.
fn meetings_beside_a_task(strategy: Strategy) {
    let pool = pool(strategy, 3);
    let (end, ended) = mpsc::channel();
    let other = pool.spawn(move || ended.recv().unwrap());
    pool.install(|| {
        heist::join(|| (), || ());
        meet();
    });
    end.send(()).unwrap();
    other.join().unwrap();
    pool.stop();
    exact(&pool);
}
