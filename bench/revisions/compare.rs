//! Starts the processes, keeps their rounds in a record, and makes the table from it.

use std::env;
use std::error::Error;
use std::fmt::{self, Write};
use std::fs::File;
use std::process::Command;

use harness::machine::{self, Build};
use harness::record::{Record, Series};
use harness::row::Row;
use harness::stats::{Interval, ends_of, interval, ratios};
use harness::{Selection, report};

use crate::cases::{self, Case, WORKLOAD};
use crate::{Compare, Rounds};

const BEFORE: &str = "before";
const AFTER: &str = "after";

/// The variables with the number of workers of the global pool: the current name, and that of older revisions.
const WORKERS: [&str; 2] = ["HEIST_WORKERS", "HEIST_NUM_THREADS"];

/// Measures, writes the record, and returns the table.
pub(crate) fn run(args: &Compare) -> Result<String, Box<dyn Error>> {
    let selection = Selection { cases: args.cases.clone(), ..Selection::default() };
    let rows = selection.of(cases::rows())?;
    let cases: Vec<Case> = rows.iter().filter_map(|row: &Row| cases::find(&row.case)).collect();
    // Created before the measurement, which would be lost if the file could not be written.
    let json = args.json.as_ref().map(File::create).transpose()?;
    let mut found: Vec<Vec<Rounds>> = cases.iter().map(|_| Vec::new()).collect();
    for process in 1..=args.processes.get() {
        eprintln!("process {process} of {}", args.processes);
        for (case, found) in cases.iter().zip(&mut found) {
            found.push(in_a_process(*case, args.rounds.get())?);
        }
    }
    let pairs = cases.iter().zip(&found);
    let samples = pairs.flat_map(|(case, found)| series(*case, found)).collect();
    let record = Record { samples, ..about(args) };
    if let Some(file) = json {
        record.write(file)?;
    }
    let mut out = String::new();
    table(&mut out, &record, args).expect("writing to a String does not fail");
    Ok(out)
}

fn in_a_process(case: Case, rounds: usize) -> Result<Rounds, Box<dyn Error>> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["run", case.id, &rounds.to_string()]);
    command.envs(WORKERS.map(|name| (name, case.workers.to_string())));
    let output = command.output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed: {message}", case.id).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns a record without measurements. A round of the record is a process.
fn about(args: &Compare) -> Record {
    let rustc = Command::new("rustc").arg("-V").output();
    let rustc = rustc.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().into(),
    );
    let peers = [(BEFORE, &args.before), (AFTER, &args.after)];
    let build = Build {
        rustc,
        commit: args.after.clone(),
        peers: peers.map(|(name, commit)| (name.into(), commit.clone())).into(),
    };
    let record = machine::look(build);
    // The script replaces the revisions by their commits; it is given the commits in order to repeat the run.
    let options = record.arguments.iter().skip(5).cloned();
    Record {
        script: Some("bench/revisions/run.sh".into()),
        arguments: [args.before.clone(), args.after.clone()].into_iter().chain(options).collect(),
        rounds: args.processes.get(),
        complete: Some(true),
        unit: "a value a process: the median of its rounds, in nanoseconds per operation; runs are the rounds".into(),
        ..record
    }
}

/// Returns the series of the two revisions.
fn series(case: Case, processes: &[Rounds]) -> [Series; 2] {
    let round = |value: f64| (value * 1e4).round() / 1e4;
    let side = |by: &str, of: fn(&(f64, f64)) -> f64| {
        let runs: Vec<Vec<f64>> = processes
            .iter()
            .map(|rounds| rounds.iter().map(|pair| round(of(pair))).collect())
            .collect();
        let values = runs.iter().map(|rounds| round(interval(rounds.iter().copied()).median));
        Series {
            workload: WORKLOAD.into(),
            case: case.id.into(),
            title: case.title.into(),
            workers: Some(case.workers),
            by: by.into(),
            values: [("nanoseconds".into(), values.collect())].into(),
            runs,
            ..Series::default()
        }
    };
    [side(BEFORE, |pair| pair.0), side(AFTER, |pair| pair.1)]
}

fn table(out: &mut String, record: &Record, args: &Compare) -> fmt::Result {
    report::head(out, record)?;
    writeln!(
        out,
        "\nns per operation: the median of {} processes' medians of {} rounds. Bold: the whole interval of the ratio \
         is above 1.\n",
        args.processes, args.rounds
    )?;
    let ends = ends_of(args.processes.get());
    writeln!(
        out,
        "| case | before | after | after / before, in the rounds of a process | {ends} |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|")?;
    for pair in record.samples.chunks_exact(2) {
        let [before, after] = pair else { continue };
        let median =
            |series: &Series| interval(series.values["nanoseconds"].iter().copied()).median;
        let Interval { low, median: ratio, high, .. } = interval(ratios_of(before, after));
        let bold = if low > 1.0 { "**" } else { "" };
        writeln!(
            out,
            "| {}: {} | {:.2} | {:.2} | {bold}{ratio:.3}{bold} | {low:.3}–{high:.3} |",
            before.case,
            before.title,
            median(before),
            median(after),
        )?;
    }
    Ok(())
}

/// Returns for each process the median of the ratios of its rounds.
fn ratios_of<'s>(before: &'s Series, after: &'s Series) -> impl Iterator<Item = f64> + 's {
    let rounds = after.runs.iter().zip(&before.runs);
    rounds.map(|(after, before)| {
        interval(ratios(after.iter().copied(), before.iter().copied())).median
    })
}
