//! The table of a comparison, made from its record.

use std::fmt::{self, Write};

use harness::metric::{self, Metric};
use harness::record::{Record, Series};
use harness::report;
use harness::stats::{Interval, ends_of, interval, ratios};
use harness::target::verdict;

use super::{HEIST, STOCK};
use crate::cases::{self, Case, Goal, MEAN};

/// Returns the machine, the table of all cases, and how many targets are met, as Markdown.
pub(super) fn markdown(record: &Record) -> String {
    let mut out = String::new();
    write(&mut out, record).expect("writing to a String does not fail");
    out
}

fn write(out: &mut String, record: &Record) -> fmt::Result {
    report::head(out, record)?;
    if let Some(threads) = record.samples.first().and_then(|series| series.workers) {
        writeln!(out, "- threads: {threads}")?;
    }
    let ends = ends_of(record.rounds);
    writeln!(out, "\n| case | stock | heist | heist / stock ({ends}) | target | |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---|")?;
    let cases = cases::all();
    let findings: Vec<Finding> =
        cases.iter().filter_map(|case| Finding::of(case, record)).collect();
    for finding in &findings {
        finding.line(out)?;
    }
    summary(out, &findings)
}

/// What the rounds show of a case.
struct Finding<'c> {
    case: &'c Case,
    stock: f64,
    heist: f64,
    /// The ratios, in the order of the rounds.
    ratios: Vec<f64>,
    ratio: Interval,
}

impl<'c> Finding<'c> {
    /// Returns what the record shows of the case, or `None` if it does not have the case.
    fn of(case: &'c Case, record: &Record) -> Option<Self> {
        let values = |by: &str| {
            let is_it = |series: &&Series| series.case == case.id && series.by == by;
            record.samples.iter().find(is_it)?.values.get(case.metric.key).cloned()
        };
        let (stock, heist) = (values(STOCK)?, values(HEIST)?);
        let ratios: Vec<f64> = ratios(heist.clone(), stock.clone()).collect();
        Some(Self {
            case,
            stock: interval(stock).median,
            heist: interval(heist).median,
            ratio: interval(ratios.iter().copied()),
            ratios,
        })
    }

    fn met(&self) -> bool {
        match self.case.goal {
            Goal::Ratio(at_most) => self.ratio.median <= at_most,
            Goal::Floor(more) => self.heist <= self.stock + more,
        }
    }

    /// Returns whether it counts for the geometric mean.
    fn is_of_time(&self) -> bool {
        self.case.metric.is_time()
    }

    fn line(&self, out: &mut String) -> fmt::Result {
        let show = |value| shown(self.case.metric, value);
        let Interval { low, median, high, .. } = self.ratio;
        let goal = match self.case.goal {
            Goal::Ratio(at_most) => format!("{at_most:.2}"),
            Goal::Floor(more) => format!("+{:.2} ms/s", more / metric::CPU.unit),
        };
        writeln!(
            out,
            "| {} | {} | {} | {median:.3} ({low:.3}–{high:.3}) | {goal} | {} |",
            self.case.id,
            show(self.stock),
            show(self.heist),
            verdict(self.met())
        )
    }
}

fn summary(out: &mut String, findings: &[Finding<'_>]) -> fmt::Result {
    let timed: Vec<_> = findings.iter().filter(|finding| finding.is_of_time()).collect();
    if let Some(first) = timed.first() {
        let mean = geometric_mean(timed.iter().map(|finding| finding.ratio.median));
        let of_round = |round| geometric_mean(timed.iter().map(move |found| found.ratios[round]));
        let Interval { low, high, ends, .. } = interval((0..first.ratios.len()).map(of_round));
        writeln!(
            out,
            "\nGeometric mean of {} ratios of time: {mean:.3} ({ends} of the rounds' \
             {low:.3}–{high:.3}), target {MEAN:.2}: {}.",
            timed.len(),
            verdict(mean <= MEAN)
        )?;
    }
    let met = findings.iter().filter(|finding| finding.met()).count();
    writeln!(out, "\nTargets of the cases: {met} met, {} missed.", findings.len() - met)
}

/// Returns the geometric mean of at least one value.
fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

fn shown(metric: &Metric, value: f64) -> String {
    match value {
        _ if !metric.is_time() => format!("{} ms/s", metric.show(value)),
        ..1e3 => format!("{value:.0} ns"),
        ..1e6 => format!("{:.2} µs", value / 1e3),
        _ => format!("{:.2} ms", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value for each round on either side, in nanoseconds.
    fn text(rows: &[(&str, &[f64], &[f64])]) -> String {
        let series = |case: &str, by: &str, values: &[f64]| Series {
            case: case.into(),
            by: by.into(),
            values: ["nanoseconds", "cpu_nanoseconds_per_second"]
                .map(|key| (key.into(), values.to_vec()))
                .into(),
            ..Series::default()
        };
        let both = |&(case, stock, heist): &(&str, &[f64], &[f64])| {
            [series(case, STOCK, stock), series(case, HEIST, heist)]
        };
        let samples = rows.iter().flat_map(both).collect();
        markdown(&Record { samples, rounds: rows[0].1.len(), ..Record::default() })
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let text = text(&[("join/fib", &[2e3, 40e3, 2e3], &[1e3, 12e3, 0.6e3])]);
        let line = "| join/fib | 2.00 µs | 1.00 µs | 0.300 (0.300–0.500) | 0.40 | met |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Targets of the cases: 1 met, 0 missed."), "{text}");
    }

    #[test]
    fn no_processor_time_on_either_side_meets_the_target() {
        let idle = text(&[("idle", &[0.0; 3], &[0.0; 3])]);
        let line = "| idle | 0.000 ms/s | 0.000 ms/s | 0.000 (0.000–0.000) | +0.15 ms/s | met |";
        assert!(idle.contains(line), "{idle}");
        assert!(!idle.contains("Geometric"), "{idle}");
        assert!(text(&[("idle", &[0.0; 3], &[0.1e6; 3])]).contains(" 1 met, 0 missed."));
        assert!(text(&[("idle", &[1e6; 3], &[1.2e6; 3])]).contains(" 0 met, 1 missed."));
    }

    #[test]
    fn the_mean_has_times_only() {
        let text = text(&[
            ("idle", &[1e6], &[9e6]),
            ("join/fib", &[4e6], &[1e6]),
            ("lines", &[1e6], &[1e6]),
        ]);
        let line = "Geometric mean of 2 ratios of time: 0.500 (smallest–largest of the rounds' \
                    0.500–0.500), target 0.80: met.";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Targets of the cases: 2 met, 1 missed."), "{text}");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        for (time, expected) in [(912.4, "912 ns"), (1_500.0, "1.50 µs"), (2.5e6, "2.50 ms")] {
            assert_eq!(shown(&metric::TIME, time), expected);
        }
    }

    /// The committed record gives the committed table again.
    #[test]
    fn the_recorded_run_can_be_read() {
        let record: Record =
            serde_json::from_str(include_str!("../../../record/rayon.json")).unwrap();
        let text = markdown(&record);
        let recorded = include_str!("../../../record/rayon.md");
        let columns = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
            let first = |line: &str| line.split(" | ").take(3).collect::<Vec<_>>().join(" | ");
            lines.map(first).collect()
        };
        assert_eq!(columns(&text), columns(recorded));
    }
}
