//! A program of joins, scopes, loops and sorts that forks at every step, and whose result is known.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use heist::{Pool, Strategy, parallel};

use crate::{Error, Violation};

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownResults {
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    pub(super) size_factor: u64,
    /// What a pool with one worker has computed.
    pub(super) expected: u64,
}

/// Joins at every call.
fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

/// Counts the compositions of `n`, the ways to write it as an ordered sum of positive numbers: there are
/// 2^(n - 1). Opens a scope for every remainder, with one part for each first summand.
fn count_compositions(n: u32, count: &AtomicU64) {
    heist::scope(|scope| {
        for first in 1..n {
            scope.spawn(move |_| count_compositions(n - first, count));
        }
    });
    count.fetch_add(1, Ordering::Relaxed);
}

/// Returns `count` different numbers, shuffled by a multiplication.
fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    parallel::for_each(&mut numbers, |n| *n = n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    numbers
}

/// Sorts and maps numbers, and returns how many of their bits are set.
fn count_bits(count: u64) -> u64 {
    let mut numbers = shuffled(count);
    parallel::sort_unstable(&mut numbers);
    assert!(numbers.is_sorted(), "sort_unstable left the numbers out of order");
    let mut reversed = parallel::map(&numbers, |n| n.reverse_bits());
    parallel::sort(&mut reversed);
    let bits = |sum: u64, n: &u64| sum + u64::from(n.count_ones());
    parallel::reduce(&reversed, || 0, bits, |a, b| a + b)
}

/// Runs the program, and returns the sum of its results.
pub(super) fn work(size_factor: u64) -> u64 {
    let compositions = AtomicU64::new(0);
    let numbers = || fibonacci(20 + u64::from(size_factor.ilog2()));
    let others = || {
        count_compositions(12, &compositions);
        count_bits(20_000 * size_factor)
    };
    let (fibonacci, bits) = heist::isolate(|| heist::join(numbers, others));
    fibonacci + bits + compositions.into_inner()
}

impl KnownResults {
    /// Runs the case, and returns a line about what the pool did.
    pub(super) fn run(&self) -> Result<String, Error> {
        let pool = Pool::builder().workers(self.workers).strategy(self.strategy).build()?;
        let start = Instant::now();
        let result = pool.install(|| work(self.size_factor));
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        pool.stop();
        let total = pool.stats().total;
        if result != self.expected {
            return Err(Violation::Result(format!("the result is {result}")).in_case(self));
        }
        if total.tasks_submitted != total.tasks_completed {
            let text = format!("the counters do not add up: {total:?}");
            return Err(Violation::Counters(text).in_case(self));
        }
        Ok(format!(
            "{}, workers: {}: {} published, {} stolen, {} parks, {milliseconds:.1} ms",
            self.strategy, self.workers, total.publications, total.successful_steals, total.parks,
        ))
    }
}
