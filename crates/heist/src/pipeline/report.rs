//! The counts and times of a run.

use std::fmt;
use std::time::Duration;

/// The counts and times of a run.
///
/// ```
/// use heist::pipeline::Pipeline;
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let report = Pipeline::new(0..1000).batch(10).map(|n| n * 2).run(&pool, |_| ())?;
/// assert_eq!((report.items, report.batches), (1000, 100));
/// assert_eq!(report.per_worker.iter().map(|worker| worker.batches).sum::<u64>(), 100);
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Items that came from the source.
    pub items: u64,
    /// Batches that the items were cut into.
    pub batches: u64,
    /// Results that were delivered.
    pub results: u64,
    /// Items that a stage has failed for, and that were left out because of [`Skip`](super::Skip) or
    /// [`DeadLetter`](super::DeadLetter). An item is what the stage before has made: after a
    /// [`flat_map`](super::Pipeline::flat_map), these may be more than those of the source. The items of a batch are counted
    /// when all of it has been processed, so that a batch that fails or is discarded does not count.
    pub skipped: u64,
    /// Calls that were repeated because of [`Retry`](super::Retry), in the batches that count for `skipped`.
    pub retried: u64,
    /// Batches that a worker took from the queue of another worker.
    pub steals: u64,
    /// The largest number of batches that were in flight at once: taken from the source, with results that
    /// were not yet delivered.
    pub largest_in_flight: usize,
    /// The largest weight that was in flight at once. It is zero without [`weigh`](super::Pipeline::weigh).
    pub largest_weight: u64,
    /// How long the source had to wait, because the bound of what may be in flight was reached.
    pub source_waited: Duration,
    /// The time from the start to the end of the run, or until now.
    pub elapsed: Duration,
    /// The counts and times of each worker.
    pub per_worker: Vec<WorkerReport>,
}

/// The counts and times of one worker in a run.
///
/// ```
/// use heist::pipeline::Pipeline;
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let report = Pipeline::new(0..100).batch(10).run(&pool, |_| ())?;
/// assert_eq!(report.per_worker[0].batches, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Batches that the worker processed.
    pub batches: u64,
    /// Batches that the worker took from the queues of others. It processed them, or another worker took them
    /// from it.
    pub steals: u64,
    /// How long the worker processed batches, without the pauses before repeated calls.
    pub busy: Duration,
    /// How long the worker did not process batches.
    pub waited: Duration,
}

impl Report {
    /// Returns how evenly the work was spread: the mean of the workers' busy times divided by the longest
    /// one. A value of 1 is perfectly even.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let report = Pipeline::new(0..100).run(&pool, |_| ())?;
    /// assert_eq!(report.balance(), 1.0); // one worker
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn balance(&self) -> f64 {
        let busy = || self.per_worker.iter().map(|worker| worker.busy.as_secs_f64());
        let longest = busy().fold(0.0, f64::max);
        if longest == 0.0 {
            1.0
        } else {
            busy().sum::<f64>() / self.per_worker.len() as f64 / longest
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} items in {} batches, {:.1?}; {} stolen, at most {} in flight, source waited {:.1?}",
            self.items,
            self.batches,
            self.elapsed,
            self.steals,
            self.largest_in_flight,
            self.source_waited
        )?;
        if (self.skipped, self.retried) != (0, 0) {
            writeln!(f, "  {} items skipped, {} calls repeated", self.skipped, self.retried)?;
        }
        for (number, worker) in self.per_worker.iter().enumerate() {
            writeln!(
                f,
                "  worker {number:>3}: {:>8} batches ({} stolen), busy {:.1?}, waited {:.1?}",
                worker.batches, worker.steals, worker.busy, worker.waited
            )?;
        }
        Ok(())
    }
}
