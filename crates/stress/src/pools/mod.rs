//! Pools of every strategy under load.

mod known_sums;
mod task_log;
mod task_trees;

use std::thread;

use heist::Strategy;

use crate::{Error, Monitor, Size, Subject, random};
use known_sums::KnownSums;
pub(crate) use task_trees::TaskTrees;

/// Runs the same work on every strategy with one to four workers, then a case with everything that tasks can have, then random
/// cases.
pub(crate) fn run(seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    let max_workers = thread::available_parallelism().map_or(1, usize::from).min(4);
    for strategy in Strategy::ALL {
        for workers in 1..=max_workers {
            let case = KnownSums { strategy, workers, rounds: size.choose(4, 40) };
            monitor.report(&case.run()?);
        }
    }
    for strategy in Strategy::ALL {
        let case = TaskTrees::with_everything(strategy, 20_000);
        let tasks = monitor.watch(&case, || case.run())?;
        monitor.report(&format!("{strategy}, {tasks} tasks with everything that they can have"));
    }
    random::run_some(Subject::Pools, seed, size, monitor)
}
