//! What is measured, and what we want to see.

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

use crate::random::mix;

/// A run: verifies what comes out, and returns the nanoseconds that it took.
pub(crate) type Run = Box<dyn FnMut() -> f64 + Send>;

/// What a case may want to know.
pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// How long the whole measurement takes, about.
    pub(crate) time: Duration,
}

pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) place: Place,
    pub(crate) unit: Unit,
    pub(crate) goal: Goal,
    /// Called on the main thread, unmeasured.
    pub(crate) prepare: fn(&Plan) -> Run,
}

/// Who calls the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The main thread.
    Outside,
    /// A worker of the pool, which runs all of them in one go.
    Inside,
}

/// What a run returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    /// In a second. Of these there is one run, without any before it.
    CpuMillis,
}

impl Unit {
    /// Its name in the JSON.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::CpuMillis => "cpu_milliseconds_per_second",
        }
    }
}

/// An upper limit, fixed before the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// Of the median of the rounds' ratios.
    Ratio(f64),
    /// Of the median: that of the other and this much more.
    Floor(f64),
}

/// Where there is nothing to win, there is nothing to lose.
const NO_WORSE: f64 = 1.05;

/// What a join costs is all that is measured.
const CHEAP_JOINS: f64 = 0.4;

/// A call from outside.
const SOONER: f64 = 0.9;

/// Of the geometric mean of the ratios of all cases that have one.
pub(crate) const MEAN: f64 = 0.8;

impl Case {
    fn outside(id: &'static str, title: impl Into<String>, prepare: fn(&Plan) -> Run) -> Self {
        let goal = Goal::Ratio(NO_WORSE);
        let (place, unit) = (Place::Outside, Unit::Nanoseconds);
        Self { id, title: title.into(), place, unit, goal, prepare }
    }

    fn inside(id: &'static str, title: impl Into<String>, prepare: fn(&Plan) -> Run) -> Self {
        Self { place: Place::Inside, ..Self::outside(id, title, prepare) }
    }

    fn at_most(self, ratio: f64) -> Self {
        Self { goal: Goal::Ratio(ratio), ..self }
    }
}

/// Every case, in the order of the tables.
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

/// The names of the cases, their targets, and what they are.
pub(crate) fn list() -> String {
    let line = |case: Case| {
        let goal = match case.goal {
            Goal::Ratio(ratio) => format!("{ratio:.2}"),
            Goal::Floor(floor) => format!("+{floor:.2}"),
        };
        format!("{:<20} {goal:>5}  {}\n", case.id, case.title)
    };
    all().into_iter().map(line).collect()
}

/// What it returns, and the nanoseconds that it took.
fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let found = work();
    (found, start.elapsed().as_nanos() as f64)
}

/// For runs that are too short for the clock, or too many to keep them all: a sample is the mean of
/// so many, one right after the other.
fn batch<R: PartialEq + Debug + Send + 'static>(
    count: u32,
    expected: R,
    mut run: impl FnMut() -> R + Send + 'static,
) -> Run {
    Box::new(move || {
        let all = || (0..count).for_each(|_| assert_eq!(run(), expected, "a wrong result"));
        timed(all).1 / f64::from(count)
    })
}

/// A run changes a copy of the input into what is expected; copying and comparing are not measured.
fn on_a_copy<T: Copy + PartialEq + Send + 'static>(
    input: Vec<T>,
    expected: Vec<T>,
    mut run: impl FnMut(&mut [T]) + Send + 'static,
) -> Run {
    let mut copy = input.clone();
    Box::new(move || {
        copy.copy_from_slice(&input);
        let ((), time) = timed(|| run(&mut copy));
        assert!(copy == expected, "a wrong result");
        time
    })
}

/// Work of a few nanoseconds a turn, each of which needs the one before.
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
    #[should_panic = "a wrong result"]
    fn a_wrong_result_is_noticed() {
        batch(2, 1, || 2)();
    }

    #[test]
    #[should_panic = "a wrong result"]
    fn a_wrong_order_is_noticed() {
        on_a_copy(vec![2, 1], vec![1, 2], |_| ())();
    }
}
