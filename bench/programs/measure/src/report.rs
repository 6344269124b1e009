//! The table of a comparison, made from its record.

use std::fmt::{self, Write};

use harness::record::{Record, Series};
use harness::report;
use harness::stats::{Interval, ends_of, interval, ratios};

use crate::cases;
use crate::compare::{CPU, HEIST, MEMORY, STOCK, WALL};

/// Returns the machine, the table of all cases, and the geometric means, as Markdown.
pub(crate) fn markdown(record: &Record) -> String {
    let mut out = String::new();
    write(&mut out, record).expect("writing to a String does not fail");
    out
}

fn write(out: &mut String, record: &Record) -> fmt::Result {
    report::head(out, record)?;
    let found: Vec<_> =
        cases::all().iter().filter_map(|case| Finding::of(case.id, record)).collect();
    writeln!(
        out,
        "\nheist / stock: median of the pairs and its {}; losses are bold.\n",
        ends_of(record.rounds)
    )?;
    writeln!(out, "| program | what it does | stock | wall time | processor time | peak memory |")?;
    writeln!(out, "|---|---|---:|---:|---:|---:|")?;
    for finding in &found {
        finding.line(out)?;
    }
    if found.is_empty() {
        return Ok(());
    }
    let [wall, cpu, memory] = [0, 1, 2].map(|which| {
        let logarithms = found.iter().map(|finding| finding.ratios[which].median.ln());
        (logarithms.sum::<f64>() / found.len() as f64).exp()
    });
    writeln!(
        out,
        "\nGeometric means of {}: {wall:.3} of the wall time, {cpu:.3} of the processor time, {memory:.3} of the peak memory.",
        found.len()
    )
}

/// What the pairs show of a case.
struct Finding<'r> {
    id: &'static str,
    title: &'r str,
    /// The median time of the stock build, in milliseconds.
    milliseconds: f64,
    /// The ratios of wall time, processor time and peak memory.
    ratios: [Interval; 3],
}

impl<'r> Finding<'r> {
    /// Returns what the record shows of the case, or `None` if it does not have the case.
    fn of(id: &'static str, record: &'r Record) -> Option<Self> {
        let series = |by: &str| {
            let is_it = |series: &&Series| series.case == id && series.by == by;
            record.samples.iter().find(is_it)
        };
        let (stock, heist) = (series(STOCK)?, series(HEIST)?);
        let values =
            |series: &Series, key| series.values.get(key).cloned().filter(|all| !all.is_empty());
        let ratio = |key| Some(interval(ratios(values(heist, key)?, values(stock, key)?)));
        Some(Self {
            id,
            title: &stock.title,
            milliseconds: interval(values(stock, WALL)?).median / 1e6,
            ratios: [ratio(WALL)?, ratio(CPU)?, ratio(MEMORY)?],
        })
    }

    fn line(&self, out: &mut String) -> fmt::Result {
        let [wall, cpu, memory] = self.ratios.map(shown);
        let Self { id, title, milliseconds, .. } = self;
        writeln!(out, "| {id} | {title} | {milliseconds:.0} ms | {wall} | {cpu} | {memory} |")
    }
}

/// Returns a ratio, bold if it is above 1 as it is printed.
fn shown(ratio: Interval) -> String {
    let Interval { low, median, high, .. } = ratio;
    let bold = if (median * 1e3).round() > 1e3 { "**" } else { "" };
    format!("{bold}{median:.3}{bold} ({low:.3}–{high:.3})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stock: &[f64], heist: &[f64]) -> String {
        let series = |by: &str, values: &[f64]| Series {
            case: "tokei".into(),
            title: "counts".into(),
            by: by.into(),
            values: [WALL, CPU, MEMORY].map(|key| (key.into(), values.to_vec())).into(),
            ..Series::default()
        };
        let samples = vec![series(STOCK, stock), series(HEIST, heist)];
        markdown(&Record { samples, rounds: stock.len(), ..Record::default() })
    }

    #[test]
    fn ratios_are_of_the_same_pair() {
        let text = text(&[2e6, 40e6, 2e6], &[1e6, 12e6, 0.6e6]);
        assert!(text.contains("| tokei | counts | 2 ms | 0.300 (0.300–0.500) |"), "{text}");
        assert!(text.contains("Geometric means of 1: 0.300 of the wall time"), "{text}");
    }

    #[test]
    fn losses_are_bold() {
        assert!(text(&[1e6; 3], &[1.001e6; 3]).contains("| **1.001** (1.001–1.001) |"));
        assert!(text(&[1e6; 3], &[1e6; 3]).contains("| 1.000 (1.000–1.000) |"));
        assert!(text(&[1e6; 3], &[12e6; 3]).contains("| **12.000** (12.000–12.000) |"));
    }

    #[test]
    fn a_record_without_cases_is_an_empty_table() {
        assert!(!markdown(&Record::default()).contains("Geometric"));
    }
}
