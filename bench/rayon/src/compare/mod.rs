//! Compares the two programs: every case is a row of the harness with two entries, and a sample is a process.

mod process;
mod report;

use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use harness::machine::{self, Build};
use harness::metric;
use harness::record::Record;
use harness::row::{Row, Sample};
use harness::stats::interval;
use harness::{Bench, Selection, Step, Watcher};

use crate::args::Compare;
use crate::cases;
use crate::worker::Process;

/// The family of all cases.
const WORKLOAD: &str = "rayon";

/// The names of the two programs in tables and records.
const STOCK: &str = "stock";
const HEIST: &str = "heist";

/// The first failure of a process; it ends the run.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Measures, writes the record, and returns the tables. An error is a message that says what to do.
pub(crate) fn run(args: &Compare) -> Result<String, String> {
    let selection = Selection { cases: args.cases.clone(), ..Selection::default() };
    let rows = selection
        .of(rows(args))
        .map_err(|error| format!("{error}; the subcommand `list` prints all names"))?;
    if args.check {
        return check(args, &rows);
    }
    // Opened before the measurement, which would be lost if the file could not be written.
    let json = args.json.as_deref().map(open).transpose()?;
    // The commit is read before the measurement as well, because the sources may change meanwhile.
    let mut bench = Bench::new(rows, about(args)?);
    bench.run(args.rounds(), &mut Progress { rounds: args.rounds(), seen: 0 });
    if let Some(message) = FAILURE.get() {
        return Err(message.clone());
    }
    let record = bench.record();
    if let Some(file) = json {
        file.set_len(0)
            .and_then(|()| record.write(file))
            .map_err(|error| format!("the samples could not be written ({error}); run again"))?;
    }
    Ok(report::markdown(&record))
}

/// Returns every case, with both programs.
fn rows(args: &Compare) -> Vec<Row> {
    let row = |case: cases::Case| {
        let metrics = vec![case.metric, &metric::PROCESS_CPU, &metric::PROCESS_SWITCHES];
        let mut row = Row::of_pools(WORKLOAD, case.id.into(), case.title, metrics);
        row.references = vec![STOCK];
        row.workers = Some(args.threads.get());
        for (name, program) in [(STOCK, &args.stock), (HEIST, &args.heist)] {
            let job = process::Job::new(program, case.id, args);
            row.enter(name, move || sample(name, &job));
        }
        row
    };
    cases::all().into_iter().map(row).collect()
}

/// Runs a process. Its value is the median of its runs.
fn sample(by: &str, job: &process::Job) -> Sample {
    match job.run() {
        Ok(Process { runs, cpu_milliseconds, switches }) => {
            let median = interval(runs.iter().copied()).median;
            Sample { runs, ..Sample::of([median, cpu_milliseconds, switches]) }
        }
        Err(reason) => {
            // Only the first failure is reported: the run ends with it.
            let _ = FAILURE.set(format!("{} with {by} failed: {reason}", job.case));
            Sample::of([f64::NAN; 3])
        }
    }
}

/// Prints when a round is done, and ends the run after a failure.
struct Progress {
    rounds: usize,
    /// The round that is being measured.
    seen: usize,
}

impl Watcher for Progress {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if step.round > self.seen {
            eprintln!("round {}/{} done", step.round, self.rounds);
            self.seen = step.round;
        }
        if FAILURE.get().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn after(&mut self, _: &Step<'_>, _: &[f64]) {}
}

/// Runs every process once, and goes on after a failure in order to show all of them.
fn check(args: &Compare, rows: &[Row]) -> Result<String, String> {
    let mut failures = 0;
    for row in (0..args.rounds()).flat_map(|_| rows) {
        for (name, program) in [(STOCK, &args.stock), (HEIST, &args.heist)] {
            if let Err(reason) = process::Job::new(program, &row.case, args).run() {
                eprintln!("{} with {name} failed: {reason}", row.case);
                failures += 1;
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
        format!("cannot write {path} ({error}); give --json a file in a directory that exists")
    })
}

/// Returns a record without measurements: the machine, the commit, and which rayon-core each program has.
fn about(args: &Compare) -> Result<Record, String> {
    let built = |program: &PathBuf| {
        let found = output(program, &["built"]);
        found.ok_or_else(|| {
            format!("cannot run {}; bench/rayon/run.sh builds it", program.display())
        })
    };
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=12"];
    let build = Build {
        rustc: output("rustc", &["-V"]).unwrap_or_default(),
        commit: output("git", &git).unwrap_or_default(),
        peers: [
            (format!("rayon-core ({STOCK})"), built(&args.stock)?),
            (format!("rayon-core ({HEIST})"), built(&args.heist)?),
        ]
        .into(),
    };
    let record = machine::look(build);
    let arguments = typed(record.arguments.iter().cloned()).collect();
    Ok(Record { script: Some("bench/rayon/run.sh".into()), arguments, ..record })
}

fn output(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Returns what was given to the script: without the subcommand and the programs, which the script adds.
fn typed(mut all: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        loop {
            let argument = all.next()?;
            match argument.as_str() {
                "compare" => {}
                "--stock" | "--heist" => drop(all.next()),
                _ => return Some(argument),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    pub(super) fn args() -> Compare {
        let line = ["program", "compare", "--stock", "no-such-program", "--heist", "b"];
        let Command::Compare(args) = Args::parse_from(line).command else { unreachable!() };
        args
    }

    #[test]
    fn what_the_script_adds_is_not_recorded() {
        let all = ["compare", "--stock", "a/b", "--heist", "c", "--rounds", "3"].map(String::from);
        assert!(typed(all.into_iter()).eq(["--rounds", "3"]));
    }

    #[test]
    fn every_case_has_both_programs() {
        for row in rows(&args()) {
            let names: Vec<_> = row.entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names, [STOCK, HEIST]);
            assert_eq!(row.workers.and_then(NonZero::new), Some(args().threads));
        }
    }

    #[test]
    fn a_part_of_a_name_selects_cases() {
        for (asked, count) in [("join", 3), ("join/fib", 1), ("sum/inside", 4), ("fib", 1)] {
            let selection = Selection { cases: vec![asked.into()], ..Selection::default() };
            assert_eq!(selection.of(rows(&args())).unwrap().len(), count, "{asked}");
        }
    }
}
