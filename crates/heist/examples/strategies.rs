//! The same work on every strategy, with what it took, side by side.
//!
//! A tree of tasks that split and wait for their halves, a burst from threads outside of the pool,
//! and a batch. Every sum is known beforehand, and so is the number of tasks. `--quick` does a
//! tenth. The times are those of one run: to compare strategies in earnest, see the benchmark.

use std::hint::black_box;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use heist::{BuildError, Pool, Stats, Strategy};

/// Tasks of one round: of the tree,
const TREE: u64 = 5_000;
/// of each thread outside,
const BURST: u64 = 2_000;
/// and of the batch.
const BATCH: u64 = 4_000;

/// How many threads submit from outside.
const OUTSIDERS: u64 = 2;
/// How many numbers a leaf of the tree adds up by itself.
const LEAF: u64 = 500;

/// How often all of it is done. Between two rounds the pool runs dry.
#[derive(Clone, Copy)]
struct Rounds(u64);

impl Rounds {
    fn tasks(self) -> u64 {
        self.0 * (TREE + OUTSIDERS * BURST + BATCH)
    }

    /// What all results add up to.
    fn result(self) -> u64 {
        let below = |n: u64| n * (n - 1) / 2;
        self.0 * (below(TREE * LEAF) + below(OUTSIDERS * BURST) + below(BATCH))
    }
}

/// The sum of the numbers of so many leaves, by as many tasks: this one and those that it spawns.
fn tree(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        // One by one: the compiler knows a formula for it.
        return (first * LEAF..(first + 1) * LEAF).map(black_box).sum();
    }
    let half = leaves / 2;
    let left = heist::spawn(move || tree(first, half));
    // This task goes on with the other half itself, and then runs or awaits what it has spawned.
    let right = tree(first + half, leaves - half);
    right + left.join().expect("a tree has no task that fails")
}

/// One of the threads outside: submits all, then waits for all.
fn burst(pool: &Pool, first: u64) -> u64 {
    let handles: Vec<_> = (first..first + BURST).map(|n| pool.spawn(move || n)).collect();
    handles.into_iter().map(|handle| handle.join().expect("a burst has no task that fails")).sum()
}

/// One round: all three at once.
fn round(pool: &Pool) -> u64 {
    thread::scope(|scope| {
        // The handles are kept and joined: a race detector forgets a thread without one.
        let outsiders: Vec<_> =
            (0..OUTSIDERS).map(|n| scope.spawn(move || burst(pool, n * BURST))).collect();
        let root = pool.spawn(|| tree(0, TREE));
        let batch = pool.spawn_batch((0..BATCH).map(|n| move || n));
        let batch: u64 = batch.join().expect("a batch has no task that fails").into_iter().sum();
        let root = root.join().expect("a tree has no task that fails");
        let bursts = outsiders.into_iter().map(|thread| thread.join().expect("nor has a burst"));
        root + batch + bursts.sum::<u64>()
    })
}

/// A row of the table.
struct Row {
    strategy: Strategy,
    workers: usize,
    milliseconds: f64,
    result: u64,
    stats: Stats,
}

impl Row {
    fn new(strategy: Strategy, workers: usize, rounds: Rounds) -> Result<Self, BuildError> {
        let pool = Pool::builder().workers(workers).strategy(strategy).build()?;
        let start = Instant::now();
        let result = (0..rounds.0).map(|_| round(&pool)).sum();
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        // The counters are exact when the pool has stopped.
        pool.stop();
        Ok(Self { strategy, workers, milliseconds, result, stats: pool.stats() })
    }

    fn is_right(&self, rounds: Rounds) -> bool {
        let ends = (self.stats.total.tasks_submitted, self.stats.total.tasks_completed);
        self.result == rounds.result() && ends == (rounds.tasks(), rounds.tasks())
    }

    fn heading() -> String {
        format!(
            "{:<14} {:>7} {:>7} {:>8} {:>7} {:>8} {:>7} {:>8} {:>9}  result",
            "strategy",
            "workers",
            "ms",
            "tasks",
            "steals",
            "moved",
            "parks",
            "wake-ups",
            "contended"
        )
    }

    fn line(&self, rounds: Rounds) -> String {
        let stats = &self.stats;
        format!(
            "{:<14} {:>7} {:>7.1} {:>8} {:>7} {:>8} {:>7} {:>8} {:>9}  {} {}",
            self.strategy,
            self.workers,
            self.milliseconds,
            stats.total.tasks_completed,
            stats.total.successful_steals,
            stats.total.tasks_moved,
            stats.total.parks,
            stats.total.wake_ups_sent,
            stats.total.lock_contention,
            self.result,
            if self.is_right(rounds) { "right" } else { "WRONG" },
        )
    }
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let rounds = Rounds(if quick { 4 } else { 40 });
    let most = thread::available_parallelism().map_or(1, usize::from).min(4);
    println!("a tree, two bursts from outside and a batch: {} tasks", rounds.tasks());
    println!("moved: tasks by steals; contended: locks that were taken when they were wanted\n");
    println!("{}", Row::heading());

    let mut right = true;
    for strategy in Strategy::ALL {
        for workers in 1..=most {
            match Row::new(strategy, workers, rounds) {
                Ok(row) => {
                    println!("{}", row.line(rounds));
                    right &= row.is_right(rounds);
                }
                Err(error) => {
                    eprintln!("error: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }

    if right {
        println!("\nok: every result was right, every task accounted for");
        ExitCode::SUCCESS
    } else {
        eprintln!("error: wrong results or tasks; please report this with the lines above");
        ExitCode::FAILURE
    }
}
