//! The sum of the numbers of a million leaves, under nodes with ten children each.

use std::hint::black_box;

use harness::metric::{self, Metric};
use harness::row::Row;

use super::{Case, Fork, Program, expect};

const LEAVES: u64 = if cfg!(test) { 1_000 } else { 1_000_000 };

const CHILDREN: u64 = 10;

/// The number of sums in a sample. One takes a few milliseconds.
const PASSES: u64 = if cfg!(test) { 1 } else { 10 };

const SUM: Case<Skynet> = Case {
    workload: "skynet",
    name: "",
    title: "a million leaves",
    metric: &Metric { title: "ns per leaf", ..metric::TIME },
    program: Skynet,
    limits: &[],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    SUM.rows()
}

#[derive(Clone, Copy)]
struct Skynet;

impl Program for Skynet {
    type Input = ();

    fn input(self) {}

    fn run<F: Fork>(self, context: &mut F::Context<'_>, (): &mut ()) -> u64 {
        (0..PASSES).map(|_| sum::<F>(context, 0, black_box(LEAVES))).sum()
    }

    fn plain(self, (): &mut ()) -> u64 {
        (0..PASSES).map(|_| sum_plain(0, black_box(LEAVES))).sum()
    }

    fn check(self, by: &str, (): &(), found: u64) {
        expect(by, found, PASSES * (LEAVES * (LEAVES - 1) / 2));
    }

    fn operations(self) -> u64 {
        PASSES * LEAVES
    }
}

/// Returns the sum over this number of leaves, from this leaf on.
fn sum<F: Fork>(context: &mut F::Context<'_>, first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    children::<F>(context, first, leaves / CHILDREN, CHILDREN)
}

/// Returns the sum over this number of children with this number of leaves each, by halves.
fn children<F: Fork>(context: &mut F::Context<'_>, first: u64, leaves: u64, count: u64) -> u64 {
    if count == 1 {
        return sum::<F>(context, first, leaves);
    }
    let half = count / 2;
    let (a, b) = F::join(
        context,
        move |context| children::<F>(context, first, leaves, half),
        move |context| children::<F>(context, first + half * leaves, leaves, count - half),
    );
    a + b
}

fn sum_plain(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let leaves = leaves / CHILDREN;
    (0..CHILDREN).map(|child| sum_plain(first + child * leaves, leaves)).sum()
}
