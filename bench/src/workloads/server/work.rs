//! Work of a known duration, whose result is known without doing it.

use std::hint::black_box;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use harness::stats::percentile;

/// The linear congruential generator of Knuth's MMIX. Every turn needs the result of the one before.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const SUMMAND: u64 = 1_442_695_040_888_963_407;

/// Turns of a trial: long enough that reading the clock does not matter, short enough to fit between two interrupts.
const TRIAL: u64 = 100_000;

/// The number of trials on each processor. The processors are busy at the same time for most of them.
const TRIALS: usize = 50;

/// Works for this number of turns.
#[inline(never)]
pub(super) fn work(seed: u64, turns: u64) -> u64 {
    // A compiler that knew the factor would do several turns at once, as `result` does.
    let factor = black_box(FACTOR);
    let mut state = seed;
    for _ in 0..turns {
        state = state.wrapping_mul(factor).wrapping_add(SUMMAND);
    }
    state
}

/// Returns the result of [`work`] in a few steps: two equal sequences of turns are one with another factor and
/// another summand.
pub(super) fn result(seed: u64, turns: u64) -> u64 {
    let (mut factor, mut summand) = (FACTOR, SUMMAND);
    let (mut state, mut left) = (seed, turns);
    while left > 0 {
        if left % 2 == 1 {
            state = state.wrapping_mul(factor).wrapping_add(summand);
        }
        summand = summand.wrapping_mul(factor).wrapping_add(summand);
        factor = factor.wrapping_mul(factor);
        left /= 2;
    }
    state
}

/// How long a turn takes while all processors work.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    nanoseconds_per_turn: f64,
}

impl Pace {
    /// Returns the pace of this machine with this many processors at work, which is measured once in a program.
    pub(super) fn calibrated(processors: usize) -> Self {
        static PACE: OnceLock<Pace> = OnceLock::new();
        *PACE.get_or_init(|| Self::calibrate(processors))
    }

    fn calibrate(processors: usize) -> Self {
        let start = Barrier::new(processors);
        let trials = || {
            start.wait();
            (0..TRIALS).map(trial).collect::<Vec<_>>()
        };
        let mut times: Vec<f64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..processors).map(|_| scope.spawn(trials)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Vec<f64>>| thread.join();
            threads.into_iter().flat_map(|thread| join(thread).expect("no trial panics")).collect()
        });
        Self { nanoseconds_per_turn: percentile(&mut times, 0.5) / TRIAL as f64 }
    }

    /// Returns the number of turns that take this long.
    pub(super) fn turns(self, time: Duration) -> u64 {
        (time.as_nanos() as f64 / self.nanoseconds_per_turn).round().max(1.0) as u64
    }
}

fn trial(number: usize) -> f64 {
    let start = Instant::now();
    black_box(work(black_box(number as u64), TRIAL));
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_known_without_the_work() {
        for turns in [0, 1, 2, 3, 7, 64, 1_000, 12_345] {
            for seed in [0, 1, u64::MAX] {
                assert_eq!(result(seed, turns), work(seed, turns), "{seed}, {turns} turns");
            }
        }
    }

    #[test]
    fn longer_work_has_more_turns() {
        let pace = Pace { nanoseconds_per_turn: 1.25 };
        assert_eq!(pace.turns(Duration::from_micros(50)), 40_000);
        assert_eq!(pace.turns(Duration::ZERO), 1);
    }
}
