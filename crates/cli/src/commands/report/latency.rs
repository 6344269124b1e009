//! The latency of a task that another thread submits: one histogram per peer, on a common axis.

use heist_bench::record::{Latencies, Record};

use super::histogram::{Axis, percentile, steps, total};
use super::html::{Table, missing, section, text};
use super::palette::Palette;
use super::svg::{Chart, across, label, named, plane, with_tooltip};
use crate::units;

/// The height of a histogram with its text.
const ROW: u32 = 98;
/// The height of the text.
const WORDS: u32 = 27;

/// Returns the section.
pub(super) fn latency(record: &Record, palette: &Palette<'_>) -> String {
    let lead = "A thread outside the pool submits a task to an idle pool and waits for the answer; in the cases of a server, it submits requests at given times to a busy one. Further left is faster. The solid line is \
                p50 and the dashed line p99, over all rounds together and rounded up to the end of a bucket, which is 3 to 6 % wide. The \
                comparison above shows the median of each round’s percentiles instead. The outline of the first histogram is repeated in \
                the others.";
    section("latency", "Latency from outside", lead, &body(record, palette))
}

fn body(record: &Record, palette: &Palette<'_>) -> String {
    let all: Vec<&Latencies> =
        record.latencies.iter().filter(|latencies| total(&latencies.buckets) > 0).collect();
    if all.is_empty() {
        let command = format!("{} bench duel --json FILE", record.program());
        return missing("This file has no latencies. To measure them:", &command);
    }
    let cases = all.chunk_by(|a, b| a.case == b.case).enumerate();
    cases.map(|(number, case)| figure(case, number, palette)).collect()
}

/// Returns the chart of one case.
fn figure(case: &[&Latencies], number: usize, palette: &Palette<'_>) -> String {
    let Some(axis) = Axis::of(case.iter().map(|latencies| &*latencies.buckets)) else {
        return String::new();
    };
    let name = if case[0].case.is_empty() { "a task for an idle pool" } else { &case[0].case };
    let chart = Chart {
        kind: "latency",
        id: format!("latency-{number}"),
        title: format!("Latency from outside, on a logarithmic axis: {name}"),
        description: case.iter().map(|latencies| words(latencies)).collect::<Vec<_>>().join(" "),
        height: ROW * case.len() as u32 + 20,
        marks: marks(case, &axis, palette),
    };
    format!(
        "<figure class=\"card whole\"><figcaption><strong>{}</strong><span class=\"quiet\">time until the answer, on a logarithmic axis; less is better</span></figcaption>\n{}{}</figure>\n",
        text(name),
        chart.wide(),
        table(case, name).collapsed(),
    )
}

fn marks(case: &[&Latencies], axis: &Axis, palette: &Palette<'_>) -> String {
    let bins: Vec<Vec<f64>> = case.iter().map(|latencies| axis.bins(&latencies.buckets)).collect();
    let most = bins.iter().flatten().copied().fold(0.0, f64::max);
    let plot = ROW - WORDS;
    let first = format!(
        "<path class=\"outline {}\" d=\"{}\"/>",
        palette.class(&case[0].by),
        steps(&bins[0], most, plot)
    );
    let mut marks = axis.ticks(ROW * case.len() as u32);
    for (place, (latencies, bins)) in case.iter().zip(&bins).enumerate() {
        let top = place as u32 * ROW;
        let ground = top + ROW;
        let inside = format!(
            "<path class=\"area {}\" d=\"{}\"/>{}",
            palette.class(&latencies.by),
            steps(bins, most, plot),
            if place > 0 { &first } else { "" },
        );
        let row = format!(
            "{}<line class=\"ground\" x2=\"100%\" y1=\"{ground}\" y2=\"{ground}\"/>{}{}",
            plane(top + WORDS, plot, &inside),
            named(top + 20, &latencies.by),
            lines(latencies, axis, top),
        );
        marks.push_str(&with_tooltip(&words(latencies), &row));
    }
    marks
}

fn at(latencies: &Latencies, fraction: f64) -> f64 {
    percentile(&latencies.buckets, fraction).unwrap_or_default() as f64
}

fn words(latencies: &Latencies) -> String {
    format!(
        "{}: p50 {}, p99 {}, of {}.",
        latencies.by,
        units::time(at(latencies, 0.5)),
        units::time(at(latencies, 0.99)),
        units::of(total(&latencies.buckets), "answer"),
    )
}

/// Returns the lines of p50 and p99.
fn lines(latencies: &Latencies, axis: &Axis, top: u32) -> String {
    let (middle, late) = (at(latencies, 0.5), at(latencies, 0.99));
    let line = |class, time| {
        let x = across(axis.place(time));
        format!(
            "<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"/>",
            top + WORDS,
            top + ROW
        )
    };
    let description = format!("p50 {} · p99 {}", units::time(middle), units::time(late));
    format!(
        "{}{}{}\n",
        line("p50", middle),
        line("p99", late),
        label("value", "100%", top + 20, "end", &description)
    )
}

fn table(case: &[&Latencies], name: &str) -> Table {
    let mut table = Table::new(
        format!("latency, {name}"),
        &["peer", "answers", "p50", "p90", "p99", "p99.9", "longest"],
    );
    for latencies in case {
        let mut row = vec![latencies.by.clone(), units::count(total(&latencies.buckets))];
        row.extend(
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|fraction| units::time(at(latencies, fraction))),
        );
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_answers_the_page_names_the_command() {
        let empty = Latencies { buckets: vec![(5, 0)], ..Latencies::default() };
        let record = Record { latencies: vec![empty], ..Record::default() };
        assert!(latency(&record, &Palette::new([])).contains("heist bench duel"));
    }

    /// The comparison shows other percentiles of the same answers.
    #[test]
    fn the_lead_explains_the_percentiles() {
        let found = latency(&Record::default(), &Palette::new([]));
        assert!(
            found.contains("over all rounds together and rounded up to the end of a bucket"),
            "{found}"
        );
    }

    #[test]
    fn percentiles_are_described() {
        let latencies = Latencies {
            by: "heist".into(),
            buckets: vec![(1_000, 99), (50_000, 1)],
            ..Latencies::default()
        };
        assert_eq!(words(&latencies), "heist: p50 1.00 µs, p99 1.00 µs, of 100 answers.");
    }
}
