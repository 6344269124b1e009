//! What the command line asks for. The examples that the help shows are in [`help`].

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process;

use clap::error::ErrorKind;
use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum as _, ValueHint,
};

use crate::style::Color;
use crate::{help, out};

/// Work-stealing parallelism, on your own machine: without a command, a duel of at most 20 seconds.
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

/// What the duel understands: it has no name of its own.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Duel {
    /// Without a command: how long the duel takes at most [default: 20]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seconds, value_hint = ValueHint::Other)]
    pub(crate) seconds: Option<f64>,
}

/// What every command understands.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Say nothing but the result
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure, against peers, in interleaved rounds
    #[command(after_help = help::BENCH)]
    Bench(Bench),
    /// Say what differs between two files of samples
    #[command(after_help = help::COMPARE)]
    Compare(Compare),
    /// Make a page of a file of samples
    #[command(after_help = help::REPORT)]
    Report(Report),
    /// Record what the workers do in one run of a workload
    #[command(after_help = help::TRACE)]
    Trace(Trace),
    /// Look for tasks that are lost or run twice, for as long as you like
    #[command(after_help = help::SOAK)]
    Soak(Soak),
    /// Show the machine as the scheduler sees it
    #[command(after_help = help::TOPO)]
    Topo(Topo),
    /// Print completions for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(Completions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// Cases, or parts of their names; all if none is given
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::Other)]
    pub(crate) workloads: Vec<String>,
    /// Who takes part, as `heist,rayon`; all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_hint = ValueHint::Other)]
    pub(crate) peers: Vec<String>,
    /// Only cases with so many workers, as `1,2`
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, value_parser = number, value_hint = ValueHint::Other)]
    pub(crate) workers: Vec<usize>,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 21, allow_hyphen_values = true, value_parser = rounds, value_hint = ValueHint::Other)]
    pub(crate) rounds: usize,
    /// Keep every sample in this file; `-` is stdout, and the tables go to stderr
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Show the names of the cases, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// The samples to compare with, from `heist bench --json`
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The samples to compare; a ratio below 1 says that these are faster
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Samples, from `heist bench --json`
    #[arg(value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where the page goes; `-` is stdout
    #[arg(long, short, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    /// The name of a case, or a part of it, as for `heist bench`
    #[arg(value_hint = ValueHint::Other)]
    pub(crate) workload: String,
    /// Where the trace goes; `-` is stdout
    #[arg(long, short, value_name = "FILE", default_value = "trace.json", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// For how long; fractions are fine
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = minutes, value_hint = ValueHint::Other)]
    pub(crate) minutes: f64,
    /// What all the random shapes follow from; another one each time if not given
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seed, value_hint = ValueHint::Other)]
    pub(crate) seed: Option<u64>,
    /// Only this shape of the seed, over and over: what a failure says to run
    #[arg(long, value_name = "K", requires = "seed", allow_negative_numbers = true, value_parser = shape, value_hint = ValueHint::Other)]
    pub(crate) shape: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Topo {
    /// For machines instead of people
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Which shell they are for
    pub(crate) shell: clap_complete::Shell,
}

impl Args {
    /// What was typed. If that makes no sense, or asks for help, the process ends here.
    pub(crate) fn from_command_line() -> Self {
        let words: Vec<_> = std::env::args_os().collect();
        // The parser prints errors and help before anybody could ask it what `--color` said.
        let color = wished(&words).unwrap_or(Color::Auto);
        color.choose();
        let mut command = Self::command().color(color.into());
        let matches = command.try_get_matches_from_mut(words).unwrap_or_else(|error| end(&error));
        let args = Self::from_arg_matches(&matches).unwrap_or_else(|error| end(&error));
        if args.command.is_some() && args.duel.seconds.is_some() {
            let message = "--seconds is for the duel, which has no command: `heist --seconds 5`";
            end(&command.error(ErrorKind::ArgumentConflict, message));
        }
        args.common.color.choose();
        args
    }

    /// Does it use the benchmark?
    pub(crate) fn measures(&self) -> bool {
        matches!(self.command, None | Some(Command::Bench(_) | Command::Trace(_)))
    }
}

/// Prints what is wrong, or the help, and ends the process. Help that cannot be printed is a failure like that of any other result.
fn end(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| io::stdout().flush());
    process::exit(match printed {
        Err(refusal) if !error.use_stderr() => out::refused(&refusal).tell() as i32,
        _ => error.exit_code(),
    })
}

fn wished(words: &[OsString]) -> Option<Color> {
    let place = words.iter().position(|word| {
        word.to_str().is_some_and(|word| word == "--color" || word.starts_with("--color="))
    })?;
    let word = words[place].to_str()?;
    let value = word.strip_prefix("--color=").or_else(|| words.get(place + 1)?.to_str())?;
    Color::from_str(value, false).ok()
}

/// Whether it is large enough is for the command to say.
fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number from 1 up, as 5".to_owned())
}

fn rounds(text: &str) -> Result<usize, String> {
    // So many would take weeks.
    number(text).and_then(|rounds| {
        if rounds <= 1_000_000 { Ok(rounds) } else { Err("no more than 1000000".to_owned()) }
    })
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a whole number from 0 to {}", u64::MAX))
}

/// After it there are more than anybody will run: the number of the last is one as well.
fn shape(text: &str) -> Result<u64, String> {
    const LAST: u64 = 1_000_000_000_000_000_000;
    let shape = text.parse().ok().filter(|&shape| shape <= LAST);
    shape.ok_or_else(|| format!("not a whole number from 0 to {LAST}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds, as 10 or 2.5")?;
    // An hour.
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("at least 0.1 seconds, and no more than an hour".to_owned())
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 =
        text.parse().map_err(|_| "not a number of minutes, as 10 or 0.5".to_owned())?;
    // A year.
    if minutes > 0.0 && minutes <= 525_600.0 {
        Ok(minutes)
    } else {
        Err("more than 0 minutes, and no more than a year".to_owned())
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
    fn a_wish_for_colours_is_found_wherever_it_stands() {
        let found = |line: &str| wished(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found("heist topo"), None);
        assert_eq!(found("heist topo --color=never"), Some(Color::Never));
        assert_eq!(found("heist --color always topo"), Some(Color::Always));
        assert_eq!(found("heist topo --color"), None);
        assert_eq!(found("heist topo --color loud"), None);
    }

    #[test]
    fn seconds_are_a_few() {
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
        }
    }
}
