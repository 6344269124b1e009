//! The times of all peers, case by case: a bar for the median, a line for its interval, and a tick for every
//! sample.

use super::html::{Table, missing, section, text};
use super::palette::Palette;
use super::svg::{Chart, PLANE, across, decimal, label, named, plane, with_tooltip};
use crate::cases::{Case, Entry, Metric, cases};
use crate::units;

use heist_bench::record::Record;
use heist_bench::stats::Ends;

/// The height of a bar with its text.
const ROW: u32 = 46;
/// The maximum number of ticks of a series.
const TICKS: usize = 64;
/// If there are more cases, only the first family is expanded.
const MAX_EXPANDED: usize = 12;

/// Returns the section.
pub(super) fn comparison(record: &Record, palette: &Palette<'_>) -> String {
    let cases = cases(record);
    let body = if cases.is_empty() {
        let command = format!("{} bench --json FILE", record.program());
        missing("This file has no samples to show. To measure some:", &command)
    } else {
        families(&cases, palette)
    };
    let lead = "Medians of interleaved rounds. The line across the end of a bar is the 95 % interval of the median, or the range of all \
                rounds if there are fewer than six. The ticks below are the single rounds. Every bar starts at zero. × is the ratio to \
                rayon, or to the fastest other peer; below 1 is faster.";
    section("comparison", "Comparison", lead, &body)
}

fn families(cases: &[Case<'_>], palette: &Palette<'_>) -> String {
    let mut out = String::new();
    let mut number = 0;
    for (place, family) in cases.chunk_by(|a, b| a.workload == b.workload).enumerate() {
        let mut cards = String::new();
        for case in family {
            cards.push_str(&card(case, number, palette));
            number += 1;
        }
        let open = if place == 0 || cases.len() <= MAX_EXPANDED { " open" } else { "" };
        out.push_str(&format!(
            "<details class=\"family\"{open}><summary><h3>{}</h3> <span class=\"quiet\">{}</span></summary>\n<div class=\"cards\">\n{cards}</div>\n{}</details>\n",
            text(family[0].workload),
            units::of(family.len() as u64, "case"),
            table(family).collapsed(),
        ));
    }
    out
}

/// Returns the chart of the main metric of a case.
fn card(case: &Case<'_>, number: usize, palette: &Palette<'_>) -> String {
    let metric = case.main();
    let unit = if metric.is_time() { "less is better" } else { "" };
    let chart = Chart {
        kind: "comparison",
        id: format!("comparison-{number}"),
        title: format!("{}: {}", case.name(), metric.title()),
        description: description(metric),
        height: ROW * metric.entries.len() as u32,
        marks: bars(metric, palette),
    };
    format!(
        "<figure class=\"card\"><figcaption><strong>{}</strong><span>{}</span><span class=\"quiet\">{}{}{unit}</span></figcaption>\n{}</figure>\n",
        text(&case.name()),
        text(case.title),
        text(&metric.title()),
        if unit.is_empty() { "" } else { ", " },
        chart.wide(),
    )
}

fn description(metric: &Metric<'_>) -> String {
    let parts: Vec<String> = metric
        .entries
        .iter()
        .map(|entry| format!("{} {}", entry.by, metric.show(entry.middle.median)))
        .collect();
    format!("Medians: {}.", units::list(&parts))
}

fn bars(metric: &Metric<'_>, palette: &Palette<'_>) -> String {
    let ends = metric.entries.iter().map(|entry| entry.middle.high);
    // All values may be zero.
    let end = ends.fold(f64::MIN_POSITIVE, f64::max) * 1.02;
    let rows = metric.entries.iter().enumerate();
    rows.map(|(place, entry)| bar(metric, entry, end, place as u32 * ROW, palette)).collect()
}

fn bar(
    metric: &Metric<'_>,
    entry: &Entry<'_>,
    end: f64,
    top: u32,
    palette: &Palette<'_>,
) -> String {
    let middle = entry.middle;
    let class = palette.class(entry.by);
    let (low, high) = (across(middle.low / end), across(middle.high / end));
    let (bar, line) = (top + 18, top + 24);
    let ticks: String = entry
        .values
        .iter()
        .filter(|&&value| value <= end)
        .take(TICKS)
        .map(|value| format!("M{} 0v5", decimal(f64::from(PLANE) * value / end)))
        .collect();
    let marks = format!(
        "{}{}<rect class=\"track\" y=\"{bar}\" width=\"100%\" height=\"12\" rx=\"3\"/>\
         <rect class=\"fill {class}\" y=\"{bar}\" width=\"{}\" height=\"12\" rx=\"3\"/>\
         <line class=\"halo\" x1=\"{low}\" x2=\"{high}\" y1=\"{line}\" y2=\"{line}\"/>\
         <line class=\"span\" x1=\"{low}\" x2=\"{high}\" y1=\"{line}\" y2=\"{line}\"/>{}",
        named(top + 12, entry.by),
        label("value", "100%", top + 12, "end", &value(metric, entry)),
        across(middle.median / end),
        plane(top + 33, 5, &format!("<path class=\"tick {class}\" d=\"{ticks}\"/>")),
    );
    let words = format!(
        "{}: {} ({} to {}, {})",
        entry.by,
        metric.show(middle.median),
        metric.show(middle.low),
        metric.show(middle.high),
        units::of(entry.values.len() as u64, "round"),
    );
    with_tooltip(&words, &marks)
}

/// Returns the value with its ratio to the reference, if there is one.
fn value(metric: &Metric<'_>, entry: &Entry<'_>) -> String {
    let shown = metric.show(entry.middle.median);
    match ratio(metric, entry) {
        Some(ratio) => format!("{shown} · {ratio:.2}×"),
        None => shown,
    }
}

fn ratio(metric: &Metric<'_>, entry: &Entry<'_>) -> Option<f64> {
    let reference = metric.reference().filter(|_| metric.is_time())?;
    Some(entry.over(reference)?.median)
}

/// Returns the meaning of the interval beside a median.
fn brackets(family: &[Case<'_>]) -> &'static str {
    let metrics = family.iter().flat_map(|case| &case.metrics);
    let mut ends = metrics.flat_map(|metric| &metric.entries).map(|entry| entry.middle.ends);
    match (
        ends.clone().any(|ends| ends == Ends::Confident),
        ends.any(|ends| ends == Ends::Extremes),
    ) {
        (true, true) => "95 % interval; below 6 rounds, smallest to largest",
        (_, false) => "95 % interval",
        (false, true) => "smallest to largest",
    }
}

/// Returns a table of all metrics of the cases.
fn table(family: &[Case<'_>]) -> Table {
    let head = [
        "case",
        "metric",
        "peer",
        "median",
        brackets(family),
        "ratio to the reference",
        "rounds",
        "disturbed",
    ];
    let mut table = Table::new(format!("all values of {}", family[0].workload), &head);
    for case in family {
        for metric in &case.metrics {
            for entry in &metric.entries {
                let middle = entry.middle;
                let reference =
                    metric.reference().map(|reference| reference.by).unwrap_or_default();
                table.rows.push(vec![
                    case.name(),
                    metric.title(),
                    entry.by.into(),
                    metric.show(middle.median),
                    format!("{} to {}", metric.show(middle.low), metric.show(middle.high)),
                    ratio(metric, entry)
                        .map_or("–".into(), |ratio| format!("{ratio:.2} ({reference})")),
                    entry.values.len().to_string(),
                    entry.disturbed.to_string(),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use heist_bench::record::Series;

    use super::*;

    #[test]
    fn few_rounds_have_no_interval() {
        let series = |case: &str, rounds| Series {
            case: case.into(),
            values: [("nanoseconds".into(), vec![1.0; rounds])].into(),
            ..Series::default()
        };
        let head =
            |samples| table(&cases(&Record { samples, ..Record::default() })).head[4].clone();
        assert_eq!(head(vec![series("a", 5), series("b", 1)]), "smallest to largest");
        assert_eq!(head(vec![series("a", 6), series("b", 9)]), "95 % interval");
        let mixed = head(vec![series("a", 6), series("b", 5)]);
        assert_eq!(mixed, "95 % interval; below 6 rounds, smallest to largest");
    }
}
