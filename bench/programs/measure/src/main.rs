//! Compares two builds of the same programs, of which one has stock rayon-core and the other ours. `bench/programs.sh` builds
//! them and runs this.

#[cfg(unix)]
mod args;
#[cfg(unix)]
mod cases;
#[cfg(unix)]
mod compare;
#[cfg(unix)]
mod input;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod report;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;

    let outcome = match args::Args::parse().command {
        args::Command::Needs(run) => compare::needs(&run),
        args::Command::Run(run) => compare::run(&run),
    };
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("bench/programs.sh: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!(
        "bench/programs.sh: this system does not tell what a process used; run it on Linux or macOS"
    );
    ExitCode::FAILURE
}
