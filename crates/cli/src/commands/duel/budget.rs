//! When to stop measuring, so that the whole command ends in time.

use std::time::Duration;

/// More rounds than that make the intervals hardly narrower.
pub(super) const MOST_ROUNDS: usize = 15;

/// Fewer have no 95 % interval: worth some of the time that is kept for what comes after.
const FEWEST_ROUNDS: usize = 6;

/// How long what may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// All of it, with the traces and the report.
    whole: Duration,
    /// No round begins that would not end by then, as far as one can tell.
    soft: Duration,
    /// No measurement begins after that.
    hard: Duration,
}

impl Budget {
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, soft: whole.mul_f64(0.7), hard: whole.mul_f64(0.85) }
    }

    /// When measuring ends if nothing goes wrong.
    pub(super) fn soft(&self) -> Duration {
        self.soft
    }

    /// May another round begin, after so many, of which the longest took that long?
    pub(super) fn allows_round(&self, elapsed: Duration, rounds: usize, longest: Duration) -> bool {
        let end = if rounds < FEWEST_ROUNDS { self.hard } else { self.soft };
        rounds == 0 || elapsed + longest <= end
    }

    /// May another measurement of a round begin?
    pub(super) fn allows_measurement(&self, elapsed: Duration) -> bool {
        elapsed < self.hard
    }

    /// May something begin that will take about that long, and is not measured?
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
    fn an_interval_is_worth_some_of_the_reserve() {
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
    fn what_is_not_measured_must_fit_as_well() {
        assert!(BUDGET().allows_extra(seconds(17.0), seconds(1.0)));
        assert!(!BUDGET().allows_extra(seconds(17.0), seconds(3.0)));
    }
}
