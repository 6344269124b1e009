//! The ways in which many small tasks are spawned.

use harness::board::Board;

use super::Pool;

/// A way to spawn tasks. Tasks are numbered from 0, and each counts itself on the board.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// One task spawns all others, and counts as the first of them.
    Inside,
    /// Every task spawns two, until all numbers are used.
    Tree,
    /// A thread outside the pool spawns all.
    Outside,
    /// A thread outside the pool spawns all, in one call if the pool has one.
    Batch,
}

impl Shape {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Tree => "tree",
            Self::Outside => "outside",
            Self::Batch => "batch",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Inside => "one task spawns all",
            Self::Tree => "every task spawns two",
            Self::Outside => "an outside thread spawns all",
            Self::Batch => "an outside thread spawns all in a batch",
        }
    }
}

/// Spawns `TASKS` tasks and returns. A lap waits until they have run.
pub(crate) fn start<P: Pool, const TASKS: u64>(pool: &'static P, shape: Shape) {
    let board = Board::get();
    match shape {
        Shape::Inside => pool.spawn(move || {
            (1..TASKS).for_each(|index| pool.spawn(move || board.tick(index)));
            board.tick(0);
        }),
        Shape::Tree => pool.spawn(move || grow::<P, TASKS>(pool, 0)),
        Shape::Outside => (0..TASKS).for_each(|index| pool.spawn(move || board.tick(index))),
        Shape::Batch => {
            pool.spawn_batch((0..TASKS).map(|index| move || board.tick(index)));
        }
    }
}

/// Runs the task of this number. Children are numbered as in a binary heap, so that every number has one parent.
fn grow<P: Pool, const TASKS: u64>(pool: &'static P, index: u64) {
    for child in [2 * index + 1, 2 * index + 2] {
        if child < TASKS {
            pool.spawn(move || grow::<P, TASKS>(pool, child));
        }
    }
    Board::get().tick(index);
}
