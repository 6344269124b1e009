//! The table of `heist compare`: a row for everything that both records have.

use heist_bench::metric::{self, Better};
use heist_bench::record::{Record, Series};
use heist_bench::stats::{Ends, Interval, interval};

use crate::out::harmless;
use crate::verdict::{self, Verdict};

/// Returns the table, a list of what only one record has, and how to read the result.
pub(super) fn markdown(before: &Record, after: &Record) -> String {
    let mut out = String::new();
    let lines: Vec<Line<'_>> = before.samples.iter().flat_map(|a| lines(a, after)).collect();
    if lines.is_empty() {
        out.push_str("The two files have no case in common.\n");
    } else {
        out.push_str(&head(&lines));
        lines.iter().for_each(|line| out.push_str(&line.markdown()));
    }
    only(&mut out, "A", before, after);
    only(&mut out, "B", after, before);
    if !lines.is_empty() {
        out.push_str(
            "\nThe interval of a ratio follows from the intervals of the two medians. Where those overlap, no \
             difference is seen. Each interval covers the rounds of one process, and processes differ as well: \
             repeat both sides before you trust a small difference.\n",
        );
    }
    if lines.iter().any(Line::has_extremes) {
        out.push_str(
            "With fewer than 6 rounds there is no 95 % confidence interval, and the brackets are the smallest \
             and the largest value. Measure again with --rounds 6 or more.\n",
        );
    }
    out
}

/// Returns the header. It says what the brackets mean if that is the same in all rows.
fn head(lines: &[Line<'_>]) -> String {
    let brackets = |of: fn(&Line<'_>) -> Ends| {
        let ends = of(&lines[0]);
        let same = lines.iter().all(|line| of(line) == ends);
        if same { ends.to_string() } else { "interval".to_owned() }
    };
    format!(
        "| case | peer | metric | A, median ({}) | B, median ({}) | ratio B/A | |\n\
         |---|---|---|---:|---:|---:|---|\n",
        brackets(|line| line.a.ends),
        brackets(|line| line.b.ends)
    )
}

/// A row: values that both records have.
struct Line<'r> {
    series: &'r Series,
    key: &'r str,
    a: Interval,
    b: Interval,
}

impl Line<'_> {
    fn has_extremes(&self) -> bool {
        [self.a.ends, self.b.ends].contains(&Ends::Extremes)
    }

    fn markdown(&self) -> String {
        let (series, a, b) = (self.series, &self.a, &self.b);
        let metric = metric::named(self.key);
        let show =
            |value: f64| metric.map_or_else(|| format!("{value:.3}"), |metric| metric.show(value));
        let spread =
            |of: &Interval| format!("{} ({}–{})", show(of.median), show(of.low), show(of.high));
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            harmless(&series.id()),
            harmless(&series.by),
            metric.map_or_else(|| harmless(self.key), |metric| metric.title.to_owned()),
            spread(a),
            spread(b),
            ratio(b, a),
            self.verdict(),
        )
    }

    fn verdict(&self) -> &'static str {
        let metric = metric::named(self.key);
        let is_time = metric.is_some_and(metric::Metric::is_time);
        match (verdict::beside(&self.b, &self.a), metric.map(|metric| metric.better)) {
            (Verdict::TooFew, _) => "too few rounds to tell",
            (Verdict::Same, _) => "no difference seen",
            // It is unknown whether more is better.
            (_, None) => "different",
            (Verdict::Less, _) if is_time => "faster",
            (Verdict::More, _) if is_time => "slower",
            (Verdict::Less, Some(Better::Less)) | (Verdict::More, Some(Better::More)) => "better",
            _ => "worse",
        }
    }
}

/// Formats a ratio with the interval that the two intervals leave possible. There is no ratio to zero.
fn ratio(of: &Interval, to: &Interval) -> String {
    if to.median == 0.0 {
        return "–".into();
    }
    let (median, least) = (of.median / to.median, of.low / to.high);
    if to.low == 0.0 {
        return format!("{median:.3} ({least:.3} or more)");
    }
    format!("{median:.3} ({least:.3}–{:.3})", of.high / to.low)
}

/// Returns a row for each metric that the other record has as well.
fn lines<'r>(a: &'r Series, after: &'r Record) -> Vec<Line<'r>> {
    let Some(b) = find(a, after) else { return Vec::new() };
    let line = |(key, values): (&'r str, &'r [f64])| {
        let (_, others) = b.measured().find(|(other, _)| *other == key)?;
        let of = |values: &[f64]| interval(values.iter().copied());
        Some(Line { series: a, key, a: of(values), b: of(others) })
    };
    a.measured().filter_map(line).collect()
}

fn find<'r>(series: &Series, record: &'r Record) -> Option<&'r Series> {
    record.samples.iter().find(|other| other.id() == series.id() && other.by == series.by)
}

/// Lists the series that only one record has.
fn only(out: &mut String, name: &str, one: &Record, other: &Record) {
    let missing: Vec<&Series> =
        one.samples.iter().filter(|series| find(series, other).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    out.push_str(&format!("\nOnly in {name}:\n\n"));
    for case in missing.chunk_by(|a, b| a.id() == b.id()) {
        let by: Vec<&str> = case.iter().map(|series| series.by.as_str()).collect();
        let (case, by) = (harmless(&case[0].id()), harmless(&by.join(", ")));
        out.push_str(&format!("- {case}: {by}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(case: &str, by: &str, key: &str, values: &[f64]) -> Series {
        Series {
            workload: "spawn".into(),
            case: case.into(),
            by: by.into(),
            values: [(key.into(), values.to_vec())].into(),
            ..Series::default()
        }
    }

    fn record(samples: Vec<Series>) -> Record {
        Record { samples, ..Record::default() }
    }

    /// Returns values around `value` whose interval extends by one to either side.
    fn around(value: f64) -> Vec<f64> {
        vec![value - 1.0, value - 1.0, value, value, value + 1.0, value + 1.0]
    }

    fn verdict(key: &str, a: f64, b: f64) -> String {
        let record = |value| record(vec![series("x", "heist", key, &around(value))]);
        let text = markdown(&record(a), &record(b));
        let line = text.lines().nth(2).unwrap();
        line.trim_end_matches(" |").rsplit("| ").next().unwrap().to_owned()
    }

    #[test]
    fn intervals_that_overlap_show_no_difference() {
        assert_eq!(verdict("nanoseconds", 10.0, 11.0), "no difference seen");
        assert_eq!(verdict("nanoseconds", 10.0, 12.0), "no difference seen");
        assert_eq!(verdict("nanoseconds", 10.0, 13.0), "slower");
        assert_eq!(verdict("nanoseconds", 13.0, 10.0), "faster");
    }

    #[test]
    fn more_of_some_metrics_is_better() {
        assert_eq!(verdict("steals_per_second", 10.0, 20.0), "better");
        assert_eq!(verdict("wake_ups_per_1000", 10.0, 20.0), "worse");
        assert_eq!(verdict("unheard_of", 10.0, 20.0), "different");
    }

    #[test]
    fn the_interval_of_a_ratio_follows_from_both() {
        let record = |value| record(vec![series("x", "heist", "nanoseconds", &around(value))]);
        let text = markdown(&record(10.0), &record(20.0));
        let expected = "| spawn/x | heist | ns per operation | 10.00 (9.00–11.00) | 20.00 (19.00–21.00) | \
                        2.000 (1.727–2.333) | slower |";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_limits_of_the_intervals_are_explained() {
        let said = "the rounds of one process, and processes differ as well";
        let record = |case| record(vec![series(case, "heist", "nanoseconds", &around(10.0))]);
        assert!(markdown(&record("x"), &record("x")).contains(said));
        assert!(!markdown(&record("x"), &record("y")).contains(said));
    }

    #[test]
    fn few_rounds_have_no_verdict() {
        let record = |value| record(vec![series("x", "heist", "nanoseconds", &[value; 5])]);
        for other in [1.0, 9.0] {
            let text = markdown(&record(1.0), &record(other));
            assert!(text.contains("| too few rounds to tell |"), "{text}");
            assert!(text.contains("--rounds 6 or more"), "{text}");
        }
    }

    #[test]
    fn the_header_says_what_the_brackets_mean() {
        let of = |case: &str, rounds| series(case, "heist", "nanoseconds", &vec![1.0; rounds]);
        let few = record(vec![of("x", 5), of("y", 5)]);
        let mixed = record(vec![of("x", 5), of("y", 6)]);
        let many = record(vec![of("x", 6), of("y", 6)]);
        let head = |a, b| markdown(a, b).lines().next().unwrap().to_owned();
        let found = head(&few, &many);
        assert!(found.contains("| A, median (smallest–largest) | B, median (95 %"), "{found}");
        let found = head(&many, &mixed);
        assert!(found.contains("interval) | B, median (interval) |"), "{found}");
    }

    #[test]
    fn there_is_no_ratio_to_zero() {
        let record = |values: &[f64]| record(vec![series("x", "heist", "thefts", values)]);
        let some = record(&around(2.0));
        for (nothing, expected) in
            [(&[0.0; 6], "| – |"), (&[0.0, 1.0, 1.0, 1.0, 1.0, 2.0], "| 2.000 (0.500 or more) |")]
        {
            let text = markdown(&record(nothing), &some);
            assert!(text.contains(expected), "{text}");
            assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        }
        let text = markdown(&some, &record(&[0.0; 6]));
        assert!(text.contains("| 0.000 (0.000–0.000) |"), "{text}");
    }

    #[test]
    fn implausible_values_are_left_out() {
        let record = |value| record(vec![series("x", "heist", "nanoseconds", &[value; 6])]);
        for odd in [-1.0, 1e-306, 1e306] {
            for text in [markdown(&record(1.0), &record(odd)), markdown(&record(odd), &record(1.0))]
            {
                assert!(text.starts_with("The two files have no case in common."), "{text}");
            }
        }
    }

    #[test]
    fn series_of_one_record_only_are_listed() {
        let a = series("x", "heist", "nanoseconds", &around(9.0));
        let b = series("y", "heist", "nanoseconds", &around(9.0));
        let c = Series { by: "rayon".into(), ..b.clone() };
        let text = markdown(&record(vec![a.clone(), b.clone(), c]), &record(vec![a.clone()]));
        assert!(text.contains("\nOnly in A:\n\n- spawn/y: heist, rayon\n"), "{text}");
        let text = markdown(&record(vec![a]), &record(vec![b]));
        assert!(text.starts_with("The two files have no case in common."), "{text}");
        assert!(text.contains("\nOnly in B:\n\n- spawn/y: heist\n"), "{text}");
    }
}
