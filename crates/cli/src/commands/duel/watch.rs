//! Between two measurements: is there time for the next one, and who is told of it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heist_bench::{Step, Watcher};

use super::board::Board;
use super::budget::Budget;
use super::live::lock;
use crate::{interrupt, out};

/// Why a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// There were enough rounds, or the time was up.
    Enough,
    /// Somebody wants it to end.
    Interrupted,
}

/// Watches a run.
pub(super) struct Watch {
    budget: Budget,
    start: Instant,
    board: Arc<Mutex<Board>>,
    /// Say what happens, line by line.
    aloud: bool,
    /// When the current round began, and which one it is.
    round: (Instant, usize),
    longest_round: Duration,
    /// When the current measurement began.
    began: Instant,
    longest: Duration,
}

impl Watch {
    pub(super) fn new(budget: Budget, board: Arc<Mutex<Board>>, aloud: bool) -> Self {
        let start = lock(&board).start;
        let now = Instant::now();
        Self {
            budget,
            start,
            board,
            aloud,
            round: (now, 0),
            longest_round: Duration::ZERO,
            began: now,
            longest: Duration::ZERO,
        }
    }

    /// What the longest measurement took.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// May the next measurement be made, or the next round begin with it?
    fn allows(&mut self, step: &Step<'_>) -> bool {
        let elapsed = self.start.elapsed();
        if step.round == self.round.1 {
            // Something to show there must be, also on the slowest machine.
            let first = step.round == 0 && step.place == 0;
            return first || self.budget.allows_measurement(elapsed);
        }
        let length = self.round.0.elapsed();
        self.longest_round = self.longest_round.max(length);
        self.round = (Instant::now(), step.round);
        if self.aloud {
            out::note(&format!("round {} took {:.1} s", step.round, length.as_secs_f64()));
        }
        self.budget.allows_round(elapsed, step.round, self.longest_round)
    }
}

impl Watcher for Watch {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if interrupt::seen() || !self.allows(step) {
            return ControlFlow::Break(());
        }
        lock(&self.board).begin(step);
        self.began = Instant::now();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, values: &[f64]) {
        self.longest = self.longest.max(self.began.elapsed());
        let stats = heist_bench::live();
        let mut board = lock(&self.board);
        board.look(stats);
        board.score(step, values[0]);
    }
}
