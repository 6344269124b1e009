//! Where a number of small tasks come from.

use harness::board::Board;

use super::Pool;

/// Tasks are numbered from 0, and each says its number to the board.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// One task spawns all, and then is the first of them.
    Inside,
    /// Every task spawns two, as long as there are numbers left.
    Tree,
    /// A thread that is not the pool's spawns all.
    Outside,
    /// The same, in one call where the pool has one.
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

/// Spawns `TASKS` tasks and returns; a lap knows when they have run.
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

/// The children of a task are numbered as in a heap: every number has one parent.
fn grow<P: Pool, const TASKS: u64>(pool: &'static P, index: u64) {
    for child in [2 * index + 1, 2 * index + 2] {
        if child < TASKS {
            pool.spawn(move || grow::<P, TASKS>(pool, child));
        }
    }
    Board::get().tick(index);
}
