//! The verdict on a difference between two measurements. The terminal, the page and `compare` share it.

use heist_bench::stats::{Ends, Interval};

/// How one measurement compares with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The first is smaller. For times: faster.
    Less,
    /// The first is larger. For times: slower.
    More,
    /// The intervals overlap.
    Same,
    /// At least one of the two has too few rounds for a 95 % interval.
    TooFew,
}

/// Compares two intervals: they differ if they do not overlap.
pub(crate) fn beside(one: &Interval, other: &Interval) -> Verdict {
    if [one.ends, other.ends].contains(&Ends::Extremes) {
        return Verdict::TooFew;
    }
    match one.overlaps(other) {
        true => Verdict::Same,
        false if one.median < other.median => Verdict::Less,
        false => Verdict::More,
    }
}

/// Compares a ratio with 1.
pub(crate) fn of_ratio(ratio: &Interval) -> Verdict {
    beside(ratio, &Interval { low: 1.0, median: 1.0, high: 1.0, ends: Ends::Confident })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(low: f64, high: f64, ends: Ends) -> Verdict {
        of_ratio(&Interval { low, median: (low + high) / 2.0, high, ends })
    }

    #[test]
    fn an_interval_that_includes_one_shows_no_difference() {
        let of = |low, high| of(low, high, Ends::Confident);
        assert_eq!([of(0.8, 0.9), of(1.1, 1.2)], [Verdict::Less, Verdict::More]);
        assert_eq!([of(0.8, 1.0), of(0.9, 1.1), of(1.0, 1.2)], [Verdict::Same; 3]);
    }

    #[test]
    fn fewer_than_six_rounds_have_no_verdict() {
        for (low, high) in [(0.1, 0.2), (0.9, 1.1), (5.0, 6.0)] {
            assert_eq!(of(low, high, Ends::Extremes), Verdict::TooFew);
        }
    }
}
