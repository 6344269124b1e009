//! Fibonacci numbers by their definition: a join in every call, and no other work.

use std::hint::black_box;
use std::time::Instant;

use harness::item::forget_memory;
use harness::metric;
use harness::row::{Row, Sample};

use super::{Case, Fork, Program, expect};

/// 24 million joins.
const N: u64 = if cfg!(test) { 12 } else { 36 };

const RESULT: u64 = if cfg!(test) { 144 } else { 14_930_352 };

/// The number of calls with an argument above 1: one less than the Fibonacci number that follows.
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

/// Measures the case alone, for other workloads that measure an additional cost.
pub(crate) fn measure<F: Fork>(workers: usize) -> Sample {
    super::measure::<F, _>(BY_MOVE.program, workers)
}

/// How the program is written.
#[derive(Clone, Copy)]
enum Fib {
    /// Once for each library. Each closure holds the number.
    ByMove,
    /// Once, generic over the library. Each closure holds the number.
    Generic,
    /// Once, generic over the library. Each closure holds a reference to the number, as most closures in programs
    /// do.
    ByReference,
}

impl Program for Fib {
    type Input = ();

    fn input(self) {}

    fn run<F: Fork>(self, context: &mut F::Context<'_>, (): &mut ()) -> u64 {
        let n = black_box(N);
        match self {
            Self::ByMove => F::fib(context, n),
            Self::Generic => by_move::<F>(context, n),
            Self::ByReference => by_reference::<F>(context, n),
        }
    }

    fn check(self, by: &str, (): &(), found: u64) {
        expect(by, found, RESULT);
    }

    fn operations(self) -> u64 {
        JOINS
    }
}

fn by_move<F: Fork>(context: &mut F::Context<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = F::join(
        context,
        move |context| by_move::<F>(context, n - 1),
        move |context| by_move::<F>(context, n - 2),
    );
    a + b
}

fn by_reference<F: Fork>(context: &mut F::Context<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = F::join(
        context,
        |context| by_reference::<F>(context, n - 1),
        |context| by_reference::<F>(context, n - 2),
    );
    a + b
}

fn measure_two_calls() -> Sample {
    let start = Instant::now();
    let found = two_calls(black_box(N));
    let time = start.elapsed();
    expect(TWO_CALLS, found, RESULT);
    Sample::new(time, JOINS)
}

/// The best that a join could reach. Without a join, the compiler turns one of the calls into a loop and unrolls
/// the other, neither of which it can do across a join.
#[inline(never)]
fn two_calls(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let sum = two_calls(n - 1) + two_calls(n - 2);
    // Work after the second call keeps it from being a tail call, so that it stays a call.
    forget_memory();
    sum
}
