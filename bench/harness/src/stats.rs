//! Medians, their confidence intervals, and ratios.

use std::fmt;

/// The probability with which a confidence interval contains the true median.
const CONFIDENCE: f64 = 0.95;

/// A median with the two values between which it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The median of the values.
    pub median: f64,
    /// The upper end.
    pub high: f64,
    /// What `low` and `high` are.
    pub ends: Ends,
}

/// What the ends of an interval are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The ends of a 95 % confidence interval.
    Confident,
    /// The smallest and the largest value. Fewer than six values have no 95 % interval.
    Extremes,
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confident => "95 % confidence interval",
            Self::Extremes => "smallest–largest",
        })
    }
}

impl Interval {
    /// Returns whether the intervals have a value in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns what the ends of an interval of this many values are.
pub fn ends_of(values: usize) -> Ends {
    if rank(values).is_some() { Ends::Confident } else { Ends::Extremes }
}

/// Returns the median and the interval of at least one value.
///
/// The ends are two of the values, at the same distance from either end of their order, as far inward as 95 %
/// allow. No distribution is assumed.
///
/// # Panics
///
/// Panics if there is no value.
pub fn interval(values: impl IntoIterator<Item = f64>) -> Interval {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    assert!(!sorted.is_empty(), "an interval needs at least one value");
    sorted.sort_by(f64::total_cmp);
    let from_end = rank(sorted.len()).unwrap_or(0);
    Interval {
        low: sorted[from_end],
        median: at(&sorted, 0.5),
        high: sorted[sorted.len() - 1 - from_end],
        ends: ends_of(sorted.len()),
    }
}

/// Returns how many values may lie outside the interval at either end. Each value is below the true median with a
/// probability of one half, so the number of values below it is binomially distributed. Returns `None` if even the
/// two outermost values give less than the wanted confidence.
fn rank(values: usize) -> Option<usize> {
    let n = values as f64;
    // In logarithms, because a half to the power of a thousand underflows.
    let mut log = -n * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut found = None;
    for outside in 0..values.div_ceil(2) {
        // The probability that at most `outside` values are below the true median.
        below += log.exp();
        if 2.0 * below > 1.0 - CONFIDENCE {
            break;
        }
        found = Some(outside);
        let place = outside as f64;
        log += ((n - place) / (place + 1.0)).ln();
    }
    found
}

/// Returns the value at a fraction of the order, interpolated between two neighbours.
fn at(sorted: &[f64], fraction: f64) -> f64 {
    let place = fraction * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    if below == above {
        // This also covers two infinities, whose difference is not a number.
        return below;
    }
    below + (above - below) * place.fract()
}

/// Returns the value that this fraction of at least one value does not exceed.
pub fn percentile(values: &mut [f64], fraction: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    at(values, fraction)
}

/// Returns each value divided by the reference of the same round. Counts may both be zero; then the ratio is zero,
/// because zero exceeds no reference.
pub fn ratios<'a>(
    values: impl IntoIterator<Item = f64> + 'a,
    reference: impl IntoIterator<Item = f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    values.into_iter().zip(reference).map(
        |(value, reference)| {
            if value == 0.0 { 0.0 } else { value / reference }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Interval {
        interval((1..=count).rev().map(|value| value as f64))
    }

    #[test]
    fn median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(interval([9.0, 1.0, 5.0]).median, 5.0);
        assert_eq!(interval([7.0]).median, 7.0);
    }

    #[test]
    fn median_of_an_even_number_is_between() {
        assert_eq!(interval([4.0, 1.0, 2.0, 100.0]).median, 3.0);
    }

    /// The values are those in tables of the sign test.
    #[test]
    fn the_ends_are_those_of_the_binomial_distribution() {
        for (count, low) in
            [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (21, 6), (41, 14), (50, 18)]
        {
            let found = of(count);
            assert_eq!(found.ends, Ends::Confident);
            let expected = (low as f64, (count + 1 - low) as f64);
            assert_eq!((found.low, found.high), expected, "{count} values");
        }
    }

    #[test]
    fn five_values_are_too_few() {
        for count in 1..=5 {
            let found = of(count);
            assert_eq!(found.ends, Ends::Extremes, "{count} values");
            assert_eq!((found.low, found.high), (1.0, count as f64));
        }
    }

    /// The normal approximation puts the end at 1.96 times half the square root of the count from the middle.
    #[test]
    fn very_many_values_have_an_interval_too() {
        let found = of(20_001);
        assert!((9_855.0..=9_870.0).contains(&found.low), "{found:?}");
        assert_eq!(found.low + found.high, 20_002.0);
    }

    #[test]
    fn intervals_that_touch_overlap() {
        let of = |low, high| Interval { low, median: low, high, ends: Ends::Confident };
        assert!(of(1.0, 2.0).overlaps(&of(2.0, 3.0)));
        assert!(of(1.0, 4.0).overlaps(&of(2.0, 3.0)));
        assert!(!of(1.0, 2.0).overlaps(&of(2.1, 3.0)));
        assert!(!of(2.1, 3.0).overlaps(&of(1.0, 2.0)));
    }

    #[test]
    fn percentiles_are_near_the_end() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut [3.0], 0.99), 3.0);
    }

    #[test]
    fn counts_may_be_zero() {
        let found = interval(ratios([0.0, 0.0, 2.0, 2.0], [4.0, 0.0, 0.0, 0.0]));
        assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
    }

    #[test]
    fn a_slow_round_does_not_move_the_ratio() {
        let ours = [2.0, 20.0, 2.0];
        let theirs = [4.0, 40.0, 4.0];
        assert_eq!(interval(ratios(ours, theirs)).median, 0.5);
    }
}
