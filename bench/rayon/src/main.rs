//! The same programs on rayon's own rayon-core (`stock`) and on heist's (`heist`).
//!
//! This program is built twice, once with each. `run` measures one case on the rayon-core that the program was built
//! with; `compare` runs both programs in interleaved rounds, with the harness of `heist bench`.

mod args;
mod built;
mod cases;
mod compare;
mod worker;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::List => print(&cases::list()),
        Command::Built => print(&format!("{}\n", built::rayon_core())),
        Command::Run(args) => worker::run(&args).and_then(|line| print(&line)),
        Command::Compare(args) => compare::run(&args).and_then(|text| print(&text)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}: {message}", env!("CARGO_PKG_NAME"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to stdout. A reader that closes the pipe early is not an error.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the result could not be printed ({error}); redirect stdout to a file"))
        }
        _ => Ok(()),
    }
}
