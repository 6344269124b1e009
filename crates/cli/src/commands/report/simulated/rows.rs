//! Bars with a row for each number of cores: what the cores did, and how a run begins and ends.

use super::super::html::{Table, section, text};
use super::super::svg::{Chart, across, label, with_tooltip};
use super::{figure, named};
use crate::commands::sim::summary::{Curve, Row};
use crate::units;

/// The height of a row.
const ROW: u32 = 24;
/// The height of a bar.
const BAR: u32 = 16;
/// Where the bars begin, at the right of the number of cores.
const LEFT: f64 = 0.09;

/// The colours of the parts of the core time, in the order of [`Row::shares`].
const COLOURS: [&str; 7] =
    ["fill c0", "fill c7", "fill c1", "fill c4", "fill c3", "fill c6", "track"];

/// Returns the section on what the cores did.
pub(super) fn split(curves: &[Curve<'_>]) -> String {
    let lead = "Simulated. What the cores did with their time, by the number of cores. Misses are accesses to cache lines of \
                other cores, hits are all other accesses to shared memory, and other is allocation and reading the clock. Cores without a thread are not counted.";
    let cards = curves.iter().enumerate().map(|(number, curve)| split_card(curve, number));
    let body = format!("<div class=\"cards\">\n{}</div>\n", cards.collect::<String>());
    section("split", "Simulated core time", lead, &body)
}

fn split_card(curve: &Curve<'_>, number: usize) -> String {
    let name = named(curve);
    let bar = |row: &Row<'_>, y: u32| {
        let mut from = 0.0;
        let parts = row.shares().into_iter().zip(COLOURS).map(|((part, share), class)| {
            let words = format!("{}, {part}: {:.1} %", cores(row), 100.0 * share);
            let bar = bar(class, from, share, y, BAR);
            from += share;
            with_tooltip(&words, &bar)
        });
        parts.collect()
    };
    let largest = curve.largest();
    let described: Vec<String> = largest
        .shares()
        .iter()
        .map(|(part, share)| format!("{part} {:.1} %", 100.0 * share))
        .collect();
    let chart = Chart {
        kind: "split",
        id: format!("split-{number}"),
        title: format!("{name}: simulated split of the core time"),
        description: format!("Simulated, {}: {}.", cores(largest), units::list(&described)),
        height: ROW * curve.rows.len() as u32,
        marks: rows(curve, bar),
    };
    let keys: Vec<(&str, &str)> =
        largest.shares().iter().map(|(part, _)| *part).zip(COLOURS).collect();
    let mut table = Table::new(format!("simulated core time of {name}"), &["cores"]);
    table.head.extend(largest.shares().iter().map(|(part, _)| (*part).to_owned()));
    for row in &curve.rows {
        let shares = row.shares().into_iter().map(|(_, share)| format!("{:.1} %", 100.0 * share));
        table.rows.push([row.cores.to_string()].into_iter().chain(shares).collect());
    }
    let inside = chart.wide() + &legend(&keys) + &table.collapsed();
    figure("card", &name, "parts of the core time, by the number of cores", &inside)
}

/// Returns the section on how runs begin and end.
pub(super) fn ends(curves: &[Curve<'_>]) -> String {
    let lead = "Simulated. The length of each run, by the number of cores, with the ramp in the upper half and the tail in the lower \
                half: the ramp lasts until the last worker begins to work, the tail from the first worker’s last work to the end.";
    let cards = curves.iter().enumerate().map(|(number, curve)| ends_card(curve, number));
    let body = format!("<div class=\"cards\">\n{}</div>\n", cards.collect::<String>());
    section("ends", "Simulated ramp and tail", lead, &body)
}

/// Returns the median length of a run, of its ramp and of its tail.
fn times(row: &Row<'_>) -> [f64; 3] {
    [row.time(|point| point.elapsed), row.time(|point| point.ramp), row.time(|point| point.tail)]
}

fn ends_card(curve: &Curve<'_>, number: usize) -> String {
    let name = named(curve);
    let longest = curve.rows.iter().map(|row| times(row)[0]).fold(1.0, f64::max);
    let words = |row: &Row<'_>| {
        let [elapsed, ramp, tail] = times(row).map(units::time);
        format!("{}: ramp {ramp}, tail {tail}, of {elapsed}", cores(row))
    };
    let bars = |row: &Row<'_>, y: u32| {
        let [elapsed, ramp, tail] = times(row).map(|time| time / longest);
        let bars = [
            bar("track", 0.0, elapsed, y, BAR),
            bar("fill c4", 0.0, ramp.min(elapsed), y, BAR / 2),
            bar("fill c5", (elapsed - tail).max(0.0), tail.min(elapsed), y + BAR / 2, BAR / 2),
        ];
        with_tooltip(&words(row), &bars.concat())
    };
    let chart = Chart {
        kind: "ends",
        id: format!("ends-{number}"),
        title: format!("{name}: simulated ramp and tail"),
        description: format!("Simulated, {}.", words(curve.largest())),
        height: ROW * curve.rows.len() as u32,
        marks: rows(curve, bars),
    };
    let mut table = Table::new(
        format!("simulated ramp and tail of {name}"),
        &["cores", "elapsed", "ramp", "tail"],
    );
    for row in &curve.rows {
        table
            .rows
            .push([row.cores.to_string()].into_iter().chain(times(row).map(units::time)).collect());
    }
    let keys = [("ramp", "fill c4"), ("tail", "fill c5"), ("run", "track")];
    let what = format!("virtual time; the longest bar is {}", units::time(longest));
    figure("card", &name, &what, &(chart.wide() + &legend(&keys) + &table.collapsed()))
}

fn cores(row: &Row<'_>) -> String {
    units::of(row.cores as u64, "core")
}

/// Returns a row of marks for each number of cores.
fn rows(curve: &Curve<'_>, marks: impl Fn(&Row<'_>, u32) -> String) -> String {
    let row = |(place, row): (usize, &Row<'_>)| {
        let y = place as u32 * ROW + (ROW - BAR) / 2;
        label("axis", "0", y + 12, "start", &row.cores.to_string()) + &marks(row, y)
    };
    curve.rows.iter().enumerate().map(row).collect()
}

/// Returns a bar. Its begin and its length are parts of the room at the right of [`LEFT`].
fn bar(class: &str, from: f64, length: f64, y: u32, height: u32) -> String {
    let part = 1.0 - LEFT;
    format!(
        "<rect class=\"{class}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\"/>",
        across(LEFT + part * from),
        across(part * length),
    )
}

fn legend(keys: &[(&str, &str)]) -> String {
    let key = |(name, class): &(&str, &str)| {
        format!(
            "<li><svg class=\"key\" aria-hidden=\"true\" width=\"14\" height=\"14\"><rect class=\"{class}\" width=\"14\" height=\"14\"/></svg>{}</li>",
            text(name)
        )
    };
    format!("<ul class=\"keys\">{}</ul>\n", keys.iter().map(key).collect::<String>())
}
