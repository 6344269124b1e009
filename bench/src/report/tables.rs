//! The tables: what was measured, and how that compares with the reference.

use std::fmt::{self, Write};

use crate::metric::Metric;
use crate::row::{Entry, Row};
use crate::stats::{Quartiles, quartiles, ratios};
use crate::target::{Target, Than, verdict};

/// All that the rows of a group have, in the order in which they come.
pub(super) fn metrics(group: &[Row]) -> Vec<&'static Metric> {
    let mut found: Vec<&'static Metric> = Vec::new();
    for &metric in group.iter().flat_map(|row| &row.metrics) {
        if found.iter().all(|known| known.key != metric.key) {
            found.push(metric);
        }
    }
    found
}

/// What was measured.
pub(super) fn values(out: &mut String, title: &str, group: &[Row], metric: &Metric) -> fmt::Result {
    let spread = if metric.spread { " (quartiles)" } else { "" };
    writeln!(out, "\n### {title}: {}, median{spread}\n", metric.title)?;
    table_head(out, &["case"], group)?;
    for row in group {
        let Some(place) = row.place(metric) else {
            continue;
        };
        write!(out, "| {} |", row.title)?;
        for entry in &row.entries {
            let Quartiles { low, median, high } = quartiles(entry.values(place));
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

/// How that compares with the reference, and with what we wanted.
pub(super) fn compared(
    out: &mut String,
    title: &str,
    group: &[Row],
    metric: &Metric,
) -> fmt::Result {
    let (Some(noun), Some(reference)) = (metric.ratio, group[0].reference) else {
        return Ok(());
    };
    let is_compared = |row: &&Row| row.values(reference, metric).is_some();
    let rows: Vec<&Row> = group.iter().filter(is_compared).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### {title}: {noun} as a ratio to {reference}, median of the rounds' ratios \
         (quartiles)\n"
    )?;
    let has_targets = rows.iter().any(|row| strictest(row, metric).is_some());
    let first: &[_] = if has_targets { &["case", "target"] } else { &["case"] };
    table_head(out, first, group)?;
    for row in rows {
        write!(out, "| {} |", row.title)?;
        if has_targets {
            match strictest(row, metric) {
                Some(limit) => write!(out, " {limit:.2} |")?,
                None => write!(out, " – |")?,
            }
        }
        for entry in &row.entries {
            cell(out, row, entry, reference, metric)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A ratio, and whether it is what we wanted.
fn cell(
    out: &mut String,
    row: &Row,
    entry: &Entry,
    reference: &str,
    metric: &Metric,
) -> fmt::Result {
    let values = |name| row.values(name, metric).expect("the table has only such rows");
    let ratios = ratios(values(entry.name), values(reference));
    let Quartiles { low, median, high } = quartiles(ratios);
    write!(out, " {median:.3} ({low:.3}–{high:.3})")?;
    for target in to_reference(row, metric).filter(|target| target.of == entry.name) {
        write!(out, " {}", verdict(median <= target.at_most))?;
        // The limit itself only where it is not that of the row.
        if Some(target.at_most) > strictest(row, metric) {
            write!(out, " ({:.2})", target.at_most)?;
        }
    }
    write!(out, " |")
}

fn table_head(out: &mut String, first: &[&str], group: &[Row]) -> fmt::Result {
    let entries = group[0].entries.iter().map(|entry| entry.name);
    let names: Vec<_> = first.iter().copied().chain(entries).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(names.len() - 1))
}

/// Does the table of ratios say whether this target is met?
pub(super) fn is_in_table(row: &Row, target: &Target) -> bool {
    let reference = row.reference.map(Than::Entry);
    target.metric.ratio.is_some() && reference.as_ref() == Some(&target.than)
}

fn to_reference<'a>(row: &'a Row, metric: &'a Metric) -> impl Iterator<Item = &'a Target> {
    let is_ours = |target: &&Target| is_in_table(row, target) && target.metric.key == metric.key;
    row.targets.iter().filter(is_ours)
}

/// The lowest limit of a row.
fn strictest(row: &Row, metric: &Metric) -> Option<f64> {
    to_reference(row, metric).map(|target| target.at_most).min_by(f64::total_cmp)
}
