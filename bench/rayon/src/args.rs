//! The command line.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// An odd number, so that the median is a round that happened. A guess.
const ROUNDS: usize = 11;

/// How long a process measures: a round of all cases takes some 15 seconds.
const MILLIS: u64 = 100;

/// How long a process measures for a check: enough for a few runs of the longest case.
const CHECK_MILLIS: u64 = 10;

/// The same programs on rayon with its own rayon-core (stock) and with heist's (heist)
#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run every case with both programs, in interleaved rounds, and print the ratios
    Compare(Compare),
    /// Measure one case on the rayon-core that this program was built with, and print a line of JSON
    Run(Run),
    /// Print the names of the cases, their targets and what they are
    List,
    /// Print which rayon-core this program was built with
    Built,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The name of the case; `list` prints all names
    pub(crate) case: String,
    /// The number of threads of the pool
    #[arg(long, default_value = "2")]
    pub(crate) threads: NonZero<usize>,
    /// How long to measure, in milliseconds
    #[arg(long, default_value_t = MILLIS)]
    pub(crate) millis: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// The program that was built with rayon's own rayon-core; run.sh gives it
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) stock: PathBuf,
    /// The program that was built with heist's rayon-core; run.sh gives it
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) heist: PathBuf,
    /// Only the cases that this name matches; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) cases: Vec<String>,
    /// How often every case runs with each program [default: 11, with --check 1]
    #[arg(long, value_name = "N")]
    rounds: Option<NonZero<usize>>,
    /// The number of threads of the pool
    #[arg(long, value_name = "N", default_value = "2")]
    pub(crate) threads: NonZero<usize>,
    /// How long a process measures, in milliseconds [default: 100, with --check 10]
    #[arg(long, value_name = "N")]
    millis: Option<u64>,
    /// Write every sample, with the machine and the command, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Run one short round that only verifies the results
    #[arg(long)]
    pub(crate) check: bool,
}

impl Compare {
    pub(crate) fn rounds(&self) -> usize {
        let default = if self.check { 1 } else { ROUNDS };
        self.rounds.map_or(default, NonZero::get)
    }

    pub(crate) fn millis(&self) -> u64 {
        self.millis.unwrap_or(if self.check { CHECK_MILLIS } else { MILLIS })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn compared(line: &str) -> Compare {
        match Args::try_parse_from(line.split_whitespace()).map(|args| args.command) {
            Ok(Command::Compare(args)) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_check_is_short() {
        let args = compared("program compare --stock a --heist b --check");
        assert_eq!((args.rounds(), args.millis()), (1, CHECK_MILLIS));
        let args = compared("program compare --stock a --heist b --check --rounds 3");
        assert_eq!((args.rounds(), args.check), (3, true));
    }

    #[test]
    fn no_rounds_and_no_threads_are_errors() {
        for line in ["--rounds 0", "--threads 0", "--rounds x"] {
            let line = format!("program compare --stock a --heist b {line}");
            assert!(Args::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }
}
