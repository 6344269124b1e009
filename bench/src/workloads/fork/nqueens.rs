//! The number of ways in which queens fit on a board: a fork wherever a row leaves a choice.

use std::hint::black_box;

use harness::metric;
use harness::row::Row;

use super::{Case, Fork, Program, expect};

pub(super) const QUEENS: u32 = if cfg!(test) { 6 } else { 13 };

pub(super) const SOLUTIONS: u64 = if cfg!(test) { 4 } else { 73_712 };

/// The number of boards on which no queen attacks another one, with any number of rows filled, from none to all.
pub(super) const BOARDS: u64 = if cfg!(test) { 153 } else { 4_674_890 };

const COUNT: Case<Queens> = Case {
    workload: "nqueens",
    name: "",
    title: "13 queens",
    metric: &metric::NODE,
    program: Queens,
    limits: &[(2, "rayon", 0.55), (2, "chili", 0.65), (2, "plain", 1.0)],
    efficiency: Some(0.93),
};

pub(super) fn rows() -> Vec<Row> {
    COUNT.rows()
}

#[derive(Clone, Copy)]
struct Queens;

impl Program for Queens {
    type Input = ();

    fn input(self) {}

    fn run<F: Fork>(self, context: &mut F::Context<'_>, (): &mut ()) -> u64 {
        count::<F>(context, Board::new(black_box(QUEENS)))
    }

    fn plain(self, (): &mut ()) -> u64 {
        count_plain(Board::new(black_box(QUEENS)))
    }

    fn check(self, by: &str, (): &(), found: u64) {
        expect(by, found, SOLUTIONS);
    }

    fn operations(self) -> u64 {
        BOARDS
    }
}

/// A board that is filled up to some row. A set bit is a column.
#[derive(Clone, Copy)]
struct Board {
    /// The columns without a queen.
    free: u32,
    /// The columns that a queen above attacks diagonally in the next row, to either side.
    left: u32,
    right: u32,
}

impl Board {
    fn new(queens: u32) -> Self {
        Self { free: (1 << queens) - 1, left: 0, right: 0 }
    }

    #[inline(always)]
    fn choices(self) -> u32 {
        self.free & !(self.left | self.right)
    }

    /// Fills the next row.
    #[inline(always)]
    fn with(self, column: u32) -> Self {
        Self {
            free: self.free & !column,
            left: (self.left | column) << 1,
            right: (self.right | column) >> 1,
        }
    }
}

fn count<F: Fork>(context: &mut F::Context<'_>, board: Board) -> u64 {
    if board.free == 0 {
        return 1;
    }
    match board.choices() {
        0 => 0,
        choices => among::<F>(context, board, choices),
    }
}

/// Counts over at least one choice, by halves.
fn among<F: Fork>(context: &mut F::Context<'_>, board: Board, choices: u32) -> u64 {
    if choices.is_power_of_two() {
        return count::<F>(context, board.with(choices));
    }
    // The cut lies between the lowest and the highest choice, so that each half has at least one.
    let middle = (choices.trailing_zeros() + choices.ilog2()).div_ceil(2);
    let low = choices & ((1 << middle) - 1);
    let high = choices ^ low;
    let (a, b) = F::join(
        context,
        move |context| among::<F>(context, board, low),
        move |context| among::<F>(context, board, high),
    );
    a + b
}

fn count_plain(board: Board) -> u64 {
    if board.free == 0 {
        return 1;
    }
    let mut choices = board.choices();
    let mut solutions = 0;
    while choices != 0 {
        let column = choices & choices.wrapping_neg();
        choices ^= column;
        solutions += count_plain(board.with(column));
    }
    solutions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boards(board: Board) -> u64 {
        let columns = (0..QUEENS).map(|column| 1 << column);
        let choices = columns.filter(|column| board.choices() & column != 0);
        1 + choices.map(|column| boards(board.with(column))).sum::<u64>()
    }

    #[test]
    fn the_number_of_operations_is_the_number_of_boards() {
        assert_eq!(boards(Board::new(QUEENS)), BOARDS);
    }
}
