//! Both programs in turn: in which order, and what to keep.

mod process;
mod record;
mod report;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::args::Compare;
use crate::cases::{self, Case};
use crate::{machine, stats};

/// Which of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Stock,
    Heist,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Heist => "heist",
        }
    }
}

/// What one process has found.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    /// The version, and where it is from.
    rayon_core: String,
    /// At least one.
    samples: Vec<f64>,
    /// Of the whole process while it measured.
    cpu_millis: f64,
    /// Of context, in the same time.
    switches: f64,
}

impl Process {
    fn median(&self) -> f64 {
        stats::percentile(&mut self.samples.clone(), 0.5)
    }
}

/// A case and what was found: a process a round on either side.
struct Row {
    case: Case,
    stock: Vec<Process>,
    heist: Vec<Process>,
}

impl Row {
    fn new(case: Case) -> Self {
        Self { case, stock: Vec::new(), heist: Vec::new() }
    }

    fn side(&mut self, side: Side) -> &mut Vec<Process> {
        match side {
            Side::Stock => &mut self.stock,
            Side::Heist => &mut self.heist,
        }
    }
}

/// Measures, keeps, and returns what to print. An error is a message that says what to do.
pub(crate) fn run(args: &Compare) -> Result<String, String> {
    let cases = cases::all().into_iter().filter(|case| args.selects(case.id));
    let mut rows: Vec<Row> = cases.map(Row::new).collect();
    if rows.is_empty() {
        return Err("no case has that in its name; `list` shows the names".into());
    }
    if args.check {
        return check(args, &mut rows);
    }
    // Before the measurement, which would be lost if there were nowhere to put it.
    let json = args.json.as_deref().map(open).transpose()?;
    // So is the commit: somebody might go on working.
    let machine = machine::look();
    for round in 0..args.rounds {
        for (number, row) in rows.iter_mut().enumerate() {
            for side in order(round + number) {
                let found = process::run(args, side, row.case.id)?;
                row.side(side).push(found);
            }
        }
        eprintln!("round {}/{} done", round + 1, args.rounds);
    }
    if let Some(mut file) = json {
        let text = record::document(args, &machine, &rows);
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| format!("the samples could not be written ({error}); run again"))?;
    }
    Ok(report::markdown(args, &machine, &rows))
}

/// What one leaves behind is not always left to the same other.
fn order(turn: usize) -> [Side; 2] {
    if turn.is_multiple_of(2) { [Side::Stock, Side::Heist] } else { [Side::Heist, Side::Stock] }
}

/// Goes on after a failure, to show all of them.
fn check(args: &Compare, rows: &mut [Row]) -> Result<String, String> {
    let mut failures = 0;
    for _ in 0..args.rounds {
        for row in &*rows {
            for side in order(0) {
                if let Err(message) = process::run(args, side, row.case.id) {
                    eprintln!("{message}");
                    failures += 1;
                }
            }
        }
    }
    match failures {
        0 => Ok(format!("{} cases: every result was right with both programs\n", rows.len())),
        some => Err(format!("{some} runs failed; the lines above say which")),
    }
}

fn open(path: &Path) -> Result<File, String> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(|error| {
        let path = path.display();
        format!("cannot write {path} ({error}); give --json a file in a folder that exists")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn process(samples: &[f64]) -> Process {
        let rayon_core = "1.13.0 from the registry".into();
        Process { rayon_core, samples: samples.to_vec(), cpu_millis: 1.0, switches: 2.0 }
    }

    /// With a value a round on either side.
    pub(super) fn row(id: &str, stock: &[f64], heist: &[f64]) -> Row {
        let mut cases = cases::all().into_iter();
        let case = cases.find(|case| case.id == id).expect("the case is there");
        let processes = |values: &[f64]| values.iter().map(|&value| process(&[value])).collect();
        Row { case, stock: processes(stock), heist: processes(heist) }
    }

    pub(super) fn args() -> Compare {
        Compare {
            stock: "a".into(),
            heist: "b".into(),
            cases: vec![],
            rounds: 3,
            threads: 2,
            millis: 100,
            json: None,
            check: false,
        }
    }

    #[test]
    fn each_comes_first_in_turn() {
        assert_eq!(order(0), [Side::Stock, Side::Heist]);
        assert_eq!(order(1), [Side::Heist, Side::Stock]);
    }

    #[test]
    fn a_process_is_its_median() {
        assert_eq!(process(&[9.0, 1.0, 5.0]).median(), 5.0);
    }
}
