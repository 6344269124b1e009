//! Makes Markdown of what a run measured: tables, and what a reader should know before trusting them.

mod efficiency;
mod tables;
mod targets;

use std::fmt::{self, Write};

use crate::record::Record;
use crate::row::{Entry, Row};
use crate::stats::{Ends, Interval, ends_of, interval};

/// The name of the queue that all queues are compared with.
pub const REFERENCE: &str = "crossbeam";

/// Returns the whole report. The record describes the run, the rows have the samples.
pub fn markdown(record: &Record, rows: &[Row]) -> String {
    let mut out = String::new();
    write(&mut out, record, rows).expect("writing to a String does not fail");
    out
}

fn write(out: &mut String, record: &Record, rows: &[Row]) -> fmt::Result {
    head(out, record)?;
    for group in rows.chunk_by(|a, b| (a.workload, a.item) == (b.workload, b.item)) {
        let title = match group[0].item {
            Some(item) => format!("{}, {}", group[0].workload, item.title()),
            None => group[0].workload.to_owned(),
        };
        let metrics = tables::metrics(group);
        for metric in &metrics {
            tables::values(out, &title, group, metric)?;
        }
        for metric in &metrics {
            for reference in tables::references(group) {
                tables::compared(out, &title, group, metric, reference)?;
            }
        }
        efficiency::table(out, &title, group, rows)?;
        targets::others(out, &title, group, rows)?;
        oversubscribed(out, group, record.machine.cores)?;
    }
    disturbances(out, rows)?;
    targets::summary(out, rows)
}

/// Writes the machine, the build and the number of rounds as a list.
///
/// # Errors
///
/// Returns the errors of the writer.
pub fn head(out: &mut String, record: &Record) -> fmt::Result {
    let machine = &record.machine;
    let known = |text: &str| match text {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    };
    writeln!(out, "- CPU: {}, {} processors", known(&machine.cpu), machine.cores)?;
    writeln!(out, "- kernel: {}", known(&machine.kernel))?;
    writeln!(out, "- compiler: {}", known(&machine.rustc))?;
    writeln!(out, "- commit: {}", known(&record.commit))?;
    for (name, version) in &record.peers {
        writeln!(out, "- {name}: {}", known(version))?;
    }
    let hand_offs = &record.hand_off_nanoseconds;
    if !hand_offs.is_empty() {
        let Interval { low, median, high, .. } = interval(hand_offs.iter().copied());
        writeln!(
            out,
            "- a cache line from processor to processor: {median:.1} ns ({low:.1}–{high:.1})"
        )?;
    }
    write!(out, "- rounds: {}", record.rounds)?;
    match ends_of(record.rounds) {
        Ends::Confident => writeln!(out)?,
        Ends::Extremes => writeln!(out, " (fewer than 6 rounds have no 95 % confidence interval)")?,
    }
    for caveat in record.caveats() {
        writeln!(out, "- beware: this {caveat}")?;
    }
    Ok(())
}

/// Formats a limit as it was fixed: with two digits, or with three if needed.
fn limit(at_most: f64) -> String {
    let short = format!("{at_most:.2}");
    if short.parse() == Ok(at_most) { short } else { format!("{at_most:.3}") }
}

/// Lists the rows with more workers than processors, because they measure the system's scheduler as well.
fn oversubscribed(out: &mut String, group: &[Row], cores: usize) -> fmt::Result {
    let mut too_many: Vec<usize> =
        group.iter().filter_map(|row| row.workers).filter(|&workers| workers > cores).collect();
    too_many.sort_unstable();
    too_many.dedup();
    if too_many.is_empty() {
        return Ok(());
    }
    let too_many: Vec<_> = too_many.iter().map(usize::to_string).collect();
    writeln!(
        out,
        "\nOversubscribed, because this machine has {cores} processors: the rows with {} workers.",
        too_many.join(", ")
    )
}

/// Writes how many samples were disturbed.
fn disturbances(out: &mut String, rows: &[Row]) -> fmt::Result {
    let entries = rows.iter().flat_map(|row| &row.entries);
    let disturbed: usize = entries.clone().map(Entry::disturbed).sum();
    if disturbed == 0 {
        return Ok(());
    }
    let all: usize = entries.map(|entry| entry.samples.len()).sum();
    writeln!(
        out,
        "\n{disturbed} of {all} samples were disturbed: the thief hardly ran at the same time as the \
         owner. Run again with two idle processors."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;
    use crate::record::Machine;
    use crate::row::tests::row;
    use crate::target::{Target, Than};

    fn target(of: &'static str, than: Than, at_most: f64) -> Target {
        Target { of, metric: &metric::TIME, than, at_most }
    }

    fn text(rows: &[Row]) -> String {
        let machine = Machine { cores: 2, ..Machine::default() };
        let hand_off_nanoseconds = vec![30.0; 3];
        markdown(&Record { machine, rounds: 3, hand_off_nanoseconds, ..Record::default() }, rows)
    }

    #[test]
    fn caveats_follow_the_machine() {
        let record = Record { optimized: Some(false), rounds: 6, ..Record::default() };
        let found = markdown(&record, &[]);
        assert!(
            found.ends_with(
                "- rounds: 6\n- beware: this is of a debug build, whose times say nothing\n"
            ),
            "{found}"
        );
    }

    #[test]
    fn a_target_is_met_or_missed() {
        let mut row = row(
            "empty",
            &[
                ("ours", [1.5, 30.0, 3.0]),
                ("also ours", [1.7, 34.0, 3.4]),
                ("slow", [1.7, 34.0, 3.4]),
                (REFERENCE, [2.0, 40.0, 4.0]),
            ],
        );
        row.references = vec![REFERENCE];
        let limits = [("ours", 0.8), ("also ours", 0.85), ("slow", 0.8)];
        row.targets = limits.map(|(of, limit)| target(of, Than::Entry(REFERENCE), limit)).into();
        let text = text(&[row]);
        let expected = "| title of empty | 0.80 | 0.750 (0.750–0.750) met | 0.850 (0.850–0.850) met \
             (0.85) | 0.850 (0.850–0.850) missed | 1.000 (1.000–1.000) |";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("Targets: 2 met, 1 missed."), "{text}");
    }

    #[test]
    fn targets_of_other_kinds_have_a_table_of_their_own() {
        let one = row("inside/1", &[("heist", [1.0, 2.0, 3.0])]);
        let mut two = row("inside/2", &[("heist", [2.0, 4.0, 6.0])]);
        two.targets = vec![
            target("heist", Than::Case("spawn/inside/1".into()), 1.5),
            target("heist", Than::Nothing, 10.0),
        ];
        let text = text(&[one, two]);
        for expected in [
            "| title of inside/2 | ns per operation | heist | heist in spawn/inside/1 | 1.50 | \
             2.000 (2.000–2.000) | missed |",
            "| title of inside/2 | ns per operation | heist | – | 10.00 | 4.000 (2.000–6.000) | met |",
            "Targets: 1 met, 1 missed.",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn without_the_reference_there_is_no_ratio() {
        let mut row = row("empty", &[("ours", [1.0, 2.0, 3.0])]);
        row.references = vec![REFERENCE];
        row.targets = vec![target("ours", Than::Entry(REFERENCE), 0.8)];
        let text = text(&[row]);
        assert!(text.contains("| title of empty | 2.00 (1.00–3.00) |"), "{text}");
        assert!(!text.contains("as a ratio"), "{text}");
        assert!(!text.contains("Targets"), "{text}");
    }

    #[test]
    fn every_reference_has_a_table() {
        let mut row = row("empty", &[("ours", [1.0; 3]), ("plain", [2.0; 3]), ("rayon", [4.0; 3])]);
        row.references = vec!["plain", "rayon", "absent"];
        row.targets = vec![
            target("ours", Than::Entry("plain"), 0.5),
            target("ours", Than::Entry("rayon"), 0.245),
        ];
        let text = text(&[row]);
        for expected in [
            "| title of empty | 0.50 | 0.500 (0.500–0.500) met |",
            "| title of empty | 0.245 | 0.250 (0.250–0.250) missed |",
            "Targets: 1 met, 1 missed.",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("ratio to absent"), "{text}");
    }

    #[test]
    fn an_entry_that_is_not_in_a_row_has_an_empty_cell() {
        let mut rows =
            [row("one", &[("a", [1.0; 3])]), row("two", &[("a", [1.0; 3]), ("b", [2.0; 3])])];
        rows.iter_mut().for_each(|row| row.references = vec!["a"]);
        let text = text(&rows);
        for expected in [
            "| case | a | b |",
            "| title of one | 1.00 (1.00–1.00) | – |",
            "| title of two | 1.000 (1.000–1.000) | 2.000 (2.000–2.000) |",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn efficiency_is_that_of_each_round() {
        let one = row("tree/1", &[("heist", [8.0, 80.0, 6.0]), ("plain", [1.0; 3])]);
        let mut two = row("tree/2", &[("heist", [4.0, 50.0, 6.0]), ("plain", [1.0; 3])]);
        two.entries[1].sequential = true;
        two.workers = Some(2);
        two.one_worker = Some("spawn/tree/1".into());
        let expected = "| title of tree/2 | 0.800 (0.500–1.000) | – |";
        let text = text(&[one, two]);
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn more_workers_than_processors_are_mentioned() {
        let with = |workers| {
            let mut row = row("tree", &[("heist", [1.0, 2.0, 3.0])]);
            row.workers = Some(workers);
            row
        };
        let line =
            "Oversubscribed, because this machine has 2 processors: the rows with 4, 24 workers.";
        assert!(text(&[with(2), with(4), with(24), with(4)]).contains(line));
        assert!(!text(&[with(1), with(2)]).contains("Oversubscribed"));
    }
}
