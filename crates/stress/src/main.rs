//! `stress`: runs the stress tests of whole subjects, for the checks and the sanitizers.
//!
//! This is a plain program and not a test: a sanitizer sees only the threads of heist, and no threads of a
//! test harness.

use std::hash::{BuildHasher as _, RandomState};
use std::process::{self, ExitCode};
use std::time::Instant;

use heist_stress::{Error, Monitor, Size, Subject};

const USAGE: &str = "\
usage: stress [SUBJECT]... [--quick] [--verbose] [--seed N]

Subjects: queues, pools, forks, loops, pipelines, engines. Without one, all of them run.

  --quick    run about a tenth of the cases, for sanitizers
  --verbose  print a line for each part of a subject
  --seed N   run the random cases of this seed; without it, the seed is random

Exit codes: 0 everything was right; 1 something was lost, doubled or wrong, or hangs;
2 usage; 4 the system refused a thread.";

/// The exit codes, as `heist` has them.
const WRONG: u8 = 1;
const USAGE_ERROR: u8 = 2;
const REFUSED: u8 = 4;

/// The command line.
#[derive(Debug, PartialEq)]
struct Args {
    subjects: Vec<Subject>,
    size: Size,
    verbose: bool,
    seed: Option<u64>,
}

/// Why there is nothing to run.
#[derive(Debug, PartialEq)]
enum NoArgs {
    Help,
    Invalid(String),
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, NoArgs> {
    let mut args = Args { subjects: Vec::new(), size: Size::Normal, verbose: false, seed: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => args.size = Size::Quick,
            "--verbose" => args.verbose = true,
            "--seed" => {
                let seed = words.next().and_then(|word| word.parse().ok());
                args.seed =
                    Some(seed.ok_or_else(|| NoArgs::Invalid("--seed needs a number".to_owned()))?);
            }
            "--help" | "-h" => return Err(NoArgs::Help),
            name => {
                let subject = Subject::ALL.into_iter().find(|subject| subject.name() == name);
                let unknown = || NoArgs::Invalid(format!("`{name}` is no subject and no option"));
                args.subjects.push(subject.ok_or_else(unknown)?);
            }
        }
    }
    if args.subjects.is_empty() {
        args.subjects = Subject::ALL.to_vec();
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(NoArgs::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(NoArgs::Invalid(why)) => {
            eprintln!("stress: {why}\n\n{USAGE}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
    println!("seed {seed}");
    for &subject in &args.subjects {
        if let Err(error) = run(subject, seed, &args) {
            let name = subject.name();
            eprintln!("stress: {name}: {error}\n  To run it again: {}", command(name, seed, &args));
            return ExitCode::from(match error {
                Error::Violated { .. } => WRONG,
                Error::Refused(_) => REFUSED,
            });
        }
    }
    ExitCode::SUCCESS
}

fn run(subject: Subject, seed: u64, args: &Args) -> Result<(), Error> {
    let (start, name) = (Instant::now(), subject.name());
    let report = |line: &str| {
        if args.verbose {
            println!("  {line}");
        }
    };
    let again = command(name, seed, args);
    let on_hang = move |case: String| {
        eprintln!("stress: {name}: {case} has not ended for a minute\n  To run it again: {again}");
        process::exit(WRONG.into());
    };
    subject.run(seed, args.size, &Monitor::new(report, on_hang))?;
    println!("{name}: ok, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns the command that runs the same cases of a subject again.
fn command(name: &str, seed: u64, args: &Args) -> String {
    let quick = if args.size == Size::Quick { " --quick" } else { "" };
    format!("stress {name}{quick} --verbose --seed {seed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Args, NoArgs> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn all_subjects_run_if_none_is_named() {
        let args = parsed("--quick").unwrap();
        assert_eq!(args.subjects, Subject::ALL);
        assert_eq!((args.size, args.seed), (Size::Quick, None));
    }

    #[test]
    fn subjects_and_options_come_in_any_order() {
        let args = parsed("engines --seed 7 queues --verbose").unwrap();
        let subjects = vec![Subject::Engines, Subject::Queues];
        assert_eq!(args, Args { subjects, size: Size::Normal, verbose: true, seed: Some(7) });
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, part) in [("--seed x", "--seed"), ("--seed", "--seed"), ("duck", "duck")] {
            let Err(NoArgs::Invalid(why)) = parsed(line) else { panic!("`{line}` was accepted") };
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn the_usage_names_every_subject() {
        assert!(Subject::ALL.iter().all(|subject| USAGE.contains(subject.name())));
        assert_eq!(parsed("--help"), Err(NoArgs::Help));
    }
}
