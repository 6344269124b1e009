//! What the command line asks for.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// An odd number, so that the median is a round that happened; enough for quartiles to mean
/// something. A guess.
const DEFAULT_ROUNDS: usize = 21;

pub(crate) const HELP: &str = "\
heist-bench: the queues and pools of heist, measured against their peers.

    cargo run --release -p heist-bench --features peers -- [OPTIONS]

    --rounds N      measure every case N times, interleaved (default 21)
    --case TEXT     only cases with TEXT in their name; may be given again for more
    --json FILE     keep every sample, with the machine and the command, in FILE
    --list          show the names of the cases
    --help          show this

Prints Markdown tables. Exit code 2: the command line was wrong.
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    List,
    Run(Args),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// At least one.
    pub(crate) rounds: usize,
    /// Empty: every case.
    pub(crate) cases: Vec<String>,
    pub(crate) json: Option<PathBuf>,
}

impl Args {
    /// Was the case of this name asked for?
    pub(crate) fn selects(&self, id: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|part| id.contains(part.as_str()))
    }
}

/// A command line that makes no sense, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// An option that takes a value came last.
    MissingValue(&'static str),
    /// The number of rounds is not one.
    BadRounds(OsString),
    /// Text for `--case` that is not Unicode; no name could contain it.
    BadCase(OsString),
    Unknown(OsString),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingValue(option) => {
                write!(f, "{option} needs a value after it; see --help")
            }
            Self::BadRounds(text) => write!(
                f,
                "--rounds takes a number from 1 up, not {}; try --rounds {DEFAULT_ROUNDS}",
                text.display()
            ),
            Self::BadCase(text) => {
                write!(f, "no case has {} in its name; `--list` shows the names", text.display())
            }
            Self::Unknown(text) => {
                write!(f, "{} is not an option; see --help", text.display())
            }
        }
    }
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut parsed = Args { rounds: DEFAULT_ROUNDS, cases: Vec::new(), json: None };
    let mut list = false;
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let mut value = |option| args.next().ok_or(UsageError::MissingValue(option));
        match arg.to_str() {
            Some("--help" | "-h") => return Ok(Command::Help),
            Some("--list") => list = true,
            Some("--rounds") => parsed.rounds = rounds(value("--rounds")?)?,
            Some("--case") => {
                let text = value("--case")?.into_string();
                parsed.cases.push(text.map_err(UsageError::BadCase)?);
            }
            Some("--json") => parsed.json = Some(value("--json")?.into()),
            _ => return Err(UsageError::Unknown(arg)),
        }
    }
    Ok(if list { Command::List } else { Command::Run(parsed) })
}

fn rounds(text: OsString) -> Result<usize, UsageError> {
    match text.to_str().map(str::parse) {
        Some(Ok(rounds)) if rounds > 0 => Ok(rounds),
        _ => Err(UsageError::BadRounds(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Command, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn defaults() {
        let expected = Args { rounds: DEFAULT_ROUNDS, cases: vec![], json: None };
        assert_eq!(of(""), Ok(Command::Run(expected)));
    }

    #[test]
    fn every_option() {
        let expected = Args {
            rounds: 3,
            cases: vec!["drain".into(), "u64".into()],
            json: Some("out.json".into()),
        };
        let line = "--case drain --rounds 3 --json out.json --case u64";
        assert_eq!(of(line), Ok(Command::Run(expected)));
        assert_eq!(of("--list --rounds 3"), Ok(Command::List));
        assert_eq!(of("--rounds 3 --help"), Ok(Command::Help));
    }

    #[test]
    fn a_case_is_any_of_the_texts() {
        let Ok(Command::Run(args)) = of("--case drain --case empty") else {
            panic!("that was a good command line");
        };
        assert!(args.selects("deque/u64/drain-batch"));
        assert!(args.selects("deque/pointer/empty"));
        assert!(!args.selects("deque/u64/deep-100"));
    }

    #[test]
    fn errors_say_what_to_do() {
        for (line, advice) in [
            ("--rounds 0", "try --rounds 21"),
            ("--rounds many", "try --rounds 21"),
            ("--rounds", "needs a value"),
            ("--jsno out.json", "--jsno is not an option; see --help"),
        ] {
            let message = of(line).unwrap_err().to_string();
            assert!(message.contains(advice), "{line}: {message}");
        }
    }
}
