//! A tree of joins, scopes and loops, with panics here and there: every leaf is visited once, whatever panics.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use heist::parallel;

use super::die::Die;
use super::ground::{Ground, is_planned};
use super::tally::Tally;
use super::trouble::Trouble;
use super::{PLANNED, queues};

/// Deeper would try the stacks, which others do.
const DEPTH: u64 = 40;

enum Tree {
    Leaf(usize),
    /// A leaf that panics.
    Bomb(usize),
    Join(Box<[Tree; 2]>),
    Scope(Vec<Tree>),
    Isolate(Box<Tree>),
    /// No panic comes through.
    Catch(Box<Tree>),
    /// A leaf for each number.
    Loop(Range<usize>),
}

pub(super) struct Shape {
    ground: Ground,
    tree: Tree,
    leaves: usize,
}

/// Grows a tree.
struct Gardener<'d> {
    die: &'d mut Die,
    /// How many leaves there are yet.
    leaves: usize,
    /// One of so many leaves panics; 0 is none.
    bombs: u64,
}

impl Gardener<'_> {
    /// A tree of about so many leaves.
    fn grow(&mut self, leaves: u64, depth: u64) -> Tree {
        if leaves <= 1 || depth == DEPTH {
            return self.leaf();
        }
        match self.die.roll(10) {
            0 => Tree::Isolate(Box::new(self.grow(leaves, depth + 1))),
            1 => Tree::Catch(Box::new(self.grow(leaves, depth + 1))),
            2 => {
                let first = self.leaves;
                self.leaves += leaves as usize;
                Tree::Loop(first..self.leaves)
            }
            3 | 4 => {
                let parts = 1 + self.die.roll(leaves.min(8));
                Tree::Scope((0..parts).map(|_| self.grow(leaves / parts, depth + 1)).collect())
            }
            _ => {
                let left = 1 + self.die.roll(leaves - 1);
                Tree::Join(Box::new([
                    self.grow(left, depth + 1),
                    self.grow(leaves - left, depth + 1),
                ]))
            }
        }
    }

    fn leaf(&mut self) -> Tree {
        let number = self.leaves;
        self.leaves += 1;
        if self.bombs > 0 && self.die.roll(self.bombs) == 0 {
            Tree::Bomb(number)
        } else {
            Tree::Leaf(number)
        }
    }
}

impl Tree {
    /// Does a panic come out of it?
    fn explodes(&self) -> bool {
        match self {
            Self::Leaf(_) | Self::Catch(_) | Self::Loop(_) => false,
            Self::Bomb(_) => true,
            Self::Join(halves) => halves.iter().any(Self::explodes),
            Self::Scope(parts) => parts.iter().any(Self::explodes),
            Self::Isolate(tree) => tree.explodes(),
        }
    }

    fn visit(&self, tally: &Tally) {
        match self {
            Self::Leaf(number) => tally.mark(*number),
            Self::Bomb(number) => {
                tally.mark(*number);
                resume_unwind(Box::new(PLANNED));
            }
            Self::Join(halves) => {
                _ = heist::join(|| halves[0].visit(tally), || halves[1].visit(tally))
            }
            Self::Scope(parts) => heist::scope(|scope| {
                parts.iter().for_each(|part| scope.spawn(|_| part.visit(tally)))
            }),
            Self::Isolate(tree) => heist::isolate(|| tree.visit(tally)),
            Self::Catch(tree) => {
                let outcome = catch_unwind(AssertUnwindSafe(|| tree.visit(tally)));
                ended_as(tree.explodes(), &outcome).unwrap_or_else(|wrong| panic!("{wrong}"));
            }
            Self::Loop(numbers) => {
                parallel::for_range(numbers.clone(), |number| tally.mark(number))
            }
        }
    }
}

/// A panic came if one had to, and it was the planned one.
fn ended_as<T>(explodes: bool, outcome: &thread::Result<T>) -> Result<(), String> {
    match outcome {
        Err(payload) => is_planned(&**payload).and_then(|()| {
            if explodes { Ok(()) } else { Err("a caught panic came back".to_owned()) }
        }),
        Ok(_) if explodes => Err("a panic got lost".to_owned()),
        Ok(_) => Ok(()),
    }
}

impl Shape {
    pub(super) fn random(die: &mut Die, most: u64) -> Self {
        let ground = Ground::random(die);
        let bombs = die.pick(&[0, 0, 10, 1000]);
        let leaves = 1 + die.roll(most);
        let mut gardener = Gardener { die, leaves: 0, bombs };
        let tree = gardener.grow(leaves, 0);
        Self { ground, leaves: gardener.leaves, tree }
    }

    /// How many leaves there were, or what is wrong.
    pub(super) fn run(&self) -> Result<u64, Trouble> {
        let tally = Tally::new(self.leaves);
        let outcome = self.ground.run(|| self.tree.visit(&tally))?;
        ended_as(self.tree.explodes(), &outcome)
            .and_then(|()| queues::check(&tally, self.leaves))
            .map_err(|wrong| format!("{wrong}, in {self:?}"))?;
        Ok(self.leaves as u64)
    }
}

impl fmt::Debug for Shape {
    /// Not the tree, which has thousands of leaves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forks")
            .field("ground", &self.ground)
            .field("leaves", &self.leaves)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shapes_are_right() {
        for seed in 0..300 {
            let shape = Shape::random(&mut Die::new(seed), 100);
            assert_eq!(shape.run(), Ok(shape.leaves as u64), "seed {seed}");
        }
    }

    #[test]
    fn a_panic_that_gets_lost_is_found() {
        assert!(ended_as(true, &Ok(())).is_err());
        assert!(ended_as(false, &Ok(())).is_ok());
    }

    #[test]
    fn a_panic_out_of_nowhere_is_found() {
        assert!(ended_as::<()>(false, &Err(Box::new(PLANNED))).is_err());
        assert!(ended_as::<()>(true, &Err(Box::new("index out of bounds"))).is_err());
        assert!(ended_as::<()>(true, &Err(Box::new(PLANNED))).is_ok());
    }
}
