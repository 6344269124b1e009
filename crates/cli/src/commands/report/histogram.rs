//! Histograms of times, in bins of equal width on a logarithmic axis, whatever the recorded buckets are.

use super::svg::{PLANE, across, anchor, decimal, label};
use crate::units;

/// The maximum number of axis labels; a phone has no room for more.
const MAX_TICKS: usize = 4;
/// The maximum number of bins.
const MAX_BINS: usize = 64;

/// A logarithmic time axis, divided into bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    bins: usize,
}

impl Axis {
    /// Returns an axis that covers all buckets. `None` if they are empty.
    pub(super) fn of<'b>(all: impl IntoIterator<Item = &'b [(u64, u64)]>) -> Option<Self> {
        let all: Vec<_> = all.into_iter().collect();
        let parts: Vec<_> = all.iter().flat_map(|buckets| parts(buckets)).collect();
        let low = parts.iter().map(|part| part.0).reduce(f64::min)?;
        let high = parts.iter().map(|part| part.1).reduce(f64::max)?;
        // Otherwise, a single bucket would fill the page.
        let high = high.max(low * 3.0);
        // A bin is at least as wide as a bucket, which would be drawn as several bins otherwise.
        let width = all.iter().map(|buckets| factor(buckets)).fold(2.0, f64::min);
        let bins = ((high / low).ln() / width.ln()).round() as usize;
        Some(Self { low, high, bins: bins.clamp(4, MAX_BINS) })
    }

    /// Returns the number of bins.
    pub(super) fn count(&self) -> usize {
        self.bins
    }

    /// Returns the position of a time, from 0 to 1.
    pub(super) fn place(&self, nanoseconds: f64) -> f64 {
        (nanoseconds.max(self.low) / self.low).ln() / (self.high / self.low).ln()
    }

    /// Returns the upper end of a bin.
    pub(super) fn end(&self, bin: usize) -> f64 {
        self.low * (self.high / self.low).powf((bin as f64 + 1.0) / self.bins as f64)
    }

    /// Returns the share of all times in each bin.
    pub(super) fn bins(&self, buckets: &[(u64, u64)]) -> Vec<f64> {
        let total: f64 = buckets.iter().map(|&(_, count)| count as f64).sum();
        let place = |time| self.place(time) * self.bins as f64;
        let mut bins = vec![0.0; self.bins];
        for (from, to, count) in parts(buckets) {
            let (from, to) = (place(from), place(to));
            let last = (to.ceil() as usize).clamp(1, self.bins);
            let first = (from as usize).min(last - 1);
            let width = to - from;
            for (bin, part) in bins.iter_mut().enumerate().take(last).skip(first) {
                let inside = to.min(bin as f64 + 1.0) - from.max(bin as f64);
                let share = if width > 0.0 { (inside / width).clamp(0.0, 1.0) } else { 1.0 };
                *part += share * count as f64 / total;
            }
        }
        bins
    }

    /// Returns round times for the labels: powers of ten and, if there is room, also their multiples by two
    /// and five.
    fn round_times(&self) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let inside = |time: &f64| (self.low..=self.high).contains(time);
        let tens: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
        let fine = tens.iter().flat_map(|ten| [*ten, 2.0 * ten, 5.0 * ten]);
        let fine: Vec<f64> = fine.filter(inside).collect();
        if fine.len() <= MAX_TICKS {
            return fine;
        }
        let tens: Vec<f64> = tens.into_iter().filter(inside).collect();
        let step = tens.len().div_ceil(MAX_TICKS);
        tens.into_iter().step_by(step).collect()
    }

    /// Returns the labels below a plot of this height, with vertical grid lines.
    pub(super) fn ticks(&self, height: u32) -> String {
        let times = self.round_times();
        times
            .iter()
            .map(|&time| {
                let place = self.place(time);
                let x = across(place);
                let words = label("axis", &x, height + 15, anchor(place), &round(time));
                format!(
                    "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\"/>{words}\n"
                )
            })
            .collect()
    }
}

/// Formats a round time, without decimals.
fn round(time: f64) -> String {
    units::time(time).replace(".00 ", " ").replace(".0 ", " ")
}

/// Returns the outline of a histogram as a path in a plane of this height. `most` is the share of the highest
/// bin.
pub(super) fn steps(bins: &[f64], most: f64, height: u32) -> String {
    let mut path = format!("M0 {height}");
    let mut level = 0.0;
    for (bin, &part) in bins.iter().chain([&0.0]).enumerate() {
        if part != level {
            let x = f64::from(PLANE) * bin as f64 / bins.len() as f64;
            path.push_str(&format!(
                "H{}V{}",
                decimal(x),
                decimal(f64::from(height) * (1.0 - part / most))
            ));
            level = part;
        }
    }
    path
}

/// Returns the number of times in all buckets.
pub(super) fn total(buckets: &[(u64, u64)]) -> u64 {
    buckets.iter().map(|&(_, count)| count).fold(0, u64::saturating_add)
}

/// Returns the upper end of the bucket that contains this percentile. `None` if there are no times.
pub(super) fn percentile(buckets: &[(u64, u64)], fraction: f64) -> Option<u64> {
    let total: u128 = buckets.iter().map(|&(_, count)| u128::from(count)).sum();
    // The conversion to a float may round a large number up.
    let wanted = ((fraction * total as f64).ceil() as u128).clamp(1, total.max(1));
    let mut sorted = buckets.to_vec();
    sorted.sort_unstable();
    let mut seen = 0;
    sorted.into_iter().find_map(|(upper, count)| {
        seen += u128::from(count);
        (seen >= wanted).then_some(upper)
    })
}

/// Returns the lower end, the upper end and the count of each bucket. Only upper ends are recorded, and empty
/// buckets may be missing: a bucket starts where the previous one ends or, if that is far away, is as wide as
/// the narrowest.
fn parts(buckets: &[(u64, u64)]) -> Vec<(f64, f64, u64)> {
    let factor = factor(buckets);
    let mut before = 0.0;
    let mut parts = Vec::with_capacity(buckets.len());
    for (upper, count) in sorted(buckets) {
        if count > 0 {
            parts.push((f64::max(before, upper / factor), upper, count));
        }
        before = upper;
    }
    parts
}

/// Returns the ratio of the upper to the lower end of the narrowest bucket.
fn factor(buckets: &[(u64, u64)]) -> f64 {
    let sorted = sorted(buckets);
    let factors = sorted.windows(2).map(|pair| pair[1].0 / pair[0].0);
    factors.filter(|&factor| factor > 1.0).fold(2.0, f64::min).max(1.02)
}

fn sorted(buckets: &[(u64, u64)]) -> Vec<(f64, u64)> {
    let mut sorted: Vec<(f64, u64)> =
        buckets.iter().map(|&(upper, count)| ((upper as f64).max(1.0), count)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLING: [(u64, u64); 4] = [(100, 1), (200, 2), (400, 4), (800, 1)];

    #[test]
    fn bins_contain_all_times() {
        for buckets in [
            &DOUBLING[..],
            &[(7, 3)],
            &[(0, 1), (u64::MAX, 1)],
            &[(5, u64::MAX), (9, u64::MAX)],
            &[(5, 1), (5, 2)],
            &[(3, 0), (9, 4)],
        ] {
            let axis = Axis::of([buckets]).unwrap();
            let sum: f64 = axis.bins(buckets).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{buckets:?}: {sum}");
        }
    }

    #[test]
    fn a_bin_is_as_wide_as_the_narrowest_bucket() {
        let axis = Axis::of([&DOUBLING[..]]).unwrap();
        assert_eq!(axis.bins(&DOUBLING), [0.125, 0.25, 0.5, 0.125]);
        assert!((axis.end(1) - 200.0).abs() < 1e-9);
        assert_eq!(Axis::of([&[(100, 1), (101, 1), (100_000, 1)][..]]).unwrap().count(), MAX_BINS);
    }

    #[test]
    fn empty_buckets_have_no_axis() {
        assert_eq!(Axis::of([&[][..], &[(5, 0)]]), None);
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn percentiles_are_upper_ends() {
        assert_eq!(percentile(&DOUBLING, 0.5), Some(400));
        assert_eq!(percentile(&DOUBLING, 0.99), Some(800));
        assert_eq!(percentile(&DOUBLING, 0.0), Some(100));
        // As a float, the total is rounded up.
        assert_eq!(percentile(&[(7, (1 << 53) + 3)], 1.0), Some(7));
        assert_eq!(percentile(&[(7, u64::MAX), (9, u64::MAX)], 1.0), Some(9));
    }

    #[test]
    fn all_decades_are_equally_wide() {
        let axis = Axis { low: 10.0, high: 1000.0, bins: 8 };
        assert_eq!([10.0, 100.0, 1000.0, 1.0].map(|time| axis.place(time)), [0.0, 0.5, 1.0, 0.0]);
    }

    #[test]
    fn times_on_the_axis_are_round() {
        let times = |low, high| Axis { low, high, bins: 8 }.round_times();
        assert_eq!(times(150.0, 4_000.0), [200.0, 500.0, 1_000.0, 2_000.0]);
        assert_eq!(times(3.0, 4_000.0), [10.0, 100.0, 1_000.0]);
        assert_eq!(times(1.0, 5e8), [1.0, 1e3, 1e6]);
    }

    #[test]
    fn buckets_that_are_far_apart_are_not_smeared() {
        let found = parts(&[(100, 1), (110, 1), (100_000, 1)]);
        assert_eq!(found[1].0, 100.0);
        assert!(found[2].0 > 90_000.0, "{found:?}");
    }

    #[test]
    fn steps_return_to_the_base_line() {
        let path = steps(&[0.0, 0.5, 0.5, 0.25], 0.5, 100);
        assert_eq!(path, "M0 100H250V0H750V50H1000V100");
    }
}
