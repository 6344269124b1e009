//! The tables.

use std::fmt::{self, Write};

use crate::machine::Machine;
use crate::measure::{Entry, Row};
use crate::stats::{Quartiles, quartiles, ratios};

/// The queue that all are compared with.
pub(crate) const REFERENCE: &str = "crossbeam";

/// The names of the cases, and what they are.
pub(crate) fn list(rows: &[Row]) -> String {
    let line = |row: &Row| format!("{:<42} {}\n", row.id(), row.title);
    rows.iter().map(line).collect()
}

/// Everything that a run has found, for people.
pub(crate) fn markdown(machine: &Machine, hand_offs: &[f64], rows: &[Row]) -> String {
    let mut out = String::new();
    write(&mut out, machine, hand_offs, rows).expect("a String takes all");
    out
}

fn write(out: &mut String, machine: &Machine, hand_offs: &[f64], rows: &[Row]) -> fmt::Result {
    head(out, machine, hand_offs)?;
    for group in rows.chunk_by(|a, b| (a.workload, a.item) == (b.workload, b.item)) {
        let title = format!("{}, {}", group[0].workload, group[0].item.title());
        times(out, &title, group)?;
        steals(out, &title, group)?;
        if reference(&group[0]).is_some() {
            compared(out, &title, group)?;
        }
    }
    disturbances(out, rows)?;
    let met = rows.iter().flat_map(verdicts).collect::<Vec<_>>();
    if !met.is_empty() {
        let missed = met.iter().filter(|&&met| !met).count();
        writeln!(out, "\nTargets: {} met, {missed} missed.", met.len() - missed)?;
    }
    Ok(())
}

fn head(out: &mut String, machine: &Machine, hand_offs: &[f64]) -> fmt::Result {
    let known = |text: &str| match text {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    };
    writeln!(out, "- CPU: {}, {} cores", known(&machine.cpu), machine.cores)?;
    writeln!(out, "- kernel: {}", known(&machine.kernel))?;
    writeln!(out, "- compiler: {}", known(&machine.rustc))?;
    writeln!(out, "- commit: {}", known(&machine.commit))?;
    for (name, version) in &machine.peers {
        writeln!(out, "- {name}: {}", known(version))?;
    }
    let Quartiles { low, median, high } = quartiles(hand_offs.iter().copied());
    writeln!(out, "- a cache line from core to core: {median:.1} ns ({low:.1}–{high:.1})")?;
    writeln!(out, "- rounds: {}", hand_offs.len())
}

/// How long each queue took.
fn times(out: &mut String, title: &str, group: &[Row]) -> fmt::Result {
    writeln!(out, "\n### {title}: ns per operation, median (quartiles)\n")?;
    table_head(out, &["case"], group)?;
    for row in group {
        write!(out, "| {} |", row.title)?;
        for entry in &row.entries {
            let Quartiles { low, median, high } = quartiles(entry.nanoseconds());
            write!(out, " {median:.2} ({low:.2}–{high:.2}) |")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// How much a thief got meanwhile.
fn steals(out: &mut String, title: &str, group: &[Row]) -> fmt::Result {
    let has_thief = |row: &&Row| row.entries[0].steals().next().is_some();
    let with_thief: Vec<&Row> = group.iter().filter(has_thief).collect();
    if with_thief.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### {title}: million steals per second, median\n")?;
    table_head(out, &["case"], group)?;
    for row in with_thief {
        write!(out, "| {} |", row.title)?;
        for entry in &row.entries {
            write!(out, " {:.2} |", quartiles(entry.steals()).median / 1e6)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What a reader should know before believing the tables.
fn disturbances(out: &mut String, rows: &[Row]) -> fmt::Result {
    let entries = rows.iter().flat_map(|row| &row.entries);
    let disturbed: usize = entries.clone().map(Entry::disturbed).sum();
    if disturbed == 0 {
        return Ok(());
    }
    let all: usize = entries.map(|entry| entry.samples.len()).sum();
    writeln!(
        out,
        "\n{disturbed} of {all} samples were disturbed: the thief hardly ran beside the owner. Run \
         again with two cores free."
    )
}

/// How that compares, and with what we wanted.
fn compared(out: &mut String, title: &str, group: &[Row]) -> fmt::Result {
    writeln!(
        out,
        "\n### {title}: time as a ratio to {REFERENCE}, median of the rounds' ratios (quartiles)\n"
    )?;
    table_head(out, &["case", "target"], group)?;
    for row in group {
        write!(out, "| {} | {:.2} |", row.title, row.target)?;
        for entry in &row.entries {
            let Some(Quartiles { low, median, high }) = ratio(row, entry) else {
                continue;
            };
            write!(out, " {median:.3} ({low:.3}–{high:.3})")?;
            match (entry.target, is_met(row, entry)) {
                // Said only where it is not that of the row.
                (Some(target), Some(met)) if target > row.target => {
                    write!(out, " {} ({target:.2})", verdict(met))?;
                }
                (_, Some(met)) => write!(out, " {}", verdict(met))?,
                (_, None) => {}
            }
            write!(out, " |")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn table_head(out: &mut String, first: &[&str], group: &[Row]) -> fmt::Result {
    let queues = group[0].entries.iter().map(|entry| entry.queue);
    let names: Vec<_> = first.iter().copied().chain(queues).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(names.len() - 1))
}

fn reference(row: &Row) -> Option<&Entry> {
    row.entries.iter().find(|entry| entry.queue == REFERENCE)
}

/// `None` without the reference.
fn ratio(row: &Row, entry: &Entry) -> Option<Quartiles> {
    let reference = reference(row)?;
    let ratios = ratios(entry.nanoseconds(), reference.nanoseconds());
    Some(quartiles(ratios))
}

/// `None` without a target or without the reference.
fn is_met(row: &Row, entry: &Entry) -> Option<bool> {
    Some(ratio(row, entry)?.median <= entry.target?)
}

fn verdicts(row: &Row) -> impl Iterator<Item = bool> + '_ {
    row.entries.iter().filter_map(|entry| is_met(row, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Kind;
    use crate::measure::Sample;

    fn entry(queue: &'static str, target: Option<f64>, nanoseconds: [f64; 3]) -> Entry {
        let sample =
            |nanoseconds| Sample { nanoseconds, steals_per_second: None, disturbed: false };
        Entry {
            queue,
            run: || unreachable!("nothing is measured here"),
            target,
            samples: nanoseconds.map(sample).into(),
        }
    }

    fn row(entries: Vec<Entry>) -> Row {
        Row {
            workload: "deque",
            item: Kind::Number,
            case: "empty",
            title: "nothing",
            target: 0.8,
            entries,
        }
    }

    #[test]
    fn a_target_is_met_or_missed() {
        let rows = [row(vec![
            entry("ours", Some(0.8), [1.5, 30.0, 3.0]),
            entry("also ours", Some(0.85), [1.7, 34.0, 3.4]),
            entry("slow", Some(0.8), [1.7, 34.0, 3.4]),
            entry(REFERENCE, None, [2.0, 40.0, 4.0]),
        ])];
        let text = markdown(&Machine::default(), &[30.0; 3], &rows);
        let expected = "| nothing | 0.80 | 0.750 (0.750–0.750) met | 0.850 (0.850–0.850) met (0.85) \
             | 0.850 (0.850–0.850) missed | 1.000 (1.000–1.000) |";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("Targets: 2 met, 1 missed."), "{text}");
    }

    #[test]
    fn without_the_reference_there_is_no_ratio() {
        let rows = [row(vec![entry("ours", Some(0.8), [1.0, 2.0, 3.0])])];
        let text = markdown(&Machine::default(), &[30.0; 3], &rows);
        assert!(text.contains("| nothing | 2.00 (1.50–2.50) |"), "{text}");
        assert!(!text.contains("as a ratio"), "{text}");
        assert!(!text.contains("Targets"), "{text}");
    }
}
