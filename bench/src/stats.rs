//! The middle of many measurements, and how far they spread.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

/// Of at least one value.
pub(crate) fn quartiles(values: impl IntoIterator<Item = f64>) -> Quartiles {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    Quartiles { low: at(&sorted, 0.25), median: at(&sorted, 0.5), high: at(&sorted, 0.75) }
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
pub(crate) fn percentile(values: &mut [f64], fraction: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    at(values, fraction)
}

/// Each value over the reference of the same round. Of counts, both may be zero: that is no more
/// than any part of the other, so the ratio is zero.
pub(crate) fn ratios<'a>(
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

    #[test]
    fn median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(quartiles([9.0, 1.0, 5.0]).median, 5.0);
        assert_eq!(quartiles([7.0]).median, 7.0);
    }

    #[test]
    fn median_of_an_even_number_is_between() {
        assert_eq!(quartiles([4.0, 1.0, 2.0, 100.0]).median, 3.0);
    }

    #[test]
    fn quartiles_are_a_quarter_from_either_end() {
        let found = quartiles([5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!((found.low, found.high), (2.0, 4.0));
    }

    #[test]
    fn percentiles_are_near_the_end() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut [3.0], 0.99), 3.0);
    }

    #[test]
    fn counts_may_be_zero() {
        let found = quartiles(ratios([0.0, 0.0, 2.0, 2.0], [4.0, 0.0, 0.0, 0.0]));
        assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
    }

    #[test]
    fn a_slow_round_does_not_move_the_ratio() {
        let ours = [2.0, 20.0, 2.0];
        let theirs = [4.0, 40.0, 4.0];
        assert_eq!(quartiles(ratios(ours, theirs)).median, 0.5);
    }
}
