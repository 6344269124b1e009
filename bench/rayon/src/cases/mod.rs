//! The cases and their targets.

mod apps;
mod chunks;
mod idle;
mod joins;
mod latency;
mod sorts;
mod spawn;
mod strings;
mod sum;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use harness::metric::{self, Metric};
use harness::random::mix;

/// A run: verifies the result, and returns the nanoseconds that it took.
pub(crate) type Run = Box<dyn FnMut() -> f64 + Send>;

/// What a case needs to know to prepare its runs.
pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// About how long the whole measurement takes.
    pub(crate) time: Duration,
}

pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) place: Place,
    /// What a run returns.
    pub(crate) metric: &'static Metric,
    pub(crate) goal: Goal,
    /// Prepares the runs. Called on the main thread, unmeasured.
    pub(crate) prepare: fn(&Plan) -> Run,
}

/// Which thread calls the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The main thread.
    Outside,
    /// A worker of the pool, which runs all of them without leaving the pool.
    Inside,
}

/// An upper limit that was fixed before the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// A limit of the median of the rounds' ratios.
    Ratio(f64),
    /// A limit of the median: that of the other program plus this value.
    Floor(f64),
}

/// The limit of cases in which nothing can be gained: they must not be slower.
const NO_WORSE: f64 = 1.05;

/// The limit of cases that measure only the cost of a join.
const CHEAP_JOINS: f64 = 0.4;

/// The limit of calls from outside the pool.
const SOONER: f64 = 0.9;

/// The limit of the geometric mean of the ratios of all cases that measure a time.
pub(crate) const MEAN: f64 = 0.8;

impl Case {
    fn outside(id: &'static str, title: impl Into<String>, prepare: fn(&Plan) -> Run) -> Self {
        let goal = Goal::Ratio(NO_WORSE);
        let (place, metric) = (Place::Outside, &metric::TIME);
        Self { id, title: title.into(), place, metric, goal, prepare }
    }

    fn inside(id: &'static str, title: impl Into<String>, prepare: fn(&Plan) -> Run) -> Self {
        Self { place: Place::Inside, ..Self::outside(id, title, prepare) }
    }

    fn at_most(self, ratio: f64) -> Self {
        Self { goal: Goal::Ratio(ratio), ..self }
    }
}

/// Returns every case, in the order of the tables.
pub(crate) fn all() -> Vec<Case> {
    let groups = [
        sum::cases(),
        chunks::cases(),
        joins::cases(),
        sorts::cases(),
        apps::cases(),
        strings::cases(),
        spawn::cases(),
        latency::cases(),
        idle::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns the names of the cases, their targets, and what they are.
pub(crate) fn list() -> String {
    let line = |case: Case| {
        let goal = match case.goal {
            Goal::Ratio(ratio) => format!("{ratio:.2}"),
            Goal::Floor(floor) => format!("+{:.2}", floor / metric::CPU.unit),
        };
        format!("{:<20} {goal:>5}  {}\n", case.id, case.title)
    };
    all().into_iter().map(line).collect()
}

/// Returns the result of the work, and the nanoseconds that it took.
fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let found = work();
    (found, start.elapsed().as_nanos() as f64)
}

/// Returns a run that calls `run` `count` times and takes the mean, for calls that are too short for the clock or too
/// many to keep them all.
fn batch<R: PartialEq + Debug + Send + 'static>(
    count: u32,
    expected: R,
    mut run: impl FnMut() -> R + Send + 'static,
) -> Run {
    Box::new(move || {
        let all = || (0..count).for_each(|_| assert_eq!(run(), expected, "wrong result"));
        timed(all).1 / f64::from(count)
    })
}

/// Returns a run that changes a copy of the input into what is expected. Copying and comparing are not measured.
fn on_a_copy<T: Copy + PartialEq + Send + 'static>(
    input: Vec<T>,
    expected: Vec<T>,
    mut run: impl FnMut(&mut [T]) + Send + 'static,
) -> Run {
    let mut copy = input.clone();
    Box::new(move || {
        copy.copy_from_slice(&input);
        let ((), time) = timed(|| run(&mut copy));
        assert!(copy == expected, "wrong result");
        time
    })
}

/// Works for a few nanoseconds a turn. Each turn depends on the one before.
fn chain(seed: u64, turns: u32) -> u64 {
    (0..turns).fold(seed, |value, _| mix(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().into_iter().map(|case| case.id).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_case_is_listed() {
        assert_eq!(list().lines().count(), all().len());
    }

    #[test]
    #[should_panic = "wrong result"]
    fn a_wrong_result_is_noticed() {
        batch(2, 1, || 2)();
    }

    #[test]
    #[should_panic = "wrong result"]
    fn a_wrong_order_is_noticed() {
        on_a_copy(vec![2, 1], vec![1, 2], |_| ())();
    }
}
