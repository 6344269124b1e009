//! The `heist` command: benchmarks against peers on your own machine, and traces of what the workers do.
//!
//! The command is a library with a program of one line, because cargo compiles a library while the crates that it
//! depends on are still being optimized, but not a program. That is a part of the first build's time.

mod args;
mod cases;
mod commands;
mod exit;
mod file;
mod help;
mod interrupt;
mod losses;
mod out;
mod style;
mod units;
mod verdict;

use std::env;
use std::process::ExitCode;

use args::{Args, Command};
use exit::Outcome;

/// Runs the command with the arguments of the process, and returns its exit code.
pub fn main() -> ExitCode {
    let args = Args::from_command_line();
    if args.measures() {
        if !args.common.quiet && env::var_os("HEIST_TRACE").is_some_and(|file| !file.is_empty()) {
            out::note("heist: HEIST_TRACE is ignored here; `heist trace` makes a trace");
        }
        // The duel shows the machine as it is before `set_environment` changes the default number of workers.
        if args.command.is_none() {
            commands::topo::detect();
        }
        // SAFETY: no other thread was started yet.
        unsafe { heist_bench::set_environment(matches!(args.command, Some(Command::Trace(_)))) };
    }
    let outcome = exit::guarded(|| run(&args)).flatten();
    outcome.unwrap_or_else(|failure| failure.tell()).into()
}

fn run(args: &Args) -> Outcome {
    // The other commands do not poll for interrupts, so the signals keep their default effect there: to end
    // the process.
    if args.measures() || matches!(args.command, Some(Command::Soak(_) | Command::Sim(_))) {
        interrupt::watch()?;
    }
    match &args.command {
        None => commands::duel::run(&args.duel, &args.common),
        Some(Command::Bench(asked)) => commands::bench::run(asked, &args.common),
        Some(Command::Compare(asked)) => commands::compare::run(asked, &args.common),
        Some(Command::Report(asked)) => commands::report::run(asked, &args.common),
        Some(Command::Trace(asked)) => commands::trace::run(asked, &args.common),
        Some(Command::Soak(asked)) => commands::soak::run(asked, &args.common),
        Some(Command::Sim(asked)) => commands::sim::run(asked, &args.common),
        Some(Command::Topo(asked)) => commands::topo::run(asked, &args.common),
        Some(Command::Cluster(asked)) => commands::cluster::run(asked),
        Some(Command::Completions(asked)) => commands::completions::run(asked),
    }
}
