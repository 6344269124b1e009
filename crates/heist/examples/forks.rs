//! Forks at every step: what a program of joins, scopes and parallel loops does on one worker and on
//! several, side by side.
//!
//! A fork that nobody takes part in costs about as much as two calls; `offered` counts those that were put where
//! others could take them, `stolen` those that were. Every result is known beforehand. `--quick` does
//! a tenth. The times are those of one run: for comparisons, see the benchmark.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use heist::{BuildError, Pool, Strategy, parallel};

/// A join at every call.
fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

/// A scope for every number above one: a part for each way to begin. How many ways there are to write it as
/// a sum of smaller numbers in order: two to the power of one less.
fn compositions(n: u32, count: &AtomicU64) {
    heist::scope(|scope| {
        for first in 1..n {
            scope.spawn(move |_| compositions(n - first, count));
        }
    });
    count.fetch_add(1, Ordering::Relaxed);
}

/// Many small steps, all different, in no order that one could see.
fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    parallel::for_each(&mut numbers, |n| *n = n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    numbers
}

/// Sorts, maps and adds up. The sum of the bits that are set.
fn numbers(count: u64) -> u64 {
    let mut numbers = shuffled(count);
    parallel::sort_unstable(&mut numbers);
    assert!(numbers.is_sorted(), "sorted wrongly");
    let mut reversed = parallel::map(&numbers, |n| n.reverse_bits());
    parallel::sort(&mut reversed);
    let bits = |sum: u64, n: &u64| sum + u64::from(n.count_ones());
    parallel::reduce(&reversed, || 0, bits, |a, b| a + b)
}

/// All of it, as one number.
fn work(size: u64) -> u64 {
    let count = AtomicU64::new(0);
    let fork = || fibonacci(20 + size.ilog2() as u64);
    let others = || {
        compositions(12, &count);
        numbers(20_000 * size)
    };
    // A lock could be held in here: its waits run nothing from outside.
    let (fibonacci, bits) = heist::isolate(|| heist::join(fork, others));
    fibonacci + bits + count.into_inner()
}

fn report(
    strategy: Strategy,
    workers: usize,
    size: u64,
    expected: u64,
) -> Result<bool, BuildError> {
    let pool = Pool::builder().workers(workers).strategy(strategy).build()?;
    let start = Instant::now();
    let result = pool.install(|| work(size));
    let time = start.elapsed().as_secs_f64() * 1e3;
    pool.stop();
    let stats = pool.stats();
    let right = result == expected && stats.total.tasks_submitted == stats.total.tasks_completed;
    println!(
        "{strategy:<14} {workers:>7} {time:>7.1} {:>9} {:>7} {:>7}  {}",
        stats.total.publications,
        stats.total.successful_steals,
        stats.total.parks,
        if right { "right" } else { "WRONG" },
    );
    Ok(right)
}

fn main() -> ExitCode {
    let size = if std::env::args().any(|argument| argument == "--quick") { 1 } else { 10 };
    let Ok(alone) = Pool::builder().workers(1).build() else { return ExitCode::FAILURE };
    let expected = alone.install(|| work(size));
    println!("strategy       workers      ms   offered  stolen   parks  result");
    let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let mut all_right = true;
    for strategy in Strategy::ALL {
        for workers in [1, cores] {
            match report(strategy, workers, size, expected) {
                Ok(right) => all_right &= right,
                Err(error) => {
                    eprintln!("forks: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
