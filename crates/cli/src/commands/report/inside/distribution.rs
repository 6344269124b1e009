//! The number of tasks that each thread ran, compared with an equal share.

use heist_bench::record::Traced;

use super::{card, lane_name, part};
use crate::commands::report::html::Table;
use crate::commands::report::svg::{Chart, across, label, named, with_tooltip};
use crate::units;

/// The height of a bar with its text.
const ROW: u32 = 38;

/// Returns the chart of a trace.
pub(super) fn distribution(traced: &Traced, number: usize) -> String {
    const HEADING: &str = "Tasks per thread";
    let all = traced.lanes.iter().fold(0_u64, |sum, lane| sum.saturating_add(lane.tasks));
    let most = traced.lanes.iter().map(|lane| lane.tasks).max().unwrap_or_default();
    if all == 0 {
        return card(HEADING, "", "<p class=\"missing\">No task ended in this run.</p>\n");
    }
    let fair = all as f64 / traced.workers.max(1) as f64;
    let tasks =
        format!("{} {}", units::of(all, "task"), part(traced).unwrap_or_else(|| "in all".into()));
    // The line must be inside the chart, even if some of the threads that shared the work have ended.
    let end = fair.max(most as f64) * 1.02;
    let chart = Chart {
        kind: "distribution",
        id: format!("distribution-{number}"),
        title: "Number of tasks that each thread ran".into(),
        description: format!(
            "{tasks}; an equal share is {}. The busiest thread ran {}.",
            units::number(fair.round()),
            units::count(most),
        ),
        height: ROW * traced.lanes.len() as u32,
        marks: bars(traced, all, fair, end),
    };
    let words = format!("{tasks}; the dashed line is an equal share");
    card(HEADING, &words, &format!("{}{}", chart.wide(), table(traced, all).collapsed()))
}

fn bars(traced: &Traced, all: u64, fair: f64, end: f64) -> String {
    let fair = across(fair / end);
    let lanes = traced.lanes.iter().enumerate();
    lanes
        .map(|(place, lane)| {
            let top = place as u32 * ROW;
            let name = lane_name(lane, place);
            let value = format!(
                "{} · {}",
                units::count(lane.tasks),
                units::percent(lane.tasks as f64, all as f64)
            );
            let marks = format!(
                "{}{}<rect class=\"track\" y=\"{bar}\" width=\"100%\" height=\"12\" rx=\"3\"/>\
                 <rect class=\"share\" y=\"{bar}\" width=\"{}\" height=\"12\" rx=\"3\"/>\
                 <line class=\"fair\" x1=\"{fair}\" x2=\"{fair}\" y1=\"{}\" y2=\"{}\"/>",
                named(top + 12, &name),
                label("value", "100%", top + 12, "end", &value),
                across(lane.tasks as f64 / end),
                top + 15,
                top + 33,
                bar = top + 18,
            );
            with_tooltip(&format!("{name}: {}", units::of(lane.tasks, "task")), &marks)
        })
        .collect()
}

fn table(traced: &Traced, all: u64) -> Table {
    let mut table = Table::new("tasks per thread", &["thread", "tasks", "share"]);
    for (place, lane) in traced.lanes.iter().enumerate() {
        let part = units::percent(lane.tasks as f64, all as f64);
        table.rows.push(vec![lane_name(lane, place), units::count(lane.tasks), part]);
    }
    table
}
