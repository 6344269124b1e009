//! Runs a workload once to warm up and once to measure.

use std::sync::Arc;
use std::time::Duration;

use heist::Pool;

use crate::case::Case;
use crate::host::{begin, end, now, pin, sleep};
use crate::workloads;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time in nanoseconds.
    pub elapsed: u64,
    /// The number of parts. All of them were done, each once.
    pub parts: u64,
    /// What all parts take on one core, in a unit in which the sizes of a workload can be compared.
    pub units: u64,
    /// The tasks that the pool has completed.
    pub tasks: u64,
    /// The tasks that moved from one worker to another.
    pub moved: u64,
    /// The steals from a worker on the same NUMA node.
    pub near_steals: u64,
    /// The steals from a worker on another NUMA node.
    pub far_steals: u64,
    /// How often workers went to sleep.
    pub parks: u64,
}

/// How long a pool is left alone before the measurement, so that all workers sleep.
pub const REST: Duration = Duration::from_micros(500);

/// The work that is done to warm up is this fraction of the work that is measured.
pub const WARM_UP: u64 = 4;

/// Measures a case.
///
/// # Panics
///
/// Panics if the pool cannot be started, or if not all of the work was done exactly once.
pub fn measure(case: &Case) -> Sample {
    pin(case.placement.main);
    let workers = case.placement.workers.clone();
    // Threads beyond the number of workers take the places of those that wait.
    let place = move |number: usize| {
        if let Some(&core) = workers.get(number) {
            pin(core);
        }
    };
    let pool = Pool::builder()
        .workers(case.workers())
        .strategy(case.strategy.of_heist())
        .on_thread_start(place)
        .build()
        .expect("a pool that can be started");
    let pool = Arc::new(pool);
    workloads::run(&Case { span: case.span / WARM_UP, ..case.clone() }, &pool);
    sleep(REST);
    let before = pool.stats().total;
    begin();
    let start = now();
    let done = workloads::run(case, &pool);
    let elapsed = now() - start;
    end();
    let after = pool.stats().total;
    pool.stop();
    assert_eq!(done.parts, done.all, "verification failed: not all parts were done once");
    Sample {
        elapsed,
        parts: done.parts,
        units: done.units,
        tasks: after.tasks_completed - before.tasks_completed,
        moved: after.tasks_moved - before.tasks_moved,
        near_steals: after.near_steals - before.near_steals,
        far_steals: after.far_steals - before.far_steals,
        parks: after.parks - before.parks,
    }
}
