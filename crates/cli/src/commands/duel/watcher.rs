//! Decides between two measurements whether there is time for the next one, and records the progress.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heist_bench::{Step, Watcher};

use super::budget::Budget;
use super::live::lock;
use super::progress::Progress;
use crate::{interrupt, out};

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    /// It has enough rounds, or its time was up.
    Finished,
    /// The user interrupted it.
    Interrupted,
}

/// Watches a run on the measuring thread.
pub(super) struct RunWatcher {
    budget: Budget,
    start: Instant,
    progress: Arc<Mutex<Progress>>,
    /// Whether to print a line per round.
    verbose: bool,
    /// The beginning of the current round, and its number.
    round: (Instant, usize),
    longest_round: Duration,
    /// The beginning of the current measurement.
    began: Instant,
    longest: Duration,
}

impl RunWatcher {
    pub(super) fn new(budget: Budget, progress: Arc<Mutex<Progress>>, verbose: bool) -> Self {
        let start = lock(&progress).start;
        let now = Instant::now();
        Self {
            budget,
            start,
            progress,
            verbose,
            round: (now, 0),
            longest_round: Duration::ZERO,
            began: now,
            longest: Duration::ZERO,
        }
    }

    /// Returns the duration of the longest measurement.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns `true` if the next measurement may begin, including the round that it may start.
    fn allows(&mut self, step: &Step<'_>) -> bool {
        let elapsed = self.start.elapsed();
        if step.round == self.round.1 {
            // Even the slowest machine must have one result.
            let first = step.round == 0 && step.place == 0;
            return first || self.budget.allows_measurement(elapsed);
        }
        let length = self.round.0.elapsed();
        self.longest_round = self.longest_round.max(length);
        self.round = (Instant::now(), step.round);
        if self.verbose {
            out::note(&format!("round {} took {:.1} s", step.round, length.as_secs_f64()));
        }
        self.budget.allows_round(elapsed, step.round, self.longest_round)
    }
}

impl Watcher for RunWatcher {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if interrupt::seen() || !self.allows(step) {
            return ControlFlow::Break(());
        }
        lock(&self.progress).begin(step);
        self.began = Instant::now();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, values: &[f64]) {
        self.longest = self.longest.max(self.began.elapsed());
        let stats = heist_bench::live();
        let mut progress = lock(&self.progress);
        progress.sample(stats);
        progress.score(step, values[0]);
    }
}
