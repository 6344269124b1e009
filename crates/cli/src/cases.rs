//! The series of a record, put together by case: who took part, and how they did.

use heist_bench::record::{Record, Series};
use heist_bench::stats::{Interval, interval, ratios};
use heist_bench::{is_ours, metric};

use crate::units;

/// A case, with everyone that took part.
pub(crate) struct Case<'r> {
    pub(crate) workload: &'r str,
    /// The name without the number of workers: `duel/skewed`.
    pub(crate) family: String,
    /// In words; may be empty.
    pub(crate) title: &'r str,
    pub(crate) workers: Option<usize>,
    /// Those that have values; at least one.
    pub(crate) metrics: Vec<Metric<'r>>,
    key: (&'r str, Option<&'r str>, &'r str, Option<usize>),
}

/// One kind of number that was measured in a case.
pub(crate) struct Metric<'r> {
    pub(crate) key: &'r str,
    pub(crate) entries: Vec<Entry<'r>>,
}

/// How one did.
pub(crate) struct Entry<'r> {
    pub(crate) by: &'r str,
    /// At least one.
    pub(crate) values: &'r [f64],
    pub(crate) middle: Interval,
    pub(crate) disturbed: usize,
    /// It has no workers.
    sequential: bool,
}

/// All cases that have values, in the order of the record.
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
        cases[place].enter(series);
    }
    cases.retain(|case| !case.metrics.is_empty());
    cases
}

/// The case in words, without the number of workers at their end.
fn title(series: &Series) -> &str {
    let own = series.workers.map(|workers| format!(", {}", units::of(workers as u64, "worker")));
    own.and_then(|own| series.title.strip_suffix(&own)).unwrap_or(&series.title)
}

/// The name of a case, without the number of workers at its end.
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
    fn enter(&mut self, series: &'r Series) {
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

    /// For people: `duel/skewed, 2 workers`.
    pub(crate) fn name(&self) -> String {
        match self.workers {
            Some(workers) => format!("{}, {}", self.family, units::of(workers as u64, "worker")),
            None => self.family.clone(),
        }
    }

    /// In a sentence: `duel/skewed with 2 workers`.
    pub(crate) fn spoken(&self) -> String {
        self.name().replace(", ", " with ")
    }

    /// What the case is about: the time it takes, if that was measured.
    pub(crate) fn main(&self) -> &Metric<'r> {
        ["nanoseconds", "total_nanoseconds", "p50_nanoseconds"]
            .iter()
            .find_map(|key| self.metrics.iter().find(|metric| metric.key == *key))
            .unwrap_or(&self.metrics[0])
    }
}

impl<'r> Metric<'r> {
    /// For people. The key says it all, by its ending: times are shown in units of their own.
    pub(crate) fn title(&self) -> String {
        match self.part() {
            Some(part) => format!("{part} time"),
            None if self.is_time() => "time per operation".into(),
            None => self.key.replace('_', " "),
        }
    }

    /// Which of several times it is, as `p99`.
    pub(crate) fn part(&self) -> Option<String> {
        let stem = self.key.strip_suffix("_nanoseconds")?;
        Some(stem.replace('_', " "))
    }

    /// Is it a time, of which less is better?
    pub(crate) fn is_time(&self) -> bool {
        metric::is_time(self.key)
    }

    pub(crate) fn show(&self, value: f64) -> String {
        if self.is_time() { units::time(value) } else { units::number(value) }
    }

    /// How one did in it.
    pub(crate) fn entry(&self, by: &str) -> Option<&Entry<'r>> {
        self.entries.iter().find(|entry| entry.by == by)
    }

    /// Our own: work stealing, if it took part.
    pub(crate) fn ours(&self) -> Option<&Entry<'r>> {
        self.entry("heist").or_else(|| self.entries.iter().find(|entry| is_ours(entry.by)))
    }

    /// Whom we are measured by: rayon, or else the best of the others.
    pub(crate) fn reference(&self) -> Option<&Entry<'r>> {
        let others = self.entries.iter().filter(|entry| !is_ours(entry.by));
        let best = others.min_by(|a, b| a.middle.median.total_cmp(&b.middle.median));
        self.entry("rayon").or(best)
    }
}

impl Entry<'_> {
    /// Our values as parts of another's, round by round. `None` where that makes no sense: something took no time.
    pub(crate) fn over(&self, other: &Self) -> Option<Interval> {
        if other.values.iter().chain(self.values).any(|&value| value <= 0.0) {
            return None;
        }
        Some(interval(ratios(self.values.iter().copied(), other.values.iter().copied())))
    }
}

/// How much faster somebody is in a case with many workers than in one with one, round by round. `None` for whoever has no
/// workers, and where more workers would not be quicker: an answer comes from one.
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

/// How much faster than one so many workers can be at best: more than there are cores share them. No cores: nobody knows.
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
    fn who_did_the_same_is_together() {
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
    fn a_number_at_the_end_is_part_of_the_name_if_it_is_not_that_of_workers() {
        assert_eq!(family(&series("skewed/2", Some(4), "", &[])), "duel/skewed/2");
        assert_eq!(family(&series("2", Some(2), "", &[])), "duel");
        assert_eq!(family(&series("1e6", None, "", &[])), "duel/1e6");
    }

    #[test]
    fn series_without_values_are_not_there() {
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
    fn speed_ups_are_of_the_same_round() {
        let record = record(vec![
            series("a/1", Some(1), "heist", &[4.0, 9.0, 40.0]),
            series("a/2", Some(2), "heist", &[2.0, 9.0, 20.0]),
        ]);
        let cases = cases(&record);
        // That of the medians is 1.
        assert_eq!(speed_up(&cases[0], &cases[1], "heist").unwrap().median, 2.0);
        assert_eq!(speed_up(&cases[0], &cases[1], "rayon"), None);
    }

    #[test]
    fn who_has_no_workers_and_what_one_answers_has_no_speed_up() {
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
    fn workers_share_the_cores() {
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
    fn keys_say_what_they_are() {
        let title = |key| Metric { key, entries: Vec::new() }.title();
        assert_eq!(title("nanoseconds"), "time per operation");
        assert_eq!(title("p50_nanoseconds"), "p50 time");
        assert_eq!(title("wake_ups_per_1000"), "wake ups per 1000");
    }
}
