//! The series of a record, grouped by case: the peers, and their values.

use heist_bench::record::{Record, Series};
use heist_bench::stats::{Interval, interval, ratios};
use heist_bench::{is_ours, metric};

use crate::units;

/// A case with the values of every peer.
pub(crate) struct Case<'r> {
    pub(crate) workload: &'r str,
    /// The name without the number of workers: `duel/skewed`. Cases that differ only in that number are a
    /// family.
    pub(crate) family: String,
    /// A description in words. May be empty.
    pub(crate) title: &'r str,
    pub(crate) workers: Option<usize>,
    /// The metrics that have values; at least one.
    pub(crate) metrics: Vec<Metric<'r>>,
    key: (&'r str, Option<&'r str>, &'r str, Option<usize>),
}

/// One metric that was measured in a case, such as the time per operation.
pub(crate) struct Metric<'r> {
    pub(crate) key: &'r str,
    pub(crate) entries: Vec<Entry<'r>>,
}

/// The values of one peer.
pub(crate) struct Entry<'r> {
    pub(crate) by: &'r str,
    /// The value of each round; at least one.
    pub(crate) values: &'r [f64],
    pub(crate) middle: Interval,
    pub(crate) disturbed: usize,
    /// The peer runs on one thread, without workers.
    sequential: bool,
}

/// Returns all cases that have values, in the order of the record.
pub(crate) fn cases(record: &Record) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for series in &record.samples {
        let key = (&*series.workload, series.item.as_deref(), &*series.case, series.workers);
        let place = cases.iter().position(|case| case.key == key).unwrap_or_else(|| {
            cases.push(Case {
                workload: &series.workload,
                family: family(series),
                title: title(series),
                workers: series.workers,
                metrics: Vec::new(),
                key,
            });
            cases.len() - 1
        });
        cases[place].add(series);
    }
    cases.retain(|case| !case.metrics.is_empty());
    cases
}

/// Returns the description of a case without the number of workers at its end.
fn title(series: &Series) -> &str {
    let own = series.workers.map(|workers| format!(", {}", units::of(workers as u64, "worker")));
    own.and_then(|own| series.title.strip_suffix(&own)).unwrap_or(&series.title)
}

/// Returns the name of a case without the number of workers at its end.
fn family(series: &Series) -> String {
    let own = series.workers.map(|workers| workers.to_string()).unwrap_or_default();
    let case = match series.case.rsplit_once('/') {
        Some((before, last)) if last == own => before,
        _ if series.case == own => "",
        _ => &series.case,
    };
    let parts = [&series.workload, series.item.as_deref().unwrap_or_default(), case];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

impl<'r> Case<'r> {
    fn add(&mut self, series: &'r Series) {
        for (key, values) in series.measured() {
            let entry = Entry {
                by: &series.by,
                values,
                middle: interval(values.iter().copied()),
                disturbed: series.disturbed,
                sequential: series.sequential,
            };
            match self.metrics.iter_mut().find(|metric| metric.key == key) {
                Some(metric) => metric.entries.push(entry),
                None => self.metrics.push(Metric { key, entries: vec![entry] }),
            }
        }
    }

    /// Returns the name with the number of workers: `duel/skewed, 2 workers`.
    pub(crate) fn name(&self) -> String {
        match self.workers {
            Some(workers) => format!("{}, {}", self.family, units::of(workers as u64, "worker")),
            None => self.family.clone(),
        }
    }

    /// Returns the name as part of a sentence: `duel/skewed with 2 workers`.
    pub(crate) fn phrase(&self) -> String {
        self.name().replace(", ", " with ")
    }

    /// Returns the main metric: the time per operation, if it was measured.
    pub(crate) fn main(&self) -> &Metric<'r> {
        ["nanoseconds", "total_nanoseconds", "p50_nanoseconds"]
            .iter()
            .find_map(|key| self.metrics.iter().find(|metric| metric.key == *key))
            .unwrap_or(&self.metrics[0])
    }
}

impl<'r> Metric<'r> {
    /// Returns a title, derived from the end of the key. Times need no unit in their title, because every
    /// time is shown with its own.
    pub(crate) fn title(&self) -> String {
        match self.part() {
            Some(part) => format!("{part} time"),
            None if self.is_time() => "time per operation".into(),
            None => self.key.replace('_', " "),
        }
    }

    /// Returns which one of several times it is, for example `p99`.
    pub(crate) fn part(&self) -> Option<String> {
        let stem = self.key.strip_suffix("_nanoseconds")?;
        Some(stem.replace('_', " "))
    }

    /// Returns `true` if the metric is a time, for which less is better.
    pub(crate) fn is_time(&self) -> bool {
        metric::is_time(self.key)
    }

    pub(crate) fn show(&self, value: f64) -> String {
        if self.is_time() { units::time(value) } else { units::number(value) }
    }

    /// Returns the values of one peer.
    pub(crate) fn entry(&self, by: &str) -> Option<&Entry<'r>> {
        self.entries.iter().find(|entry| entry.by == by)
    }

    /// Returns the values of heist: those of work stealing, or else of another strategy.
    pub(crate) fn ours(&self) -> Option<&Entry<'r>> {
        self.entry("heist").or_else(|| self.entries.iter().find(|entry| is_ours(entry.by)))
    }

    /// Returns the reference that heist is compared with: rayon, or else the fastest of the other peers.
    pub(crate) fn reference(&self) -> Option<&Entry<'r>> {
        let others = self.entries.iter().filter(|entry| !is_ours(entry.by));
        let best = others.min_by(|a, b| a.middle.median.total_cmp(&b.middle.median));
        self.entry("rayon").or(best)
    }
}

impl Entry<'_> {
    /// Returns the ratios of these values to another peer's, round by round. `None` if any value is zero.
    pub(crate) fn over(&self, other: &Self) -> Option<Interval> {
        if other.values.iter().chain(self.values).any(|&value| value <= 0.0) {
            return None;
        }
        Some(interval(ratios(self.values.iter().copied(), other.values.iter().copied())))
    }
}

/// Returns the speed-up of a peer from one worker to many, round by round. `None` for a peer without workers,
/// and for metrics that more workers do not improve, such as latency: one worker gives the answer.
pub(crate) fn speed_up(one: &Case<'_>, many: &Case<'_>, by: &str) -> Option<Interval> {
    let (one, many) = (one.main(), many.main());
    if one.key != many.key || !["nanoseconds", "total_nanoseconds"].contains(&one.key) {
        return None;
    }
    let (one, many) = (one.entry(by)?, many.entry(by)?);
    if one.sequential || many.sequential {
        return None;
    }
    one.over(many)
}

/// Returns the ideal speed-up of a number of workers: more workers than processors have to share them. If
/// `cores` is 0, their number is unknown.
pub(crate) fn ideal(workers: usize, cores: usize) -> usize {
    if cores == 0 { workers } else { workers.min(cores) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(case: &str, workers: Option<usize>, by: &str, values: &[f64]) -> Series {
        Series {
            workload: "duel".into(),
            case: case.into(),
            workers,
            by: by.into(),
            values: [("nanoseconds".into(), values.to_vec())].into(),
            ..Series::default()
        }
    }

    fn record(samples: Vec<Series>) -> Record {
        Record { samples, ..Record::default() }
    }

    #[test]
    fn peers_of_one_case_are_grouped() {
        let record = record(vec![
            series("skewed/2", Some(2), "heist", &[1.0]),
            series("skewed/1", Some(1), "heist", &[2.0]),
            series("skewed/2", Some(2), "rayon", &[3.0]),
        ]);
        let cases = cases(&record);
        let names: Vec<String> = cases.iter().map(Case::name).collect();
        assert_eq!(names, ["duel/skewed, 2 workers", "duel/skewed, 1 worker"]);
        assert_eq!(cases[0].main().entries.len(), 2);
        assert_eq!(cases[0].family, cases[1].family);
    }

    #[test]
    fn only_the_number_of_workers_is_removed_from_a_name() {
        assert_eq!(family(&series("skewed/2", Some(4), "", &[])), "duel/skewed/2");
        assert_eq!(family(&series("2", Some(2), "", &[])), "duel");
        assert_eq!(family(&series("1e6", None, "", &[])), "duel/1e6");
    }

    #[test]
    fn series_without_values_are_left_out() {
        for values in [&[][..], &[-1.0, -2.0], &[1e306]] {
            let record = record(vec![series("skewed", None, "heist", values)]);
            assert!(cases(&record).is_empty(), "{values:?}");
        }
    }

    #[test]
    fn times_of_zero_have_no_ratio() {
        let record =
            record(vec![series("a", None, "heist", &[1.0]), series("a", None, "rayon", &[0.0])]);
        let cases = cases(&record);
        let main = cases[0].main();
        assert_eq!(main.ours().unwrap().over(main.reference().unwrap()), None);
    }

    #[test]
    fn speed_ups_are_computed_within_a_round() {
        let record = record(vec![
            series("a/1", Some(1), "heist", &[4.0, 9.0, 40.0]),
            series("a/2", Some(2), "heist", &[2.0, 9.0, 20.0]),
        ]);
        let cases = cases(&record);
        // The ratio of the medians would be 1.
        assert_eq!(speed_up(&cases[0], &cases[1], "heist").unwrap().median, 2.0);
        assert_eq!(speed_up(&cases[0], &cases[1], "rayon"), None);
    }

    #[test]
    fn sequential_peers_and_latencies_have_no_speed_up() {
        let pair = |key: &str, sequential| {
            let of = |case, workers| Series {
                values: [(key.to_owned(), vec![2.0])].into(),
                sequential,
                ..series(case, Some(workers), "plain", &[])
            };
            let record = record(vec![of("a/1", 1), of("a/2", 2)]);
            let cases = cases(&record);
            speed_up(&cases[0], &cases[1], "plain").is_some()
        };
        assert!(pair("nanoseconds", false) && pair("total_nanoseconds", false));
        assert!(!pair("nanoseconds", true) && !pair("p50_nanoseconds", false));
    }

    #[test]
    fn the_ideal_is_limited_by_the_cores() {
        assert_eq!([ideal(2, 4), ideal(8, 4), ideal(8, 0)], [2, 4, 8]);
    }

    #[test]
    fn without_rayon_the_best_other_is_the_reference() {
        let record = record(vec![
            series("a", None, "heist bounded", &[1.0]),
            series("a", None, "mutex", &[9.0]),
            series("a", None, "crossbeam", &[2.0]),
        ]);
        let cases = cases(&record);
        let main = cases[0].main();
        assert_eq!(main.ours().unwrap().by, "heist bounded");
        assert_eq!(main.reference().unwrap().by, "crossbeam");
    }

    #[test]
    fn titles_are_derived_from_keys() {
        let title = |key| Metric { key, entries: Vec::new() }.title();
        assert_eq!(title("nanoseconds"), "time per operation");
        assert_eq!(title("p50_nanoseconds"), "p50 time");
        assert_eq!(title("wake_ups_per_1000"), "wake ups per 1000");
    }
}
