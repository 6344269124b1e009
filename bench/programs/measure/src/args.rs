//! The command line.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// An odd number, so that the median is a pair that happened. A guess.
const PAIRS: NonZero<usize> = NonZero::new(21).unwrap();

/// Real programs that use rayon, on stock rayon-core and on heist's
#[derive(Debug, Parser)]
#[command(bin_name = "bench/programs.sh")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the packages that have to be built
    Needs(Run),
    /// Builds real programs that use rayon twice, with stock rayon-core and with heist's, and compares wall time, processor time
    /// and peak memory of the two in interleaved pairs
    #[command(bin_name = "bench/programs.sh")]
    Run(Run),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The programs to run, or single cases of them [default: all]
    pub(crate) names: Vec<String>,
    /// How often each case runs with each build
    #[arg(long, value_name = "N", default_value_t = PAIRS)]
    pub(crate) pairs: NonZero<usize>,
    /// Write every sample to this file; cases of an earlier run that it has are kept, and are part of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Build nothing and run nothing: print the table of a file that --json wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "json", "check"])]
    pub(crate) table: Option<PathBuf>,
    /// Only verify that both builds print the same, without names for the program that builds fastest
    #[arg(long)]
    pub(crate) check: bool,
    /// The directory of the programs and their input; the script gives it
    #[arg(long, value_name = "DIRECTORY", default_value = "target/programs", hide = true)]
    pub(crate) work: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn no_pairs_are_an_error() {
        assert!(Args::try_parse_from(["p", "run", "--pairs", "0"]).is_err());
    }
}
