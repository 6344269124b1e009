//! Joins with nearly no other work: the cost of a join.

use std::hint::black_box;

use rayon::join;

use super::{CHEAP_JOINS, Case, Run, batch};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::inside("join/fib", "fib(30), a join in every call", |_| {
            batch(1, 832_040, || fib(black_box(30)))
        })
        .at_most(CHEAP_JOINS),
        Case::inside("join/tree", "sum of a balanced tree, 2^20 - 1 nodes", |_| tree())
            .at_most(CHEAP_JOINS),
        Case::inside("join/flat", "100,000 joins one after the other", |_| {
            batch(1, u64::from(FLAT) * u64::from(FLAT), flat)
        }),
    ]
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

struct Node {
    value: u64,
    children: Option<Box<[Node; 2]>>,
}

impl Node {
    fn with_levels(levels: u32) -> Self {
        let below = || Self::with_levels(levels - 1);
        let children = (levels > 1).then(|| Box::new([below(), below()]));
        Self { value: levels.into(), children }
    }

    fn sum(&self) -> u64 {
        let Some([left, right]) = self.children.as_deref() else {
            return self.value;
        };
        let (left, right) = join(|| left.sum(), || right.sum());
        self.value + left + right
    }
}

fn tree() -> Run {
    const LEVELS: u32 = 20;
    let root = Node::with_levels(LEVELS);
    // Level by level; each level has twice as many nodes as the one above.
    let expected = (1..=LEVELS).map(|level| u64::from(level) << (LEVELS - level)).sum::<u64>();
    batch(1, expected, move || black_box(&root).sum())
}

const FLAT: u32 = 100_000;

/// Returns the sum of the odd numbers, which is a square.
fn flat() -> u64 {
    let mut sum = 0;
    for turn in 0..u64::from(FLAT) {
        let (a, b) = join(|| black_box(turn), || black_box(turn + 1));
        sum += a + b;
    }
    sum
}
