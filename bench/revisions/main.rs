//! Compares two revisions of heist on the same programs, in the same processes.
//!
//! Within a process, the two revisions run in turn, round by round, so that whatever else happens on the machine
//! affects both. There are many processes, because each has its own luck with the addresses of its stacks and of its
//! memory. `run.sh` builds this program with the two revisions as dependencies of different names.

mod after;
mod before;
mod cases;
mod compare;

use std::error::Error;
use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Compare two revisions of heist in the same processes; run.sh builds and starts this program
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure all cases in processes of their own, and print the ratios
    Compare(Compare),
    /// Measure one case in this process, and print the rounds as a line of JSON
    Run { case: String, rounds: usize },
    /// Print the names of the cases
    List,
}

#[derive(Debug, clap::Args)]
struct Compare {
    /// The commit of the first revision; run.sh gives it
    #[arg(long, value_name = "COMMIT")]
    before: String,
    /// The commit of the second revision; run.sh gives it
    #[arg(long, value_name = "COMMIT")]
    after: String,
    /// The number of processes for each case
    #[arg(long, value_name = "N", default_value = "15")]
    processes: NonZero<usize>,
    /// The number of rounds in a process
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZero<usize>,
    /// Only the cases that this name matches; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Write every sample, with the machine and the command, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Args::parse().command {
        Command::Compare(args) => print!("{}", compare::run(&args)?),
        Command::Run { case, rounds } => {
            println!("{}", serde_json::to_string(&in_turn(&case, rounds)?)?);
        }
        Command::List => {
            cases::ALL.iter().for_each(|case| println!("{:<20} {}", case.id, case.title))
        }
    }
    Ok(())
}

/// The values of the two revisions in each round of a process.
type Rounds = Vec<(f64, f64)>;

/// Measures a case in this process. The first revision begins in every other round.
fn in_turn(case: &str, rounds: usize) -> Result<Rounds, Box<dyn Error>> {
    let case = cases::find(case).ok_or("no case has this name; `list` prints all names")?;
    let mut before = before::programs::prepare(case);
    let mut after = after::programs::prepare(case);
    let round = |round: usize| {
        if round % 2 == 0 {
            let found = before();
            (found, after())
        } else {
            let found = after();
            (before(), found)
        }
    };
    // The first round is a warm-up.
    Ok((0..=rounds).map(round).skip(1).collect())
}
