//! The program `heist-cluster`, which `heist cluster` runs: a server for trials, what happens on a cluster, and workers.

mod args;
mod status;
mod up;
mod worker;

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser as _;
use heist_cluster::Cluster;

/// Why a command has failed: what happened, and what to do.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let ended = match Args::parse().command {
        Command::Up(asked) => up::run(&asked),
        Command::Status(asked) => status::run(&asked),
        Command::Worker(asked) => worker::run(&asked),
        Command::Drain(asked) => drain(asked.node.as_deref()),
    };
    match ended {
        Ok(code) => code,
        // Nobody reads the output any more, as in `heist cluster status | head -1`.
        Err(failure) if is_closed_pipe(&failure) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "heist cluster: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(failure: &Failure) -> bool {
    failure.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Connects to the server that the environment names.
fn observer() -> Result<heist_cluster::Observer, Failure> {
    Ok(Cluster::from_env()?.observe()?)
}

/// Has one worker leave, or all of them.
fn drain(node: Option<&str>) -> Result<ExitCode, Failure> {
    let leaving = observer()?.drain(node)?;
    if leaving.is_empty() {
        let asked = node.map_or("no worker answers".to_owned(), |node| {
            format!("no worker with the name {node:?} answers")
        });
        return Err(format!("{asked}: `heist cluster status` shows the workers").into());
    }
    let mut out = io::stdout().lock();
    for worker in leaving {
        let (node, job) = (harmless(&worker.node), harmless(&worker.job));
        let batches = if worker.held == 1 { "batch" } else { "batches" };
        writeln!(out, "{node} leaves the job {job}; it had {} {batches}", worker.held)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the text of another process safe for a terminal.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
