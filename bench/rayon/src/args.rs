//! What the command line asks for.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// An odd number, so that the median is a round that happened. A guess.
const ROUNDS: usize = 11;

/// What the machines have that this is measured on.
const THREADS: usize = 2;

/// How long a process measures: a round of all cases takes some 15 seconds.
const MILLIS: u64 = 100;

/// Enough for a few runs of the longest case.
const CHECK_MILLIS: u64 = 10;

pub(crate) const HELP: &str = "\
The same programs on rayon with its own rayon-core (stock) and with heist's (heist).

    compare --stock PROGRAM --heist PROGRAM [OPTIONS]
        Runs every case with both, in interleaved rounds, and prints the ratios.

        --case TEXT     only cases with TEXT in their name; may be given again for more
        --rounds N      run every case N times with each (default 11)
        --threads N     in a pool of N threads (default 2)
        --millis N      so long in a process (default 100)
        --json FILE     keep every sample, with the machine and the command, in FILE
        --check         one short round, only to verify the results

    run CASE [--threads N] [--millis N]
        Measures one case on what this program was built with. Prints a line of JSON.

    list
        Shows the names of the cases, their targets, and what they are.
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    List,
    Run(Run),
    Compare(Compare),
}

/// One case in this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) case: String,
    /// At least one.
    pub(crate) threads: usize,
    /// At least one.
    pub(crate) millis: u64,
}

/// Both programs in turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compare {
    pub(crate) stock: PathBuf,
    pub(crate) heist: PathBuf,
    /// Empty: every case.
    pub(crate) cases: Vec<String>,
    /// At least one.
    pub(crate) rounds: usize,
    pub(crate) threads: usize,
    pub(crate) millis: u64,
    pub(crate) json: Option<PathBuf>,
    pub(crate) check: bool,
}

impl Compare {
    /// Was the case of this name asked for?
    pub(crate) fn selects(&self, id: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|part| id.contains(part.as_str()))
    }
}

/// A command line that makes no sense, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// An option that takes a value, or the command that takes a case, came last.
    MissingValue(String),
    /// The option is not there at all.
    MissingOption(&'static str),
    /// What an option takes is a number.
    BadNumber(String, OsString),
    Unknown(OsString),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingValue(option) => write!(f, "{option} needs a value after it; see --help"),
            Self::MissingOption(option) => {
                write!(f, "{option} is needed; bench/rayon/run.sh gives it")
            }
            Self::BadNumber(option, text) => {
                write!(f, "{option} takes a number from 1 up, not {}", text.display())
            }
            Self::Unknown(text) => write!(f, "{} has no meaning here; see --help", text.display()),
        }
    }
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut rest = Rest(args.into_iter());
    let Some(command) = rest.0.next() else {
        return Ok(Command::Help);
    };
    match command.to_str() {
        Some("--help" | "-h" | "help") => Ok(Command::Help),
        Some("list") => Ok(Command::List),
        Some("run") => run(rest).map(Command::Run),
        Some("compare") => compare(rest).map(Command::Compare),
        _ => Err(UsageError::Unknown(command)),
    }
}

fn run(mut rest: Rest<impl Iterator<Item = OsString>>) -> Result<Run, UsageError> {
    let case = rest.text("run")?;
    let mut run = Run { case, threads: THREADS, millis: MILLIS };
    while let Some(option) = rest.0.next() {
        match option.to_str() {
            Some(name @ "--threads") => run.threads = rest.number(name)? as usize,
            Some(name @ "--millis") => run.millis = rest.number(name)?,
            _ => return Err(UsageError::Unknown(option)),
        }
    }
    Ok(run)
}

fn compare(mut rest: Rest<impl Iterator<Item = OsString>>) -> Result<Compare, UsageError> {
    let (mut stock, mut heist, mut cases, mut json, mut check) = (None, None, vec![], None, false);
    let (mut rounds, mut threads, mut millis) = (None, THREADS, None);
    while let Some(option) = rest.0.next() {
        match option.to_str() {
            Some(name @ "--stock") => stock = Some(rest.value(name)?.into()),
            Some(name @ "--heist") => heist = Some(rest.value(name)?.into()),
            Some(name @ "--case") => cases.push(rest.text(name)?),
            Some(name @ "--rounds") => rounds = Some(rest.number(name)? as usize),
            Some(name @ "--threads") => threads = rest.number(name)? as usize,
            Some(name @ "--millis") => millis = Some(rest.number(name)?),
            Some(name @ "--json") => json = Some(rest.value(name)?.into()),
            Some("--check") => check = true,
            _ => return Err(UsageError::Unknown(option)),
        }
    }
    Ok(Compare {
        stock: stock.ok_or(UsageError::MissingOption("--stock"))?,
        heist: heist.ok_or(UsageError::MissingOption("--heist"))?,
        cases,
        rounds: rounds.unwrap_or(if check { 1 } else { ROUNDS }),
        threads,
        millis: millis.unwrap_or(if check { CHECK_MILLIS } else { MILLIS }),
        json,
        check,
    })
}

/// The arguments that have not been read.
struct Rest<I>(I);

impl<I: Iterator<Item = OsString>> Rest<I> {
    fn value(&mut self, option: &str) -> Result<OsString, UsageError> {
        self.0.next().ok_or_else(|| UsageError::MissingValue(option.into()))
    }

    fn text(&mut self, option: &str) -> Result<String, UsageError> {
        self.value(option)?.into_string().map_err(UsageError::Unknown)
    }

    fn number(&mut self, option: &str) -> Result<u64, UsageError> {
        let text = self.value(option)?;
        match text.to_str().map(str::parse) {
            Some(Ok(number)) if number > 0 => Ok(number),
            _ => Err(UsageError::BadNumber(option.into(), text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Command, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn compared(line: &str) -> Compare {
        match of(line) {
            Ok(Command::Compare(args)) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn nothing_shows_the_help() {
        assert_eq!(of(""), Ok(Command::Help));
        assert_eq!(of("--help"), Ok(Command::Help));
        assert_eq!(of("list"), Ok(Command::List));
    }

    #[test]
    fn a_worker_has_a_case() {
        let expected = Run { case: "fib".into(), threads: 3, millis: MILLIS };
        assert_eq!(of("run fib --threads 3"), Ok(Command::Run(expected)));
        assert!(of("run").is_err());
    }

    #[test]
    fn a_check_is_short() {
        let args = compared("compare --stock a --heist b --check");
        assert_eq!((args.rounds, args.millis), (1, CHECK_MILLIS));
        let args = compared("compare --stock a --heist b --check --rounds 3");
        assert_eq!((args.rounds, args.check), (3, true));
    }

    #[test]
    fn a_case_is_any_of_the_texts() {
        let args = compared("compare --stock a --heist b --case sum/ --case fib");
        assert!(args.selects("sum/outside/1e3"));
        assert!(args.selects("fib"));
        assert!(!args.selects("sort/stable"));
    }

    #[test]
    fn errors_say_what_to_do() {
        for (line, advice) in [
            ("compare --stock a", "--heist is needed"),
            ("compare --stock a --heist b --rounds 0", "takes a number from 1 up"),
            ("compare --stock", "needs a value"),
            ("run fib --rounds 2", "--rounds has no meaning here"),
            ("fib", "fib has no meaning here; see --help"),
        ] {
            let message = of(line).unwrap_err().to_string();
            assert!(message.contains(advice), "{line}: {message}");
        }
    }
}
