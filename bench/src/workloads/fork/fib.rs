//! Fibonacci numbers by their definition: a join at every call, and nothing else to do.

use std::hint::black_box;
use std::time::Instant;

use harness::item::forget_memory;
use harness::metric;
use harness::row::{Row, Sample};

use super::{Case, Fork, Program, expect};

/// 24 million joins.
const N: u64 = if cfg!(test) { 12 } else { 36 };

const RESULT: u64 = if cfg!(test) { 144 } else { 14_930_352 };

/// As many as there are calls with an argument above 1: one less than the number that follows.
const JOINS: u64 = if cfg!(test) { 232 } else { 24_157_816 };

const TWO_CALLS: &str = "two-calls";

const BY_MOVE: Case<Fib> = Case {
    workload: "fib",
    name: "",
    title: "closures by move",
    metric: &metric::JOIN,
    program: Fib::ByMove,
    limits: &[
        (1, "rayon", 0.29),
        (1, "chili", 0.68),
        (1, TWO_CALLS, 1.1),
        (2, "rayon", 0.29),
        (2, "chili", 0.7),
        (2, "plain", 1.0),
    ],
    efficiency: Some(0.93),
};

const GENERIC: Case<Fib> = Case {
    workload: "fib-generic",
    name: "",
    title: "closures by move, one program for all",
    metric: &metric::JOIN,
    program: Fib::Generic,
    limits: &[],
    efficiency: None,
};

const BY_REFERENCE: Case<Fib> = Case {
    workload: "fib-ref",
    name: "",
    title: "closures by reference",
    metric: &metric::JOIN,
    program: Fib::ByReference,
    limits: &[(1, "rayon", 0.36)],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = BY_MOVE.rows();
    rows.extend(BY_REFERENCE.rows());
    rows.extend(GENERIC.rows());
    rows.iter_mut().for_each(|row| row.enter_sequential(TWO_CALLS, measure_two_calls));
    rows
}

/// The case by itself, for whoever asks what something else costs.
pub(crate) fn measure<F: Fork>(workers: usize) -> Sample {
    super::measure::<F, _>(BY_MOVE.program, workers)
}

/// How it is written.
#[derive(Clone, Copy)]
enum Fib {
    /// For each library by itself. Each closure holds the number.
    ByMove,
    /// The same, once for all.
    Generic,
    /// Once for all. Each closure holds a reference to the number, as most that one writes do.
    ByReference,
}

impl Program for Fib {
    type Input = ();

    fn input(self) {}

    fn run<F: Fork>(self, hand: &mut F::Hand<'_>, (): &mut ()) -> u64 {
        let n = black_box(N);
        match self {
            Self::ByMove => F::fib(hand, n),
            Self::Generic => by_move::<F>(hand, n),
            Self::ByReference => by_reference::<F>(hand, n),
        }
    }

    fn check(self, by: &str, (): &(), found: u64) {
        expect(by, found, RESULT);
    }

    fn operations(self) -> u64 {
        JOINS
    }
}

fn by_move<F: Fork>(hand: &mut F::Hand<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) =
        F::join(hand, move |hand| by_move::<F>(hand, n - 1), move |hand| by_move::<F>(hand, n - 2));
    a + b
}

fn by_reference<F: Fork>(hand: &mut F::Hand<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) =
        F::join(hand, |hand| by_reference::<F>(hand, n - 1), |hand| by_reference::<F>(hand, n - 2));
    a + b
}

fn measure_two_calls() -> Sample {
    let start = Instant::now();
    let found = two_calls(black_box(N));
    let time = start.elapsed();
    expect(TWO_CALLS, found, RESULT);
    Sample::new(time, JOINS)
}

/// What a join can hope for: left to itself, the compiler turns one of the calls into a loop and
/// unrolls the other, neither of which it can do across a join.
#[inline(never)]
fn two_calls(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let sum = two_calls(n - 1) + two_calls(n - 2);
    // Something to do after the second call: then it is not the last thing, and stays a call.
    forget_memory();
    sum
}
