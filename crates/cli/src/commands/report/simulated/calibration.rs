//! How well the model agrees with a real machine. These tables are the source; docs/SIMULATION.md has a copy of each.

use super::super::html::{Table, section, text};
use super::figure;
use crate::commands::sim::record::SimRecord;
use crate::commands::sim::summary::Curve;
use crate::units;

/// The machine on which was measured.
const MACHINE: &str = "AMD EPYC of family 25, model 17 (two processors, under KVM)";

/// Nanoseconds of operations on a cache line that two cores use: on the machine of the measurements, and on the generic one
/// with two cores. Printed by `cargo run --release -p heist-sim --example calibrate`.
const LINE: [(&str, f64, f64); 4] = [
    ("hand-over, one way", 32.1, 44.7),
    ("fetch_add of two threads, 0 pauses between", 4.4, 4.9),
    ("fetch_add of two threads, 4 pauses between", 57.1, 64.5),
    ("fetch_add of two threads, 32 pauses between", 410.6, 414.5),
];

/// The columns of [`RATIOS`]: a strategy on a number of workers.
const COLUMNS: [(&str, usize); 6] = [
    ("work-stealing", 1),
    ("work-stealing", 2),
    ("locked-deques", 1),
    ("locked-deques", 2),
    ("global-queue", 1),
    ("global-queue", 2),
];

/// The simulated time of each workload on `dev-2`, divided by the real time on the machine that it describes. From
/// `cargo run --release -p heist-sim-workloads --example compare`.
const RATIOS: [(&str, [f64; COLUMNS.len()]); 8] = [
    ("spawn", [0.95, 0.95, 0.94, 0.95, 0.94, 0.95]),
    ("join", [0.96, 0.96, 0.95, 0.95, 0.98, 0.97]),
    ("scope", [0.93, 0.96, 0.93, 0.97, 0.96, 1.00]),
    ("outside", [0.70, 0.84, 0.68, 0.85, 0.69, 0.89]),
    ("loop", [0.95, 0.94, 0.96, 0.93, 0.95, 0.92]),
    ("pipe", [0.96, 0.93, 0.96, 0.96, 0.97, 0.93]),
    ("pipe-ordered", [0.96, 0.94, 0.96, 0.92, 0.94, 0.96]),
    ("sort", [0.60, 0.49, 0.58, 0.40, 0.44, 0.41]),
];

/// What the ratios were taken of.
const RUNS: &str =
    "one-microsecond tasks, about 4 ms of work for each worker, the fastest of 15 real runs";

/// Why some ratios are not close to 1.
const DIFFERENCES: &str = "Where they differ: tasks from outside run instructions between the accesses that are charged, on the critical path of \
     the one producer; other runs of the same comparison had from 0.76 to 1.03 there. A sort moves data and compares for 5 ns at \
     a time, and the simulation charges only the declared time of the comparisons; it must not be read as a prediction of sorting \
     times. Single real runs on this machine vary by a tenth and more, because other programs run on it.";

/// A table with the heading that it has on the page and in docs/SIMULATION.md.
struct Compared {
    heading: &'static str,
    what: String,
    table: Table,
    note: &'static str,
}

/// Returns the section.
pub(super) fn calibration(record: &SimRecord) -> String {
    let heading = format!("Calibration: simulated against measured on an {MACHINE}");
    let lead = format!(
        "The figures of this page are simulated on the machine {}. The model was compared with a real machine of two processors \
         only: nothing here was checked on more.",
        record.machine.name
    );
    let card = |compared: &Compared| {
        let note = match compared.note {
            "" => String::new(),
            note => format!("<p class=\"quiet\">{}</p>\n", text(note)),
        };
        figure("card whole", compared.heading, &compared.what, &(compared.table.open() + &note))
    };
    section("calibration", &heading, &lead, &tables().iter().map(card).collect::<String>())
}

/// Returns the ratios on two workers of the workload and the strategies of a chart, as a sentence; nothing if none was measured.
pub(super) fn beside(curves: &[Curve<'_>]) -> String {
    let ratio = |curve: &Curve<'_>| {
        let (_, ratios) = RATIOS.iter().find(|(workload, _)| *workload == curve.workload)?;
        let column = COLUMNS.iter().position(|&column| column == (curve.strategy, 2))?;
        Some(format!("{:.2} with {}", ratios[column], curve.strategy))
    };
    let ratios: Vec<String> = curves.iter().filter_map(ratio).collect();
    if ratios.is_empty() {
        return String::new();
    }
    let words = format!(
        "Simulated / real time of the model dev-2 on two workers: {}.",
        units::list(&ratios)
    );
    format!("<p class=\"quiet\">{} <a href=\"#calibration\">Calibration</a></p>\n", text(&words))
}

fn tables() -> [Compared; 2] {
    [
        Compared {
            heading: "Two cores on one line",
            what: format!("the generic machine with two cores, compared with an {MACHINE}"),
            table: line(),
            note: "",
        },
        Compared {
            heading: "Simulated and real times",
            what: format!(
                "time of the model dev-2 divided by that of the machine that it describes, an {MACHINE}, for each strategy on one \
                 and two workers; {RUNS}"
            ),
            table: ratios(),
            note: DIFFERENCES,
        },
    ]
}

fn line() -> Table {
    let mut table = Table::new(
        "simulated and measured operations of two cores on one cache line",
        &["nanoseconds", "measured", "simulated"],
    );
    let row = |(what, measured, simulated): &(&str, f64, f64)| {
        vec![(*what).to_owned(), format!("{measured:.1}"), format!("{simulated:.1}")]
    };
    table.rows = LINE.iter().map(row).collect();
    table
}

fn ratios() -> Table {
    let mut table = Table::new("simulated times divided by real times", &["simulated / real"]);
    table.head.extend(COLUMNS.map(|(strategy, workers)| format!("{strategy}, {workers}")));
    let row = |(workload, ratios): &(&str, [f64; COLUMNS.len()])| {
        let ratios = ratios.iter().map(|ratio| format!("{ratio:.2}"));
        [(*workload).to_owned()].into_iter().chain(ratios).collect()
    };
    table.rows = RATIOS.iter().map(row).collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../../../../../docs/SIMULATION.md");

    /// Returns the section of the documentation with a heading, without the heading.
    fn documented(heading: &str) -> &'static str {
        let heading = format!("\n## {heading}\n");
        let (_, after) = DOCS.split_once(&heading).unwrap_or_else(|| panic!("{heading}"));
        after.split("\n## ").next().unwrap()
    }

    /// Returns a text on one line.
    fn joined(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_documentation_has_the_same_tables() {
        for Compared { heading, table, .. } in tables() {
            let lines = documented(heading).lines().filter(|line| line.starts_with('|'));
            let is_rule = |line: &&str| line.chars().all(|character| "|-".contains(character));
            let cells = |line: &str| -> Vec<String> {
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
            };
            let documented: Vec<_> = lines.filter(|line| !is_rule(line)).map(cells).collect();
            let shown: Vec<_> = [table.head].into_iter().chain(table.rows).collect();
            assert_eq!(documented, shown, "{heading}");
        }
    }

    #[test]
    fn the_documentation_has_the_same_words() {
        assert!(joined(DOCS).contains(MACHINE));
        let section = joined(documented("Simulated and real times"));
        assert!(section.contains(RUNS) && section.contains(DIFFERENCES), "{section}");
    }
}
