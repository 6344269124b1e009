//! What a run has found, for people.

use std::fmt::{self, Write};

use super::{Process, Row};
use crate::args::Compare;
use crate::cases::{Goal, MEAN, Unit};
use crate::stats::{Interval, ends_of, interval, ratios};

/// Everything that a run has found.
pub(super) fn markdown(args: &Compare, machine: &[(&str, String)], rows: &[Row]) -> String {
    let mut out = String::new();
    write(&mut out, args, machine, rows).expect("a String takes all");
    out
}

fn write(
    out: &mut String,
    args: &Compare,
    machine: &[(&str, String)],
    rows: &[Row],
) -> fmt::Result {
    for (name, value) in machine {
        writeln!(out, "- {name}: {}", if value.is_empty() { "unknown" } else { value })?;
    }
    let origin = |processes: &[Process]| processes[0].rayon_core.clone();
    writeln!(out, "- rayon-core: stock {}", origin(&rows[0].stock))?;
    writeln!(out, "- rayon-core: heist {}", origin(&rows[0].heist))?;
    writeln!(out, "- threads: {}, rounds: {}\n", args.threads, args.rounds)?;
    let ends = ends_of(args.rounds);
    writeln!(out, "| case | stock | heist | heist / stock ({ends}) | target | |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---|")?;
    let findings: Vec<Finding> = rows.iter().map(Finding::of).collect();
    for finding in &findings {
        finding.line(out)?;
    }
    summary(out, &findings)
}

/// What the rounds say of a case.
struct Finding<'a> {
    row: &'a Row,
    stock: f64,
    heist: f64,
    /// In the order of the rounds.
    ratios: Vec<f64>,
    ratio: Interval,
}

impl<'a> Finding<'a> {
    fn of(row: &'a Row) -> Self {
        let medians = |side: &[Process]| side.iter().map(Process::median).collect::<Vec<_>>();
        let (stock, heist) = (medians(&row.stock), medians(&row.heist));
        let ratios: Vec<f64> = ratios(heist.clone(), stock.clone()).collect();
        Self {
            row,
            stock: interval(stock).median,
            heist: interval(heist).median,
            ratio: interval(ratios.iter().copied()),
            ratios,
        }
    }

    fn met(&self) -> bool {
        match self.row.case.goal {
            Goal::Ratio(at_most) => self.ratio.median <= at_most,
            Goal::Floor(more) => self.heist <= self.stock + more,
        }
    }

    /// Does it count for the mean?
    fn is_of_time(&self) -> bool {
        self.row.case.unit == Unit::Nanoseconds
    }

    fn line(&self, out: &mut String) -> fmt::Result {
        let (stock, heist) = match self.row.case.unit {
            Unit::Nanoseconds => (time(self.stock), time(self.heist)),
            Unit::CpuMillis => (cpu(self.stock), cpu(self.heist)),
        };
        let Interval { low, median, high, .. } = self.ratio;
        let goal = match self.row.case.goal {
            Goal::Ratio(at_most) => format!("{at_most:.2}"),
            Goal::Floor(more) => format!("+{more:.2} ms/s"),
        };
        let (id, verdict) = (self.row.case.id, verdict(self.met()));
        writeln!(
            out,
            "| {id} | {stock} | {heist} | {median:.3} ({low:.3}–{high:.3}) | {goal} | {verdict} |"
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

/// Of at least one value.
fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e3 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.2} µs", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}

fn cpu(millis: f64) -> String {
    format!("{millis:.3} ms/s")
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{args, row};

    fn text(rows: &[Row]) -> String {
        markdown(&args(), &[("cpu", "Fast".into()), ("commit", String::new())], rows)
    }

    #[test]
    fn a_ratio_is_one_of_the_same_round() {
        let text = text(&[row("join/fib", &[2e3, 40e3, 2e3], &[1e3, 12e3, 0.6e3])]);
        let line = "| join/fib | 2.00 µs | 1.00 µs | 0.300 (0.300–0.500) | 0.40 | met |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Targets of the cases: 1 met, 0 missed."), "{text}");
        assert!(text.contains("- cpu: Fast\n- commit: unknown\n"), "{text}");
    }

    #[test]
    fn no_cpu_on_either_side_is_fine() {
        let idle = text(&[row("idle", &[0.0; 3], &[0.0; 3])]);
        let line = "| idle | 0.000 ms/s | 0.000 ms/s | 0.000 (0.000–0.000) | +0.15 ms/s | met |";
        assert!(idle.contains(line), "{idle}");
        assert!(!idle.contains("Geometric"), "{idle}");
        assert!(text(&[row("idle", &[0.0; 3], &[0.1; 3])]).contains(" 1 met, 0 missed."));
        assert!(text(&[row("idle", &[1.0; 3], &[1.2; 3])]).contains(" 0 met, 1 missed."));
    }

    #[test]
    fn the_mean_is_of_times_only() {
        let text = text(&[
            row("idle", &[1.0], &[9.0]),
            row("join/fib", &[4e6], &[1e6]),
            row("lines", &[1e6], &[1e6]),
        ]);
        let line = "Geometric mean of 2 ratios of time: 0.500 (smallest–largest of the rounds' \
                    0.500–0.500), target 0.80: met.";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Targets of the cases: 2 met, 1 missed."), "{text}");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(time(912.4), "912 ns");
        assert_eq!(time(1_500.0), "1.50 µs");
        assert_eq!(time(2.5e6), "2.50 ms");
    }
}
