//! The simplest loop: a sum of few and of many numbers, called from outside the pool and from inside.

use std::hint::black_box;

use rayon::prelude::*;

use super::{Case, Run, batch};
use harness::random::numbers;

pub(super) fn cases() -> Vec<Case> {
    let title = |length: &str, place| format!("par_iter().map().sum() of {length} u64, {place}");
    let (outside, inside) = ("from outside", "in a worker");
    vec![
        Case::outside("sum/outside/1e3", title("1,000", outside), |_| sum(1_000, 100)),
        Case::outside("sum/outside/1e4", title("10,000", outside), |_| sum(10_000, 50)),
        Case::outside("sum/outside/1e5", title("100,000", outside), |_| sum(100_000, 20)),
        Case::outside("sum/outside/1e6", title("1,000,000", outside), |_| sum(1_000_000, 2)),
        Case::outside("sum/outside/1e7", title("10,000,000", outside), |_| sum(10_000_000, 1)),
        Case::inside("sum/inside/1e3", title("1,000", inside), |_| sum(1_000, 2_000)),
        Case::inside("sum/inside/1e4", title("10,000", inside), |_| sum(10_000, 500)),
        Case::inside("sum/inside/1e5", title("100,000", inside), |_| sum(100_000, 50)),
        Case::inside("sum/inside/1e6", title("1,000,000", inside), |_| sum(1_000_000, 2)),
    ]
}

fn sum(length: usize, count: u32) -> Run {
    // Small numbers, whose sum does not overflow.
    let data: Vec<u64> = numbers(length).map(|number| number >> 32).collect();
    let expected = data.iter().map(|&number| cheap(number)).sum::<u64>();
    batch(count, expected, move || {
        black_box(&data).par_iter().map(|&number| cheap(number)).sum::<u64>()
    })
}

fn cheap(number: u64) -> u64 {
    number ^ 0x5555
}
