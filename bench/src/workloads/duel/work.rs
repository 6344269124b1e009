//! The tasks of a duel. Every task counts itself on the board, which verifies that each has run once.

use harness::pause::Pause;
use harness::random::mix;
use harness::row::Sample;

use harness::board::{Board, Lap};

use crate::peers::{Pool, kept};

/// The number of tasks of each kind of work.
const UNIFORM: u64 = if cfg!(test) { 500 } else { 50_000 };
const SKEWED: u64 = if cfg!(test) { 100 } else { 8_000 };
const TREE: u64 = if cfg!(test) { 500 } else { 100_000 };

/// The duration of an equal task in tenths of a microsecond.
const MICROSECOND: u64 = 10;
const NODE: u64 = 3;

/// The ratio of the longest unequal task to the shortest.
const SKEW: u64 = 1_000;

#[derive(Clone, Copy)]
pub(super) enum Work {
    /// Tasks of one microsecond, spawned by a thread outside.
    Uniform,
    /// Tasks of one to a thousand microseconds, spawned by one task: one worker has all of them, and the others
    /// have what they steal.
    Skewed,
    /// Every task spawns two, until all numbers are used.
    Tree,
}

impl Work {
    pub(super) const ALL: [Self; 3] = [Self::Uniform, Self::Skewed, Self::Tree];

    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Skewed => "skewed",
            Self::Tree => "tree",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Uniform => "50,000 tasks of 1 µs from outside",
            Self::Skewed => "8,000 tasks of 1 µs to 1 ms by one task",
            Self::Tree => "100,000 tasks of 0.3 µs, each spawns two",
        }
    }

    /// Measures until the last task has run.
    pub(super) fn measure<P: Pool>(self, workers: usize) -> Sample {
        match self {
            Self::Uniform => uniform::<P>(workers),
            Self::Skewed => lap::<P>(workers, SKEWED, |pool| {
                pool.spawn(move || {
                    (1..SKEWED).for_each(|index| pool.spawn(move || run(index, skewed(index))));
                    run(0, skewed(0));
                });
            }),
            Self::Tree => lap::<P>(workers, TREE, |pool| pool.spawn(move || grow(pool, 0))),
        }
    }
}

/// See [`Work::Uniform`].
pub(crate) fn uniform<P: Pool>(workers: usize) -> Sample {
    lap::<P>(workers, UNIFORM, |pool| {
        (0..UNIFORM).for_each(|index| pool.spawn(move || run(index, MICROSECOND)));
    })
}

fn lap<P: Pool>(workers: usize, tasks: u64, start: impl FnOnce(&'static P)) -> Sample {
    let pool = kept::pool::<P>(workers);
    // Calibrated before the clock starts.
    Pause::calibrated();
    let lap = Lap::begin();
    start(pool);
    Sample::new(lap.wait(P::NAME, tasks).time, tasks)
}

/// Runs the task of this number, which takes this many tenths of a microsecond.
fn run(index: u64, tenths: u64) {
    let pause = Pause::calibrated();
    (0..tenths).for_each(|_| pause.work());
    Board::get().tick(index);
}

/// Returns the duration of the unequal task of this number. One in a thousand takes a millisecond, two take half of
/// that or more, three a third or more, and so on: about half of the total time goes to one task in thirty.
fn skewed(index: u64) -> u64 {
    MICROSECOND * (SKEW / (1 + mix(index) % SKEW))
}

/// Children are numbered as in a binary heap, so that every number has one parent.
fn grow<P: Pool>(pool: &'static P, index: u64) {
    for child in [2 * index + 1, 2 * index + 2] {
        if child < TREE {
            pool.spawn(move || grow(pool, child));
        }
    }
    run(index, NODE);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the total duration with the number of tasks of a real run.
    #[test]
    fn a_few_unequal_tasks_take_half_of_the_time() {
        let mut times: Vec<u64> = (0..8_000).map(skewed).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = times.iter().sum();
        let largest: u64 = times.iter().take(8_000 / 30).sum();
        assert_eq!((times[0], times[7_999]), (1_000 * MICROSECOND, MICROSECOND));
        assert!((45..=55).contains(&(largest * 100 / all)), "{largest} of {all}");
        // About 55 ms on one processor.
        assert!((500_000..600_000).contains(&all), "{all}");
    }
}
