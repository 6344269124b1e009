//! The sum over a balanced binary tree, with every node in a box of its own.

use std::hint::black_box;
use std::ops::Range;
use std::sync::LazyLock;

use harness::metric;
use harness::row::Row;

use super::{Case, Fork, Program, expect};

const LEVELS: u32 = if cfg!(test) { 8 } else { 20 };

const NODES: u64 = (1 << LEVELS) - 1;

/// The number of sums in a sample. One takes a few milliseconds.
const PASSES: u64 = if cfg!(test) { 1 } else { 8 };

const SUM: Case<Sum> = Case {
    workload: "tree-sum",
    name: "",
    title: "a million nodes",
    metric: &metric::NODE,
    program: Sum,
    limits: &[],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    SUM.rows()
}

struct Node {
    value: u64,
    children: Option<(Box<Node>, Box<Node>)>,
}

/// The tree is built once, because it is only read. It is built level by level, so that walking it from left to
/// right and from right to left is equally fast in memory: libraries differ in their direction.
static TREE: LazyLock<Box<Node>> = LazyLock::new(|| {
    let node = |value, children| Box::new(Node { value, children });
    let mut level: Vec<_> = numbers(LEVELS - 1).map(|value| node(value, None)).collect();
    for above in (0..LEVELS - 1).rev() {
        let mut below = level.into_iter();
        level = numbers(above).map(|value| node(value, below.next().zip(below.next()))).collect();
    }
    level.pop().expect("the root")
});

/// Returns the numbers of the nodes of a level. They are numbered as in a binary heap.
fn numbers(level: u32) -> Range<u64> {
    1 << level..2 << level
}

#[derive(Clone, Copy)]
struct Sum;

impl Program for Sum {
    type Input = &'static Node;

    fn input(self) -> &'static Node {
        &TREE
    }

    fn run<F: Fork>(self, context: &mut F::Context<'_>, tree: &mut &'static Node) -> u64 {
        (0..PASSES).map(|_| sum::<F>(context, black_box(tree))).sum()
    }

    fn check(self, by: &str, _: &&'static Node, found: u64) {
        expect(by, found, PASSES * (NODES * (NODES + 1) / 2));
    }

    fn operations(self) -> u64 {
        PASSES * NODES
    }
}

fn sum<F: Fork>(context: &mut F::Context<'_>, node: &Node) -> u64 {
    let Some((left, right)) = &node.children else {
        return node.value;
    };
    let (a, b) = F::join(
        context,
        move |context| sum::<F>(context, left),
        move |context| sum::<F>(context, right),
    );
    node.value + a + b
}
