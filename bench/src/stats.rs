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
    below + (above - below) * place.fract()
}

/// Each value over the reference of the same round.
pub(crate) fn ratios<'a>(
    values: impl IntoIterator<Item = f64> + 'a,
    reference: impl IntoIterator<Item = f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    values.into_iter().zip(reference).map(|(value, reference)| value / reference)
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
    fn a_slow_round_does_not_move_the_ratio() {
        let ours = [2.0, 20.0, 2.0];
        let theirs = [4.0, 40.0, 4.0];
        assert_eq!(quartiles(ratios(ours, theirs)).median, 0.5);
    }
}
