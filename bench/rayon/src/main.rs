//! The same programs on rayon as it comes and on rayon with heist in the place of rayon-core.
//!
//! Built twice, once with each. `run` measures one case on what this program was built with;
//! `compare` runs both programs in interleaved rounds.

mod args;
mod built;
mod cases;
mod compare;
mod json;
mod machine;
mod worker;

#[path = "../../src/random.rs"]
mod random;
#[path = "../../src/stats.rs"]
#[allow(dead_code, unreachable_pub, reason = "of a library whose others use all of it")]
mod stats;
#[path = "../../src/usage/mod.rs"]
mod usage;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    let outcome = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => print(args::HELP),
        Ok(Command::List) => print(&cases::list()),
        Ok(Command::Run(args)) => worker::run(&args).and_then(|line| print(&line)),
        Ok(Command::Compare(args)) => compare::run(&args).and_then(|text| print(&text)),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}: {message}", env!("CARGO_PKG_NAME"));
            ExitCode::FAILURE
        }
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
