//! Random programs of tasks that wait for each other.
//!
//! Every handle has one owner, which joins it or passes it on: to a task that it starts, or with its result to the
//! task that waits for it. So a handle is only joined by a task that was started later, or by one that has waited
//! for the task which spawned it, and there is no cycle of joins.
//!
//! Locks are numbered. What is awaited under a lock uses only locks of higher numbers, in all that it may start or
//! wait for itself. So a program ends if each task has a thread of its own.

use std::sync::Arc;

use heist_testkit::random::Rng;

/// The number of locks.
pub(crate) const LOCKS: usize = 2;

/// One step of a node.
#[derive(Debug)]
pub(crate) enum Step {
    Yield,
    /// Spawns a task. Its handle is added to those that the node owns.
    Spawn(Child),
    /// Joins the handle at this position among those that the node owns.
    Join(usize),
    /// Forks two halves.
    Fork(Child, Child),
    /// Opens a scope with these parts, and takes the steps inside of it.
    Scope(Vec<Child>, Vec<Step>),
    /// Spawns a batch and joins it.
    Batch(Vec<Child>),
    /// Takes the steps with a lock held, isolated.
    Lock(usize, Vec<Step>),
    /// Runs a child on the other pool.
    Install(Child),
}

/// A node that another one starts, and the handles that it is given: positions among those of the other.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) node: Arc<Node>,
    pub(crate) gets: Vec<usize>,
}

/// A task, or a part of one.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: usize,
    pub(crate) steps: Vec<Step>,
}

/// A program: tasks that are spawned from outside, one after the other.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The workers of the two pools.
    pub(crate) workers: [usize; 2],
    pub(crate) roots: Vec<Arc<Node>>,
    /// The number of nodes, which are numbered from zero.
    pub(crate) nodes: usize,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        (0..20).for_each(|_| _ = rng.below(2));
        let workers = [1 + rng.below(4), 1 + rng.below(2)];
        let mut maker = Maker { rng, nodes: 0 };
        let count = 1 + maker.rng.below(4);
        let roots = (0..count).map(|_| maker.node(3, 0, Vec::new()).0).collect();
        Self { workers, roots, nodes: maker.nodes }
    }
}

/// The largest number of nodes of a program. A node that was begun still gets the children of its current step.
const MOST: usize = 12;

struct Maker {
    rng: Rng,
    nodes: usize,
}

/// What is known of a handle when a program is made.
struct Known {
    /// The lowest lock that waiting for it may need.
    lowest: usize,
    /// The handles that come with the result.
    leaves: Vec<Known>,
}

/// The state of a node while its steps are made.
struct Making {
    depth: usize,
    owned: Vec<Known>,
    lowest: usize,
}

impl Maker {
    /// Makes a node that uses no lock below `floor` and is given these handles. Returns what is known of it.
    fn node(&mut self, depth: usize, floor: usize, owned: Vec<Known>) -> (Arc<Node>, Known) {
        let number = self.nodes;
        self.nodes += 1;
        let lowest = owned.iter().map(|known| known.lowest).min().unwrap_or(LOCKS);
        let mut making = Making { depth, owned, lowest };
        let count = if depth == 0 { 1 } else { 1 + self.rng.below(4) };
        let steps = self.steps(&mut making, floor, count);
        let known = Known { lowest: making.lowest, leaves: making.owned };
        (Arc::new(Node { number, steps }), known)
    }

    fn steps(&mut self, making: &mut Making, floor: usize, count: usize) -> Vec<Step> {
        (0..count).map(|_| self.step(making, floor)).collect()
    }

    fn step(&mut self, making: &mut Making, floor: usize) -> Step {
        // Under a lock it mostly waits: that is where a thread that does not help blocks the others.
        let kind = if floor == 0 {
            self.rng.below(14)
        } else {
            [0, 1, 2, 4, 8, 9, 9, 10][self.rng.below(8)]
        };
        let may_grow = making.depth > 0 && self.nodes < MOST;
        match kind {
            0..=2 => self.join(making, floor),
            3 | 12 | 13 if floor < LOCKS => {
                let lock = floor + self.rng.below(LOCKS - floor);
                making.lowest = making.lowest.min(lock);
                let count = 2 + self.rng.below(2);
                Step::Lock(lock, self.steps(making, lock + 1, count))
            }
            _ if !may_grow => Step::Yield,
            4..=6 => {
                let (child, known) = self.child(making, floor);
                making.owned.push(known);
                Step::Spawn(child)
            }
            7 => {
                let (one, first) = self.child(making, floor);
                let (another, second) = self.child(making, floor);
                making.owned.extend(first.leaves.into_iter().chain(second.leaves));
                Step::Fork(one, another)
            }
            8 | 9 => {
                let (parts, known) = self.children(making, floor);
                let count = self.rng.below(2);
                let steps = self.steps(making, floor, count);
                making.owned.extend(known);
                Step::Scope(parts, steps)
            }
            10 => {
                let (tasks, known) = self.children(making, floor);
                making.owned.extend(known);
                Step::Batch(tasks)
            }
            _ => {
                let (child, known) = self.child(making, floor);
                making.owned.extend(known.leaves);
                Step::Install(child)
            }
        }
    }

    /// Joins one of the handles that may be joined under the locks that are held, if there is one.
    fn join(&mut self, making: &mut Making, floor: usize) -> Step {
        let allowed = self.allowed(making, floor);
        if allowed.is_empty() {
            return Step::Yield;
        }
        let position = allowed[self.rng.below(allowed.len())];
        let known = making.owned.remove(position);
        making.owned.extend(known.leaves);
        Step::Join(position)
    }

    fn allowed(&self, making: &Making, floor: usize) -> Vec<usize> {
        (0..making.owned.len()).filter(|&n| making.owned[n].lowest >= floor).collect()
    }

    /// Makes a child, which is given some of the handles.
    fn child(&mut self, making: &mut Making, floor: usize) -> (Child, Known) {
        let (mut gets, mut given) = (Vec::new(), Vec::new());
        // From the end, so that positions stay right.
        for position in self.allowed(making, floor).into_iter().rev() {
            if self.rng.below(2) == 0 {
                gets.push(position);
                given.push(making.owned.remove(position));
            }
        }
        let (node, known) = self.node(making.depth - 1, floor, given);
        making.lowest = making.lowest.min(known.lowest);
        (Child { node, gets }, known)
    }

    /// Makes one to three children, and returns the handles that they leave.
    fn children(&mut self, making: &mut Making, floor: usize) -> (Vec<Child>, Vec<Known>) {
        let count = 1 + self.rng.below(3);
        let (children, known): (Vec<_>, Vec<_>) =
            (0..count).map(|_| self.child(making, floor)).unzip();
        (children, known.into_iter().flat_map(|known| known.leaves).collect())
    }
}
