//! `join`, `scope` and `isolate` on pools of every strategy.

mod known_results;
mod trees;

use std::thread;

use heist::{Pool, Strategy};

use crate::{Error, Monitor, Size, Subject, random};
use known_results::KnownResults;
pub(crate) use trees::Trees;

/// Runs the same program on every strategy with one and with several workers, then random cases.
pub(crate) fn run(seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    let size_factor = size.choose(1, 10);
    let expected = {
        let alone = Pool::builder().workers(1).build()?;
        alone.install(|| known_results::work(size_factor))
    };
    let processors = thread::available_parallelism().map_or(2, usize::from).max(2);
    for strategy in Strategy::ALL {
        for workers in [1, processors] {
            let case = KnownResults { strategy, workers, size_factor, expected };
            monitor.report(&case.run()?);
        }
    }
    random::run_some(Subject::Forks, seed, size, monitor)
}
