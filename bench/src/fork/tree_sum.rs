//! The sum over a balanced binary tree: every node is a cache line away from its parent.

use std::hint::black_box;
use std::sync::LazyLock;

use super::{Case, Fork, Program, expect};
use crate::metric;
use crate::row::Row;

const LEVELS: u32 = if cfg!(test) { 8 } else { 20 };

const NODES: u64 = (1 << LEVELS) - 1;

/// One takes a few milliseconds.
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

/// Made once: it is only read.
static TREE: LazyLock<Node> = LazyLock::new(|| Node::new(1, LEVELS));

impl Node {
    /// Numbered as in a heap, from 1.
    fn new(value: u64, levels: u32) -> Self {
        let child = |value| Box::new(Self::new(value, levels - 1));
        let children = (levels > 1).then(|| (child(2 * value), child(2 * value + 1)));
        Self { value, children }
    }
}

#[derive(Clone, Copy)]
struct Sum;

impl Program for Sum {
    type Input = &'static Node;

    fn input(self) -> &'static Node {
        &TREE
    }

    fn run<F: Fork>(self, hand: &mut F::Hand<'_>, tree: &mut &'static Node) -> u64 {
        (0..PASSES).map(|_| sum::<F>(hand, black_box(tree))).sum()
    }

    fn check(self, by: &str, _: &&'static Node, found: u64) {
        expect(by, found, PASSES * (NODES * (NODES + 1) / 2));
    }

    fn operations(self) -> u64 {
        PASSES * NODES
    }
}

fn sum<F: Fork>(hand: &mut F::Hand<'_>, node: &Node) -> u64 {
    let Some((left, right)) = &node.children else {
        return node.value;
    };
    let (a, b) = F::join(hand, move |hand| sum::<F>(hand, left), move |hand| sum::<F>(hand, right));
    node.value + a + b
}
