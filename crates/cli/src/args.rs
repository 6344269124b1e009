//! The command line. The examples at the end of each help text are in [`help`].

mod sim;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process;

use clap::error::ErrorKind;
use clap::{
    ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum as _,
    ValueHint,
};
use colorchoice_clap::Color;

use crate::{help, out};
pub(crate) use sim::{Cores, Sim};

/// Measures and inspects heist, a work-stealing parallelism library, on your own machine. Without a command,
/// it runs the duel: a comparison of heist and rayon that takes at most 20 seconds.
#[derive(Debug, Parser)]
#[command(name = "heist", version, after_help = help::TOP, after_long_help = help::TOP_LONG)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) duel: Duel,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The options of the duel, which runs if no command is given.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Duel {
    /// Time limit of the duel, which runs if no command is given [default: 20]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seconds, value_hint = ValueHint::Other)]
    pub(crate) seconds: Option<f64>,
}

/// The options of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Print only the result
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure heist and its peers in interleaved rounds
    #[command(after_help = help::BENCH)]
    Bench(Bench),
    /// Compare two files of samples
    #[command(after_help = help::COMPARE)]
    Compare(Compare),
    /// Make an HTML page from a file of samples
    #[command(after_help = help::REPORT)]
    Report(Report),
    /// Record what each worker does in a benchmark case, or summarize a trace
    #[command(after_help = help::TRACE)]
    Trace(Trace),
    /// Run random workloads and check that no task is lost or runs twice
    #[command(after_help = help::SOAK)]
    Soak(Soak),
    /// Simulate how heist scales on up to 256 virtual cores
    #[command(after_help = help::SIM)]
    Sim(Sim),
    /// Show processors, caches and limits as the scheduler sees them
    #[command(after_help = help::TOPO)]
    Topo(Topo),
    /// Run pipelines on several machines: a server for trials, status, workers
    #[command(after_help = help::CLUSTER, disable_help_flag = true)]
    Cluster(Cluster),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(Completions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// Cases, by name or part of a name [default: all]
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::Other)]
    pub(crate) workloads: Vec<String>,
    /// Peers to measure, for example `heist,rayon` [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_hint = ValueHint::Other)]
    pub(crate) peers: Vec<String>,
    /// Measure only cases with these numbers of workers, for example `1,2`
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, value_parser = number, value_hint = ValueHint::Other)]
    pub(crate) workers: Vec<usize>,
    /// Number of rounds; each round measures everything once [default: 21]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = rounds, value_hint = ValueHint::Other)]
    pub(crate) rounds: Option<usize>,
    /// Measure for about this time instead, in as many rounds as fit
    #[arg(long, value_name = "N", conflicts_with = "rounds", allow_negative_numbers = true, value_parser = long_seconds, value_hint = ValueHint::Other)]
    pub(crate) seconds: Option<f64>,
    /// Write every sample to this file. With `-`, samples go to stdout and tables to stderr
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Show the limits that the authors of heist have set themselves, and whether they are met
    #[arg(long)]
    pub(crate) targets: bool,
    /// List the names of the cases without measuring
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Baseline samples, written by `heist bench --json`
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// Samples to compare with the baseline. A ratio below 1 means that these are faster
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Samples, written by `heist bench --json` or `heist sim --json`
    #[arg(value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// File for the page; `-` is stdout
    #[arg(long, short, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    /// Case, by name or part of a name, as for `heist bench`; with --summary also a trace file
    #[arg(value_name = "WORKLOAD", required_unless_present = "summary", value_hint = ValueHint::AnyPath)]
    pub(crate) workload: Option<String>,
    /// File for the trace; `-` is stdout [default: trace.json]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Show what each worker did: of the case, of a trace file, or of trace.json if none is named
    #[arg(long)]
    pub(crate) summary: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// Duration in minutes; may be a fraction
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = minutes, value_hint = ValueHint::Other)]
    pub(crate) minutes: f64,
    /// Duration in seconds instead; may be a fraction
    #[arg(long, value_name = "N", conflicts_with = "minutes", allow_negative_numbers = true, value_parser = long_seconds, value_hint = ValueHint::Other)]
    pub(crate) seconds: Option<f64>,
    /// Seed of the random workloads [default: a new one each time]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seed, value_hint = ValueHint::Other)]
    pub(crate) seed: Option<u64>,
    /// Repeat only this workload (shape) of the seed; a failure report names its number
    #[arg(long, value_name = "K", requires = "seed", allow_negative_numbers = true, value_parser = shape, value_hint = ValueHint::Other)]
    pub(crate) shape: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Topo {
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

/// The program `heist-cluster` parses the rest, and has the help.
#[derive(Debug, clap::Args)]
pub(crate) struct Cluster {
    /// A command of `heist-cluster` and its arguments, such as `status`
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::Other)]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

impl Args {
    /// Parses the command line. Ends the process if it is invalid or asks for help.
    pub(crate) fn from_command_line() -> Self {
        let words: Vec<_> = std::env::args_os().collect();
        // The parser prints errors and help itself, before it could report the value of `--color`.
        let color = color_of(&words);
        Color { color }.write_global();
        let mut command = Self::command().color(color);
        let matches = command.try_get_matches_from_mut(words).unwrap_or_else(|error| end(&error));
        let args = Self::from_arg_matches(&matches).unwrap_or_else(|error| end(&error));
        if args.command.is_some() && args.duel.seconds.is_some() {
            let message = "--seconds before a command applies only to the duel, which runs without a command: \
                           use `heist --seconds 5`, or for `bench` and `soak` `heist soak --seconds 5`";
            end(&command.error(ErrorKind::ArgumentConflict, message));
        }
        args.common.color.write_global();
        args
    }

    /// Returns `true` if the command runs benchmarks.
    pub(crate) fn measures(&self) -> bool {
        matches!(self.command, None | Some(Command::Bench(_) | Command::Trace(_)))
    }
}

/// Prints the error or the help, and ends the process. If help cannot be printed, the exit code says that, as
/// for any other result.
fn end(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| io::stdout().flush());
    process::exit(match printed {
        Err(refusal) if !error.use_stderr() => out::refused(&refusal).tell() as i32,
        _ => error.exit_code(),
    })
}

/// Finds the value of `--color` without the parser.
fn color_of(words: &[OsString]) -> ColorChoice {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut value = None;
    while let (Some(word), None) = (words.next(), value) {
        value = if word == "--color" { words.next() } else { word.strip_prefix("--color=") };
    }
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

/// Parses a number. The command itself rejects numbers that are too small.
fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number of at least 1, for example 5".to_owned())
}

fn rounds(text: &str) -> Result<usize, String> {
    // More would take weeks.
    number(text).and_then(|rounds| {
        if rounds <= 1_000_000 { Ok(rounds) } else { Err("must be at most 1000000".to_owned()) }
    })
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a whole number from 0 to {}", u64::MAX))
}

/// The limit is more than any run reaches, and leaves room to count on from the largest number.
fn shape(text: &str) -> Result<u64, String> {
    const LAST: u64 = 1_000_000_000_000_000_000;
    let shape = text.parse().ok().filter(|&shape| shape <= LAST);
    shape.ok_or_else(|| format!("not a whole number from 0 to {LAST}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "not a number of seconds, for example 10 or 2.5")?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be at least 0.1 seconds and at most an hour".to_owned())
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    duration(text, "minutes", 525_600.0)
}

/// Parses the seconds of a command that may run for days.
fn long_seconds(text: &str) -> Result<f64, String> {
    duration(text, "seconds", 31_536_000.0)
}

/// Parses a duration in a unit of which a year has that many.
fn duration(text: &str, unit: &str, year: f64) -> Result<f64, String> {
    let number: f64 =
        text.parse().map_err(|_| format!("not a number of {unit}, for example 10 or 0.5"))?;
    if number > 0.0 && number <= year {
        Ok(number)
    } else {
        Err(format!("must be more than 0 {unit} and at most a year"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn color_is_found_anywhere_in_the_command_line() {
        let found = |line: &str| color_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found("heist topo"), ColorChoice::Auto);
        assert_eq!(found("heist topo --color=never"), ColorChoice::Never);
        assert_eq!(found("heist --color always topo"), ColorChoice::Always);
        assert_eq!(found("heist topo --color"), ColorChoice::Auto);
        assert_eq!(found("heist topo --color loud"), ColorChoice::Auto);
    }

    #[test]
    fn seconds_are_limited() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        for wrong in ["0", "-1", "NaN", "1e9", "ten", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn minutes_are_positive() {
        assert_eq!(minutes("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "NaN", "inf", "ten", ""] {
            assert!(minutes(wrong).is_err(), "{wrong}");
            assert!(long_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
