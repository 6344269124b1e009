//! A million leaves under nodes of ten: the sum of their numbers.

use std::hint::black_box;

use harness::metric::{self, Metric};
use harness::row::Row;

use super::{Case, Fork, Program, expect};

const LEAVES: u64 = if cfg!(test) { 1_000 } else { 1_000_000 };

const CHILDREN: u64 = 10;

/// One takes a few milliseconds.
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

    fn run<F: Fork>(self, hand: &mut F::Hand<'_>, (): &mut ()) -> u64 {
        (0..PASSES).map(|_| sum::<F>(hand, 0, black_box(LEAVES))).sum()
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

/// Over so many leaves from this number.
fn sum<F: Fork>(hand: &mut F::Hand<'_>, first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    children::<F>(hand, first, leaves / CHILDREN, CHILDREN)
}

/// Over so many children with so many leaves each, by halves.
fn children<F: Fork>(hand: &mut F::Hand<'_>, first: u64, leaves: u64, count: u64) -> u64 {
    if count == 1 {
        return sum::<F>(hand, first, leaves);
    }
    let half = count / 2;
    let (a, b) = F::join(
        hand,
        move |hand| children::<F>(hand, first, leaves, half),
        move |hand| children::<F>(hand, first + half * leaves, leaves, count - half),
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
