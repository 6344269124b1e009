//! `heist-bench`: how long the queues and pools of heist and their peers take for the same work.
//!
//! Every case runs in interleaved rounds, everything that comes out of a queue or a pool is
//! checked, and the result is a ratio to a peer. `docs/METHODOLOGY.md` says why.

mod args;
mod cores;
mod deque;
mod fork;
mod handoff;
mod idle;
mod ignition;
mod injector;
mod item;
mod json;
mod latency;
mod machine;
mod measure;
mod metric;
mod pause;
mod pipeline;
mod pools;
mod random;
mod range;
mod report;
mod row;
mod sort;
mod spawn;
mod stats;
mod strategies;
mod target;
mod threads;
mod usage;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command};
use machine::Machine;
use row::Row;

/// What the shell is told when the command line was wrong.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    // SAFETY: no other thread has been started yet.
    unsafe { pools::set_environment() };
    let outcome = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => print(args::HELP),
        Ok(Command::List) => print(&report::list(&all_rows())),
        Ok(Command::Run(args)) => run(&args),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("heist-bench: {message}");
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn all_rows() -> Vec<Row> {
    let mut rows = deque::rows();
    rows.extend(injector::rows());
    rows.extend(spawn::rows());
    rows.extend(latency::rows());
    rows.extend(idle::rows());
    rows.extend(strategies::rows());
    rows.extend(ignition::rows());
    rows.extend(fork::rows());
    rows.extend(range::rows());
    rows.extend(sort::rows());
    rows.extend(pipeline::rows());
    rows
}

/// Measures, prints and keeps. An error is a message that says what to do.
fn run(args: &Args) -> Result<(), String> {
    let mut rows = all_rows();
    rows.retain(|row| args.selects(&row.id()));
    if rows.is_empty() {
        return Err("no case has that in its name; `--list` shows the names".into());
    }
    // Before the measurement, which would be lost if there were nowhere to put it.
    let json = args.json.as_deref().map(open).transpose()?;
    warn();
    let hand_offs = measure::run(&mut rows, args.rounds);
    let machine = Machine::look();
    if let Some(mut file) = json {
        let text = json::document(&machine, &hand_offs, &rows);
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| format!("the samples could not be written ({error}); run again"))?;
    }
    print(&report::markdown(&machine, &hand_offs, &rows))
}

fn open(path: &Path) -> Result<File, String> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(|error| {
        let path = path.display();
        format!("cannot write {path} ({error}); give --json a file in a folder that exists")
    })
}

/// Says what keeps this build from giving the numbers that count.
fn warn() {
    if cfg!(debug_assertions) {
        eprintln!("heist-bench: built without --release; these times mean nothing");
    }
    if cfg!(not(feature = "peers")) {
        eprintln!(
            "heist-bench: built without its peers, so there is no ratio to them. For that:\n    \
             cargo run --release -p heist-bench --features peers"
        );
    }
}

/// To stdout; whoever closes it early has seen enough.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the result could not be printed ({error}); redirect stdout to a file"))
        }
        _ => Ok(()),
    }
}
