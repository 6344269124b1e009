//! Work of which the sum of all results and the number of tasks are known.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use heist::{Pool, Stats, Strategy};

use crate::{Error, Violation};

/// The tasks of the tree in one round.
const TREE: u64 = 5_000;
/// The tasks that each external thread spawns in one round.
const BURST: u64 = 2_000;
/// The tasks of the batch in one round.
const BATCH: u64 = 4_000;

/// How many external threads spawn tasks.
const EXTERNAL_THREADS: u64 = 2;
/// How many numbers a leaf of the tree adds up by itself.
const LEAF: u64 = 500;

/// A case whose rounds each consist of a tree of tasks that split and wait for their halves, a burst of tasks from
/// external threads, and a batch, all at once. The pool runs out of tasks between two rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSums {
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    pub(super) rounds: u64,
}

/// Adds up the numbers of `leaves` leaves with as many tasks: this one and those that it spawns.
fn tree(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        // Without `black_box` the compiler would replace the additions by a formula.
        return (first * LEAF..(first + 1) * LEAF).map(black_box).sum();
    }
    let half = leaves / 2;
    let left = heist::spawn(move || tree(first, half));
    // This task continues with the other half itself, and then runs or awaits the task that it has spawned.
    let right = tree(first + half, leaves - half);
    right + left.join().expect("no task of the tree fails")
}

/// Spawns all tasks of an external thread, then waits for all of them.
fn burst(pool: &Pool, first: u64) -> u64 {
    let handles: Vec<_> = (first..first + BURST).map(|n| pool.spawn(move || n)).collect();
    handles.into_iter().map(|handle| handle.join().expect("no task of a burst fails")).sum()
}

/// Runs one round, and returns the sum of all results.
fn round(pool: &Pool) -> u64 {
    thread::scope(|scope| {
        let bursts: Vec<_> =
            (0..EXTERNAL_THREADS).map(|n| scope.spawn(move || burst(pool, n * BURST))).collect();
        let root = pool.spawn(|| tree(0, TREE));
        let batch = pool.spawn_batch((0..BATCH).map(|n| move || n));
        let batch: u64 = batch.join().expect("no task of the batch fails").into_iter().sum();
        let root = root.join().expect("no task of the tree fails");
        let bursts = bursts.into_iter().map(|thread| thread.join().expect("no burst panics"));
        root + batch + bursts.sum::<u64>()
    })
}

impl KnownSums {
    fn tasks(&self) -> u64 {
        self.rounds * (TREE + EXTERNAL_THREADS * BURST + BATCH)
    }

    /// Returns the expected sum of all results.
    fn sum(&self) -> u64 {
        let sum_below = |n: u64| n * (n - 1) / 2;
        let round = sum_below(TREE * LEAF) + sum_below(EXTERNAL_THREADS * BURST) + sum_below(BATCH);
        self.rounds * round
    }

    /// Runs the case, and returns a line about what the pool did.
    pub(super) fn run(&self) -> Result<String, Error> {
        let pool = Pool::builder().workers(self.workers).strategy(self.strategy).build()?;
        let start = Instant::now();
        let sum = (0..self.rounds).map(|_| round(&pool)).sum();
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        // The counters are exact once the pool has stopped.
        pool.stop();
        let stats = pool.stats();
        self.check(sum, &stats).map_err(|violation| violation.in_case(self))?;
        Ok(self.describe(&stats, milliseconds))
    }

    fn check(&self, sum: u64, stats: &Stats) -> Result<(), Violation> {
        if sum != self.sum() {
            return Err(Violation::Result(format!("the sum is {sum} instead of {}", self.sum())));
        }
        let counted = (stats.total.tasks_submitted, stats.total.tasks_completed);
        if counted != (self.tasks(), self.tasks()) {
            let (tasks, total) = (self.tasks(), &stats.total);
            return Err(Violation::Counters(format!(
                "{tasks} tasks, but the pool counted {total:?}"
            )));
        }
        Ok(())
    }

    fn describe(&self, stats: &Stats, milliseconds: f64) -> String {
        let total = &stats.total;
        format!(
            "{}, workers: {}: {} tasks, {} steals of {} tasks, {} parks, {} wake-ups, {} contended locks, {:.1} ms",
            self.strategy,
            self.workers,
            total.tasks_completed,
            total.successful_steals,
            total.tasks_moved,
            total.parks,
            total.wake_ups_sent,
            total.lock_contention,
            milliseconds,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: KnownSums = KnownSums { strategy: Strategy::ALL[0], workers: 1, rounds: 1 };

    fn stats(submitted: u64, completed: u64) -> Stats {
        let mut stats = Stats::default();
        (stats.total.tasks_submitted, stats.total.tasks_completed) = (submitted, completed);
        stats
    }

    #[test]
    fn a_wrong_sum_is_found() {
        let right = stats(CASE.tasks(), CASE.tasks());
        assert_eq!(CASE.check(CASE.sum(), &right), Ok(()));
        assert!(CASE.check(CASE.sum() + 1, &right).is_err());
    }

    #[test]
    fn a_task_that_is_not_accounted_for_is_found() {
        let tasks = CASE.tasks();
        assert!(CASE.check(CASE.sum(), &stats(tasks, tasks - 1)).is_err());
        assert!(CASE.check(CASE.sum(), &stats(tasks + 1, tasks + 1)).is_err());
    }
}
