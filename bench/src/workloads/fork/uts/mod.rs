//! Unbalanced Tree Search: the number of nodes of a tree that becomes known only node by node.
//!
//! There are two of the benchmark's sample trees, whose random numbers are SHA-1 hashes, and one of the same kind
//! with nearly free random numbers, so that the hash does not hide the cost of forking.

pub(super) mod light;
mod sha;

use harness::metric;
use harness::row::Row;
use light::Light;
use sha::{T1, T3};

use super::{Case, Fork, Program, expect};

const LIMITS: &[(usize, &str, f64)] = &[(2, "rayon", 0.55), (2, "chili", 0.65), (2, "plain", 1.0)];

const EFFICIENCY: f64 = 0.93;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = case("light", "a light tree, binomial", Light).rows();
    rows.extend(case("t1", "T1, geometric", T1).rows());
    rows.extend(case("t3", "T3, binomial", T3).rows());
    rows
}

fn case<T: Tree>(name: &'static str, title: &'static str, tree: T) -> Case<Search<T>> {
    Case {
        workload: "uts",
        name,
        title,
        metric: &metric::NODE,
        program: Search(tree),
        limits: LIMITS,
        efficiency: Some(EFFICIENCY),
    }
}

/// A tree that unfolds from its root.
trait Tree: Copy + Send + Sync + 'static {
    type Node: Send + Sync;

    /// The number of all nodes, including the leaves and the root.
    const NODES: u64;

    fn root(self) -> Self::Node;

    fn children(self, node: &Self::Node) -> u32;

    fn child(self, node: &Self::Node, index: u32) -> Self::Node;
}

#[derive(Clone, Copy)]
struct Search<T>(T);

impl<T: Tree> Program for Search<T> {
    type Input = T::Node;

    fn input(self) -> T::Node {
        self.0.root()
    }

    fn run<F: Fork>(self, context: &mut F::Context<'_>, root: &mut T::Node) -> u64 {
        visit::<F, T>(context, self.0, root)
    }

    fn plain(self, root: &mut T::Node) -> u64 {
        visit_plain(self.0, root)
    }

    fn check(self, by: &str, _: &T::Node, found: u64) {
        expect(by, found, T::NODES);
    }

    fn operations(self) -> u64 {
        T::NODES
    }
}

fn visit<F: Fork, T: Tree>(context: &mut F::Context<'_>, tree: T, node: &T::Node) -> u64 {
    match tree.children(node) {
        0 => 1,
        count => 1 + below::<F, T>(context, tree, node, 0, count),
    }
}

/// Counts the nodes under these children, at least one, by halves.
fn below<F: Fork, T: Tree>(
    context: &mut F::Context<'_>,
    tree: T,
    parent: &T::Node,
    from: u32,
    to: u32,
) -> u64 {
    if to - from == 1 {
        return visit::<F, T>(context, tree, &tree.child(parent, from));
    }
    let middle = from + (to - from) / 2;
    let (a, b) = F::join(
        context,
        move |context| below::<F, T>(context, tree, parent, from, middle),
        move |context| below::<F, T>(context, tree, parent, middle, to),
    );
    a + b
}

fn visit_plain<T: Tree>(tree: T, node: &T::Node) -> u64 {
    let below = |index| visit_plain(tree, &tree.child(node, index));
    1 + (0..tree.children(node)).map(below).sum::<u64>()
}
