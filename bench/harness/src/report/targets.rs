//! The targets that are not ratios to a reference, and the total.

use std::fmt::{self, Write};

use super::limit;
use super::tables::{ends, is_in_table};
use crate::row::Row;
use crate::stats::Interval;
use crate::target::verdict;

/// Writes one line for each such target; writes nothing if there is none.
pub(super) fn others(out: &mut String, title: &str, group: &[Row], rows: &[Row]) -> fmt::Result {
    let targets = group.iter().flat_map(|row| row.targets.iter().map(move |target| (row, target)));
    let others = targets.filter(|(row, target)| !is_in_table(row, target));
    let found = others.filter_map(|(row, target)| Some((row, target, target.finding(row, rows)?)));
    let mut found = found.peekable();
    if found.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\n### {title}: other targets, median ({})\n", ends(group))?;
    writeln!(out, "| case | metric | entry | as a ratio to | at most | measured | |")?;
    writeln!(out, "|---|---|---|---|---:|---:|---|")?;
    for (row, target, finding) in found {
        let Interval { low, median, high, .. } = finding.found;
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {median:.3} ({low:.3}–{high:.3}) | {} |",
            row.title,
            target.metric.title,
            target.of,
            finding.against,
            limit(target.at_most),
            verdict(finding.met),
        )?;
    }
    Ok(())
}

/// Writes how many of the targets that this run can judge are met.
pub(super) fn summary(out: &mut String, rows: &[Row]) -> fmt::Result {
    let findings = |row: &'_ Row| {
        let findings = row.targets.iter().filter_map(|target| target.finding(row, rows));
        findings.map(|finding| finding.met).collect::<Vec<_>>()
    };
    let met: Vec<bool> = rows.iter().flat_map(findings).collect();
    if met.is_empty() {
        return Ok(());
    }
    let missed = met.iter().filter(|&&met| !met).count();
    writeln!(out, "\nTargets: {} met, {missed} missed.", met.len() - missed)
}
