//! The middle of many measurements, and how sure we are of it.

use std::fmt;

/// How sure a confidence interval is to hold the median that no end of rounds would have.
const CONFIDENCE: f64 = 0.95;

/// A median, and between which two of the values it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The median of the values.
    pub median: f64,
    /// The upper end.
    pub high: f64,
    /// What the two ends are.
    pub ends: Ends,
}

/// What the ends of an interval are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Those of a 95 % confidence interval.
    Confident,
    /// The smallest and the largest value: fewer than six have no such interval.
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
    /// Is there a value that lies in both?
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// What the ends of an interval of so many values are.
pub fn ends_of(values: usize) -> Ends {
    if rank(values).is_some() { Ends::Confident } else { Ends::Extremes }
}

/// Of at least one value.
///
/// Its ends are two of the values: as many places from either end of their order as still leaves
/// 95 %. Nothing is assumed of how they are distributed.
///
/// # Panics
///
/// If there is no value.
pub fn interval(values: impl IntoIterator<Item = f64>) -> Interval {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    assert!(!sorted.is_empty(), "no values have no median");
    sorted.sort_by(f64::total_cmp);
    let from_end = rank(sorted.len()).unwrap_or(0);
    Interval {
        low: sorted[from_end],
        median: at(&sorted, 0.5),
        high: sorted[sorted.len() - 1 - from_end],
        ends: ends_of(sorted.len()),
    }
}

/// How many of so many values may lie outside at either end. Each value is below the true median
/// with a chance of a half, so the number of those below is binomial; `None` if even the
/// outermost two values leave less than we want.
fn rank(values: usize) -> Option<usize> {
    let n = values as f64;
    // By their logarithms: a half to the power of a thousand is nothing to a float.
    let mut log = -n * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut found = None;
    for outside in 0..values.div_ceil(2) {
        // At most so many values are below the true median.
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

/// The value a fraction of the way up, between two neighbours if need be.
fn at(sorted: &[f64], fraction: f64) -> f64 {
    let place = fraction * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    if below == above {
        // Also for two infinities, whose difference is none.
        return below;
    }
    below + (above - below) * place.fract()
}

/// The value that this fraction of all are not above; of at least one value.
pub fn percentile(values: &mut [f64], fraction: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    at(values, fraction)
}

/// Each value over the reference of the same round. Of counts, both may be zero: that is no more
/// than any part of the other, so the ratio is zero.
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

    /// As the tables of the sign test have them.
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

    /// The normal distribution has it at 1.96 times half of the root of their number from the middle.
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
