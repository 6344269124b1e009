//! The durations of tasks, as a histogram on a logarithmic axis.

use heist_bench::record::Traced;

use super::{card, part};
use crate::commands::report::histogram::{Axis, percentile, total};
use crate::commands::report::html::Table;
use crate::commands::report::svg::{Chart, across, with_tooltip};
use crate::units;

/// The height of the plot, without the axis labels.
const HEIGHT: u32 = 170;
/// The maximum number of rows of the table.
const MAX_ROWS: usize = 100;

/// Returns the chart of a trace.
pub(super) fn task_times(traced: &Traced, number: usize) -> String {
    const HEADING: &str = "Task durations";
    let buckets = &traced.task_times;
    let Some(axis) = Axis::of([&**buckets]) else {
        return card(
            HEADING,
            "",
            "<p class=\"missing\">No task both started and ended in this trace.</p>\n",
        );
    };
    let at = |fraction| units::time(percentile(buckets, fraction).unwrap_or_default() as f64);
    let chart = Chart {
        kind: "task-times",
        id: format!("task-times-{number}"),
        title: "Task durations on a logarithmic axis".into(),
        description: format!("p50 is {}, p99 is {}.", at(0.5), at(0.99)),
        height: HEIGHT + 20,
        marks: columns(&axis, buckets),
    };
    let part = part(traced).map(|part| format!(" {part}")).unwrap_or_default();
    let tasks = units::of(total(buckets), "task");
    let words = format!("{tasks}{part}: p50 {}, p99 {}", at(0.5), at(0.99));
    card(HEADING, &words, &format!("{}{}", chart.wide(), table(buckets).collapsed()))
}

fn columns(axis: &Axis, buckets: &[(u64, u64)]) -> String {
    let bins = axis.bins(buckets);
    let most = bins.iter().copied().fold(0.0, f64::max);
    let mut out = axis.ticks(HEIGHT);
    for (bin, &part) in bins.iter().enumerate().filter(|(_, part)| **part > 0.0) {
        // A single task among millions must be visible.
        let height = (f64::from(HEIGHT - 4) * part / most).max(1.5);
        let marks = format!(
            "<rect class=\"column\" x=\"{}\" y=\"{:.1}\" width=\"{}\" height=\"{height:.1}\"/>",
            across(bin as f64 / axis.count() as f64),
            f64::from(HEIGHT) - height,
            across(0.9 / axis.count() as f64),
        );
        let words =
            format!("up to {}: {:.1} % of all tasks", units::time(axis.end(bin)), 100.0 * part);
        out.push_str(&with_tooltip(&words, &marks));
    }
    out.push_str(&format!("<line class=\"ground\" x2=\"100%\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/>"));
    out
}

fn table(buckets: &[(u64, u64)]) -> Table {
    let mut table = Table::new("task durations", &["up to", "tasks"]);
    let filled: Vec<_> = buckets.iter().filter(|(_, count)| *count > 0).collect();
    // Neighbours are merged if there are too many.
    for group in filled.chunks(filled.len().div_ceil(MAX_ROWS).max(1)) {
        let upper = group.iter().map(|(upper, _)| *upper).max().unwrap_or_default();
        let count = group.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        table.rows.push(vec![units::time(upper as f64), units::count(count)]);
    }
    table
}
