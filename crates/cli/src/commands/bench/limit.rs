//! Decides when a measurement ends: after a number of rounds, or when its time is up.

use std::time::{Duration, Instant};

use heist_bench::Step;

use crate::args;

/// The number of rounds, unless the user asks for a number or a time.
const ROUNDS: usize = 21;
/// More rounds than any time allows.
const MOST_ROUNDS: usize = 1_000_000;

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Rounds(usize),
    Time(Duration),
}

impl Limit {
    pub(super) fn new(asked: &args::Bench) -> Self {
        match asked.seconds {
            Some(seconds) => Self::Time(Duration::from_secs_f64(seconds)),
            None => Self::Rounds(asked.rounds.unwrap_or(ROUNDS)),
        }
    }

    /// Returns the largest number of rounds.
    pub(super) fn rounds(self) -> usize {
        match self {
            Self::Rounds(rounds) => rounds,
            Self::Time(_) => MOST_ROUNDS,
        }
    }
}

/// Measures the rounds of a run whose time is limited.
#[derive(Debug)]
pub(super) struct Clock {
    limit: Duration,
    start: Instant,
    /// The beginning of the current round, and its number.
    round: (Instant, usize),
    longest_round: Duration,
}

impl Clock {
    pub(super) fn start(limit: Duration) -> Self {
        let now = Instant::now();
        Self { limit, start: now, round: (now, 0), longest_round: Duration::ZERO }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns `true` if there is time for the next measurement.
    pub(super) fn allows(&mut self, step: &Step<'_>) -> bool {
        let elapsed = self.elapsed();
        if step.round == self.round.1 {
            return allows_measurement(self.limit, elapsed, step.round, step.place);
        }
        self.longest_round = self.longest_round.max(self.round.0.elapsed());
        self.round = (Instant::now(), step.round);
        allows_round(self.limit, elapsed, self.longest_round)
    }
}

/// Returns `true` if a round after the first one may begin: if it is expected to end in time.
fn allows_round(limit: Duration, elapsed: Duration, longest_round: Duration) -> bool {
    elapsed + longest_round <= limit
}

/// Returns `true` if another measurement of a round may begin. A round that has begun is completed, because half of it would
/// be dropped. The first one is as long as it has to be for one case to be measured, whatever the limit is. In it, the cases
/// that were measured in time are kept.
fn allows_measurement(limit: Duration, elapsed: Duration, round: usize, place: usize) -> bool {
    round > 0 || place == 0 || elapsed < limit
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_first_case_is_always_measured() {
        assert!(allows_measurement(LIMIT, seconds(99.0), 0, 0));
        assert!(allows_measurement(LIMIT, seconds(9.9), 0, 7));
        assert!(!allows_measurement(LIMIT, seconds(10.1), 0, 1));
    }

    #[test]
    fn a_round_that_has_begun_is_completed() {
        assert!(allows_measurement(LIMIT, seconds(10.1), 1, 7));
    }

    #[test]
    fn a_round_that_would_end_late_does_not_begin() {
        assert!(allows_round(LIMIT, seconds(8.0), seconds(2.0)));
        assert!(!allows_round(LIMIT, seconds(8.0), seconds(2.1)));
    }
}
