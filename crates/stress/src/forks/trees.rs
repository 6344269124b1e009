//! Random trees of joins, scopes and loops with panics in them: every leaf is visited once, whatever panics.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use heist::parallel;

use crate::exactly_once::ExactlyOnce;
use crate::planned::{expect_planned, planned_panic};
use crate::pool_choice::PoolChoice;
use crate::rng::Rng;
use crate::{Error, Violation};

/// The depth at which a tree ends. Deeper trees would test stack overflow, which other tests do.
const MAX_DEPTH: u64 = 40;

enum Tree {
    Leaf(usize),
    /// A leaf that panics.
    PanickingLeaf(usize),
    Join(Box<[Tree; 2]>),
    Scope(Vec<Tree>),
    Isolate(Box<Tree>),
    /// Catches the panic of its subtree.
    Catch(Box<Tree>),
    /// A parallel loop with one leaf for each number.
    Loop(Range<usize>),
}

pub(crate) struct Trees {
    pool: PoolChoice,
    tree: Tree,
    leaves: usize,
}

/// Builds a random tree.
struct Builder<'r> {
    rng: &'r mut Rng,
    /// How many leaves the tree has so far.
    leaves: usize,
    /// One in this many leaves panics, or none if this is 0.
    panic_interval: u64,
}

impl Builder<'_> {
    /// Builds a tree of about `leaves` leaves.
    fn tree(&mut self, leaves: u64, depth: u64) -> Tree {
        if leaves <= 1 || depth == MAX_DEPTH {
            return self.leaf();
        }
        match self.rng.below(10) {
            0 => Tree::Isolate(Box::new(self.tree(leaves, depth + 1))),
            1 => Tree::Catch(Box::new(self.tree(leaves, depth + 1))),
            2 => {
                let first = self.leaves;
                self.leaves += leaves as usize;
                Tree::Loop(first..self.leaves)
            }
            3 | 4 => {
                let parts = 1 + self.rng.below(leaves.min(8));
                Tree::Scope((0..parts).map(|_| self.tree(leaves / parts, depth + 1)).collect())
            }
            _ => {
                let left = 1 + self.rng.below(leaves - 1);
                Tree::Join(Box::new([
                    self.tree(left, depth + 1),
                    self.tree(leaves - left, depth + 1),
                ]))
            }
        }
    }

    fn leaf(&mut self) -> Tree {
        let number = self.leaves;
        self.leaves += 1;
        if self.panic_interval > 0 && self.rng.one_in(self.panic_interval) {
            Tree::PanickingLeaf(number)
        } else {
            Tree::Leaf(number)
        }
    }
}

impl Tree {
    /// Returns whether a panic comes out of the tree.
    fn panics(&self) -> bool {
        match self {
            Self::Leaf(_) | Self::Catch(_) | Self::Loop(_) => false,
            Self::PanickingLeaf(_) => true,
            Self::Join(halves) => halves.iter().any(Self::panics),
            Self::Scope(parts) => parts.iter().any(Self::panics),
            Self::Isolate(tree) => tree.panics(),
        }
    }

    fn visit(&self, visits: &ExactlyOnce) {
        match self {
            Self::Leaf(number) => visits.record(*number),
            Self::PanickingLeaf(number) => {
                visits.record(*number);
                planned_panic();
            }
            Self::Join(halves) => {
                _ = heist::join(|| halves[0].visit(visits), || halves[1].visit(visits))
            }
            Self::Scope(parts) => heist::scope(|scope| {
                parts.iter().for_each(|part| scope.spawn(|_| part.visit(visits)))
            }),
            Self::Isolate(tree) => heist::isolate(|| tree.visit(visits)),
            Self::Catch(tree) => {
                let outcome = catch_unwind(AssertUnwindSafe(|| tree.visit(visits)));
                check_outcome(tree.panics(), &outcome).unwrap_or_else(|wrong| panic!("{wrong}"));
            }
            Self::Loop(numbers) => {
                parallel::for_range(numbers.clone(), |number| visits.record(number))
            }
        }
    }
}

/// Checks that there is a panic if and only if `panics` is set, and that it is a planned one.
fn check_outcome<T>(panics: bool, outcome: &thread::Result<T>) -> Result<(), Violation> {
    let wrong = |text: &str| Err(Violation::Panic(text.to_owned()));
    match outcome {
        Err(payload) => {
            expect_planned(&**payload)?;
            if panics { Ok(()) } else { wrong("a panic came back after it had been caught") }
        }
        Ok(_) if panics => wrong("a planned panic was lost"),
        Ok(_) => Ok(()),
    }
}

impl Trees {
    pub(crate) fn random(rng: &mut Rng, max_leaves: u64) -> Self {
        let pool = PoolChoice::random(rng);
        let panic_interval = rng.pick(&[0, 0, 10, 1000]);
        let leaves = 1 + rng.below(max_leaves);
        let mut builder = Builder { rng, leaves: 0, panic_interval };
        let tree = builder.tree(leaves, 0);
        Self { pool, leaves: builder.leaves, tree }
    }

    /// Runs the case, and returns how many leaves it had.
    pub(crate) fn run(&self) -> Result<u64, Error> {
        let visits = ExactlyOnce::new(self.leaves);
        let outcome = self.pool.run(self, || self.tree.visit(&visits))?;
        check_outcome(self.tree.panics(), &outcome)
            .and_then(|()| visits.check("leaves"))
            .map_err(|violation| violation.in_case(self))?;
        Ok(self.leaves as u64)
    }
}

impl fmt::Debug for Trees {
    /// Leaves out the tree, which has thousands of leaves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees")
            .field("pool", &self.pool)
            .field("leaves", &self.leaves)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planned::PLANNED;

    #[test]
    fn small_cases_are_right() {
        for seed in 0..300 {
            let case = Trees::random(&mut Rng::new(seed), 100);
            assert_eq!(case.run(), Ok(case.leaves as u64), "seed {seed}");
        }
    }

    #[test]
    fn a_lost_panic_is_found() {
        assert!(check_outcome(true, &Ok(())).is_err());
        assert!(check_outcome(false, &Ok(())).is_ok());
    }

    #[test]
    fn an_unplanned_panic_is_found() {
        assert!(check_outcome::<()>(false, &Err(Box::new(PLANNED))).is_err());
        assert!(check_outcome::<()>(true, &Err(Box::new("index out of bounds"))).is_err());
        assert!(check_outcome::<()>(true, &Err(Box::new(PLANNED))).is_ok());
    }
}
