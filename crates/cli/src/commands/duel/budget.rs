//! Decides when to stop measuring, so that the whole command ends in time.

use std::time::Duration;

/// The maximum number of rounds: more hardly make the intervals narrower.
pub(super) const MAX_ROUNDS: usize = 15;

/// The number of rounds from which on there is a 95 % interval. To reach it, a duel uses some of the time
/// that is reserved for what follows.
const MIN_CONFIDENT_ROUNDS: usize = 6;

/// The time limits of a duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// The limit of the whole command, including traces and report.
    whole: Duration,
    /// No round begins that is expected to end later.
    soft: Duration,
    /// No measurement begins later.
    hard: Duration,
}

impl Budget {
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, soft: whole.mul_f64(0.7), hard: whole.mul_f64(0.85) }
    }

    /// Returns when measuring ends under normal conditions.
    pub(super) fn soft(&self) -> Duration {
        self.soft
    }

    /// Returns `true` if another round may begin, after `rounds` rounds of which the longest took `longest`.
    pub(super) fn allows_round(&self, elapsed: Duration, rounds: usize, longest: Duration) -> bool {
        let end = if rounds < MIN_CONFIDENT_ROUNDS { self.hard } else { self.soft };
        rounds == 0 || elapsed + longest <= end
    }

    /// Returns `true` if another measurement of the current round may begin.
    pub(super) fn allows_measurement(&self, elapsed: Duration) -> bool {
        elapsed < self.hard
    }

    /// Returns `true` if an activity of about this length that is not measured may begin.
    pub(super) fn allows_extra(&self, elapsed: Duration, length: Duration) -> bool {
        elapsed + length <= self.whole.mul_f64(0.95)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: fn() -> Budget = || Budget::new(Duration::from_secs(20));

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_first_round_always_begins() {
        assert!(BUDGET().allows_round(seconds(19.0), 0, Duration::ZERO));
    }

    #[test]
    fn a_round_that_would_end_late_does_not_begin() {
        assert!(BUDGET().allows_round(seconds(12.0), 8, seconds(1.5)));
        assert!(!BUDGET().allows_round(seconds(13.0), 8, seconds(1.5)));
    }

    #[test]
    fn the_reserve_is_used_for_rounds_that_complete_an_interval() {
        assert!(BUDGET().allows_round(seconds(14.0), 5, seconds(2.5)));
        assert!(!BUDGET().allows_round(seconds(14.0), 6, seconds(2.5)));
        assert!(!BUDGET().allows_round(seconds(14.0), 2, seconds(3.5)));
    }

    #[test]
    fn a_slow_machine_stops_within_its_first_round() {
        assert!(BUDGET().allows_measurement(seconds(16.9)));
        assert!(!BUDGET().allows_measurement(seconds(17.1)));
    }

    #[test]
    fn unmeasured_activities_must_fit_too() {
        assert!(BUDGET().allows_extra(seconds(17.0), seconds(1.0)));
        assert!(!BUDGET().allows_extra(seconds(17.0), seconds(3.0)));
    }
}
