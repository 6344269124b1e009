//! The tables of measured values and of ratios to the references.

use std::fmt::{self, Write};

use super::limit;
use crate::metric::Metric;
use crate::row::{Entry, Row};
use crate::stats::{Ends, Interval, ends_of, interval, ratios};
use crate::target::{Target, Than, verdict};

/// Returns the metrics of the rows, in order of appearance.
pub(super) fn metrics(group: &[Row]) -> Vec<&'static Metric> {
    let mut found: Vec<&'static Metric> = Vec::new();
    for &metric in group.iter().flat_map(|row| &row.metrics) {
        if found.iter().all(|known| known.key != metric.key) {
            found.push(metric);
        }
    }
    found
}

/// Returns the references of the rows.
pub(super) fn references(group: &[Row]) -> Vec<&'static str> {
    distinct(group.iter().flat_map(|row| row.references.iter().copied()))
}

/// Returns the names of all entries of the group: the columns.
pub(super) fn names(group: &[Row]) -> Vec<&'static str> {
    distinct(group.iter().flat_map(|row| row.entries.iter().map(|entry| entry.name)))
}

/// Returns what the brackets beside a median are.
pub(super) fn ends(group: &[Row]) -> Ends {
    ends_of(group[0].entries[0].samples.len())
}

fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Writes the table of measured values.
pub(super) fn values(out: &mut String, title: &str, group: &[Row], metric: &Metric) -> fmt::Result {
    let spread = if metric.spread { format!(" ({})", ends(group)) } else { String::new() };
    writeln!(out, "\n### {title}: {}, median{spread}\n", metric.title)?;
    let names = names(group);
    head(out, &["case"], &names)?;
    for row in group {
        let Some(place) = row.place(metric) else {
            continue;
        };
        write!(out, "| {} |", row.title)?;
        for name in &names {
            let Some(entry) = row.entry(name) else {
                write!(out, " – |")?;
                continue;
            };
            let Interval { low, median, high, .. } = interval(entry.values(place));
            write!(out, " {}", metric.show(median))?;
            if metric.spread {
                write!(out, " ({}–{})", metric.show(low), metric.show(high))?;
            }
            write!(out, " |")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the table of ratios to a reference, with the targets.
pub(super) fn compared(
    out: &mut String,
    title: &str,
    group: &[Row],
    metric: &Metric,
    reference: &'static str,
) -> fmt::Result {
    let Some(noun) = metric.ratio else {
        return Ok(());
    };
    let is_compared =
        |row: &&Row| row.references.contains(&reference) && row.values(reference, metric).is_some();
    let rows: Vec<&Row> = group.iter().filter(is_compared).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### {title}: {noun} as a ratio to {reference}, median of the rounds' ratios \
         ({})\n",
        ends(group)
    )?;
    let has_targets = rows.iter().any(|row| strictest(row, metric, reference).is_some());
    let first: &[_] = if has_targets { &["case", "target"] } else { &["case"] };
    let names = names(group);
    head(out, first, &names)?;
    for row in rows {
        write!(out, "| {} |", row.title)?;
        if has_targets {
            match strictest(row, metric, reference) {
                Some(most) => write!(out, " {} |", limit(most))?,
                None => write!(out, " – |")?,
            }
        }
        for name in &names {
            match row.entry(name) {
                Some(entry) => cell(out, row, entry, reference, metric)?,
                None => write!(out, " – |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes a ratio, and whether it meets its target.
fn cell(
    out: &mut String,
    row: &Row,
    entry: &Entry,
    reference: &'static str,
    metric: &Metric,
) -> fmt::Result {
    let values = |name| {
        row.values(name, metric).expect("the table has only rows with this reference and metric")
    };
    let ratios = ratios(values(entry.name), values(reference));
    let Interval { low, median, high, .. } = interval(ratios);
    write!(out, " {median:.3} ({low:.3}–{high:.3})")?;
    for target in to_reference(row, metric, reference).filter(|target| target.of == entry.name) {
        write!(out, " {}", verdict(median <= target.at_most))?;
        // The limit is shown only if it differs from that of the row.
        if Some(target.at_most) > strictest(row, metric, reference) {
            write!(out, " ({})", limit(target.at_most))?;
        }
    }
    write!(out, " |")
}

pub(super) fn head(out: &mut String, first: &[&str], names: &[&str]) -> fmt::Result {
    let names: Vec<_> = first.iter().chain(names).copied().collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(names.len() - 1))
}

/// Returns whether a table of ratios shows this target.
pub(super) fn is_in_table(row: &Row, target: &Target) -> bool {
    let is_reference = match &target.than {
        Than::Entry(name) => row.references.contains(name),
        _ => false,
    };
    target.metric.ratio.is_some() && is_reference
}

fn to_reference<'a>(
    row: &'a Row,
    metric: &'a Metric,
    reference: &'static str,
) -> impl Iterator<Item = &'a Target> {
    let is_ours = move |target: &&Target| {
        is_in_table(row, target)
            && target.than == Than::Entry(reference)
            && target.metric.key == metric.key
    };
    row.targets.iter().filter(is_ours)
}

/// Returns the lowest limit of a row.
fn strictest(row: &Row, metric: &Metric, reference: &'static str) -> Option<f64> {
    to_reference(row, metric, reference).map(|target| target.at_most).min_by(f64::total_cmp)
}
