//! The comparisons in which heist is slower than another peer. The terminal and the page share the answer.

use heist_bench::stats::Interval;

use crate::cases::Case;
use crate::verdict::{self, Verdict};

/// heist compared with another peer, by one of the times of a case.
pub(crate) struct Comparison<'c> {
    /// The name of the case and of the time: `duel/skewed with 2 workers`, `duel/latency, p99`.
    pub(crate) what: String,
    pub(crate) than: &'c str,
    /// heist's time divided by the other's.
    pub(crate) ratio: Interval,
}

impl Comparison<'_> {
    /// Returns `true` if heist is slower by more than the noise.
    pub(crate) fn is_lost(&self) -> bool {
        self.verdict() == Verdict::More
    }

    /// Returns `true` if there are too few rounds to tell.
    pub(crate) fn is_undecided(&self) -> bool {
        self.verdict() == Verdict::TooFew
    }

    fn verdict(&self) -> Verdict {
        verdict::of_ratio(&self.ratio)
    }
}

/// Compares heist with every other peer, including heist's other strategies, by every time that was measured.
/// The worst ratio comes first.
pub(crate) fn comparisons<'c>(
    cases: impl IntoIterator<Item = &'c Case<'c>>,
) -> Vec<Comparison<'c>> {
    let mut all: Vec<_> = cases.into_iter().flat_map(of_case).collect();
    all.sort_by(|a, b| b.ratio.median.total_cmp(&a.ratio.median));
    all
}

fn of_case<'c>(case: &'c Case<'c>) -> Vec<Comparison<'c>> {
    let mut found = Vec::new();
    for metric in case.metrics.iter().filter(|metric| metric.is_time()) {
        let Some(ours) = metric.ours() else { continue };
        let part = metric.part().map(|part| format!(", {part}")).unwrap_or_default();
        let others = metric.entries.iter().filter(|other| other.by != ours.by);
        found.extend(others.filter_map(|other| {
            let what = format!("{}{part}", case.phrase());
            Some(Comparison { what, than: other.by, ratio: ours.over(other)? })
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use heist_bench::record::{Record, Series};

    use super::*;
    use crate::cases::cases;

    fn answers(by: &str, half: f64, most: f64) -> Series {
        let values = [("p50_nanoseconds", half), ("p99_nanoseconds", most), ("wake_ups", 9.0)];
        Series {
            workload: "duel".into(),
            case: "latency".into(),
            by: by.into(),
            values: values.map(|(key, value)| (key.into(), vec![value; 6])).into(),
            ..Series::default()
        }
    }

    #[test]
    fn every_time_is_compared_with_every_peer_and_the_worst_is_first() {
        let samples = vec![
            answers("heist", 10.0, 60.0),
            answers("heist-global", 20.0, 20.0),
            answers("rayon", 8.0, 40.0),
        ];
        let record = Record { samples, ..Record::default() };
        let cases = cases(&record);
        let found: Vec<_> = comparisons(&cases)
            .into_iter()
            .map(|found| (found.is_lost(), found.ratio.median, found.what, found.than))
            .collect();
        let (half, most) = ("duel/latency, p50".to_owned(), "duel/latency, p99".to_owned());
        let expected = [
            (true, 3.0, most.clone(), "heist-global"),
            (true, 1.5, most, "rayon"),
            (true, 1.25, half.clone(), "rayon"),
            (false, 0.5, half, "heist-global"),
        ];
        assert_eq!(found, expected);
    }
}
