//! A histogram of times: buckets of one nanosecond up to 32 ns, then buckets of three to six per cent.

use hdrhistogram::Histogram;

/// One significant decimal digit or a little more, which is enough for a picture.
const DIGITS: u8 = 1;

/// Returns the non-empty buckets: the upper end in nanoseconds, and the number of values.
pub fn buckets(nanoseconds: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut histogram = Histogram::<u64>::new(DIGITS).expect("one digit is a valid precision");
    for time in nanoseconds {
        histogram.record(time).expect("the histogram grows automatically");
    }
    let bucket = |at: hdrhistogram::iterators::IterationValue<u64>| {
        (at.value_iterated_to(), at.count_since_last_iteration())
    };
    histogram.iter_recorded().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_bucket() {
        let found = buckets([0, 7, 7, 1_000_000, 1_010_000, 2_000_000]);
        let counts: Vec<_> = found.iter().map(|&(_, count)| count).collect();
        assert_eq!(counts, [1, 2, 2, 1]);
        assert_eq!((found[0].0, found[1].0), (0, 7));
        assert!((1_010_000..1_100_000).contains(&found[2].0), "{found:?}");
    }

    /// The report page states this width.
    #[test]
    fn a_bucket_is_three_to_six_per_cent_wide() {
        for time in (1..32).chain((32..100_000).step_by(7)) {
            let end = buckets([time])[0].0;
            assert!(end >= time, "{time}: {end}");
            // The next time is in the next bucket.
            let wide = buckets([end + 1])[0].0 - end;
            let part = wide as f64 / end as f64;
            assert!(wide == 1 || (0.031..0.0646).contains(&part), "{time}: {wide}");
            assert!(time >= 32 || end == time, "{time}: {end}");
        }
    }

    #[test]
    fn no_values_give_no_buckets() {
        assert_eq!(buckets([]), []);
    }
}
