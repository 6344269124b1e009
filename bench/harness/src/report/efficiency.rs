//! The efficiency of an entry: the time of one worker over the time of all workers together.

use std::fmt::{self, Write};

use super::tables::{ends, head, names};
use crate::row::{Entry, Row};
use crate::stats::{Interval, interval, ratios};

/// Writes one line for each case that was also measured with one worker; writes nothing if there is none.
pub(super) fn table(out: &mut String, title: &str, group: &[Row], rows: &[Row]) -> fmt::Result {
    let pair = |row| one_worker(row, rows).map(|one| (row, one));
    let pairs: Vec<_> = group.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### {title}: efficiency, the time of one worker over the time of all workers together, median \
         of the rounds' values ({})\n",
        ends(group)
    )?;
    let names = names(group);
    head(out, &["case"], &names)?;
    for (row, one) in pairs {
        write!(out, "| {} |", row.title)?;
        for name in &names {
            match row.entry(name).and_then(|entry| efficiency(row, entry, one)) {
                Some(Interval { low, median, high, .. }) => {
                    write!(out, " {median:.3} ({low:.3}–{high:.3}) |")?;
                }
                None => write!(out, " – |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Returns the row with one worker, if it was measured.
fn one_worker<'a>(row: &Row, rows: &'a [Row]) -> Option<&'a Row> {
    let id = row.one_worker.as_ref()?;
    rows.iter().find(|row| row.id() == *id)
}

/// Returns the efficiency of an entry, or `None` if it has no workers.
fn efficiency(row: &Row, entry: &Entry, one: &Row) -> Option<Interval> {
    let workers = row.workers? as f64;
    if entry.sequential {
        return None;
    }
    let metric = row.metrics[0];
    let all = row.values(entry.name, metric)?.into_iter().map(|time| time * workers);
    Some(interval(ratios(one.values(entry.name, metric)?, all)))
}
