//! `heist trace`: records what each worker does in one run, and summarizes traces.

mod names;
mod read;
mod show;
mod summary;

use std::path::{Path, PathBuf};

use heist::trace::Trace;
use heist_bench::{Case, Selection, cases, is_ours};

use crate::args::{self, Common};
use crate::commands::bench::unknown;
use crate::exit::{Exit, Failure, Outcome, guarded};
use crate::{file, interrupt, out, style, units};
use summary::Summary;

/// The file for the trace, unless another one is given.
const FILE: &str = "trace.json";

pub(crate) fn run(asked: &args::Trace, common: &Common) -> Outcome {
    match existing(asked) {
        Some(path) => summarize(asked, &path, common),
        None => record(asked, common),
    }
}

/// Returns the trace file that the request is about, or `None` if it is about a case.
fn existing(asked: &args::Trace) -> Option<PathBuf> {
    match &asked.workload {
        // The parser requires a case unless there is something to summarize.
        None => Some(asked.output.clone().unwrap_or_else(|| FILE.into())),
        // No case has such a name.
        Some(name) if name.ends_with(".json") => Some(name.into()),
        Some(name) => Some(PathBuf::from(name)).filter(|path| asked.summary && path.is_file()),
    }
}

/// Prints the summary of a trace that was recorded before.
fn summarize(asked: &args::Trace, path: &Path, common: &Common) -> Outcome {
    let refuse = |what: String, why: &str, advice: String| {
        Err(Failure { exit: Exit::Usage, what, why: why.to_owned(), advice })
    };
    let shown = path.display();
    if !asked.summary {
        return refuse(
            format!("cannot trace `{shown}`"),
            "it is the name of a file, not of a case",
            format!("To summarize it: heist trace --summary {shown}"),
        );
    }
    if asked.workload.is_some() && asked.output.is_some() {
        return refuse(
            format!("cannot write the trace of {shown}"),
            "it was recorded before, so that there is nothing to write",
            "Leave out --output, or name a case: heist trace duel/skewed --summary -o FILE".into(),
        );
    }
    out::print(&summary_of(&read::read(path)?, common.quiet))?;
    Ok(Exit::Done)
}

fn summary_of(pools: &[read::Pool], quiet: bool) -> String {
    let summaries: Vec<_> = pools.iter().map(Summary::new).collect();
    show::text(&summaries, quiet, style::out())
}

/// Runs a case and writes its trace.
fn record(asked: &args::Trace, common: &Common) -> Outcome {
    let workload = asked.workload.clone().unwrap_or_default();
    let output = asked.output.clone().unwrap_or_else(|| FILE.into());
    let selection = Selection { cases: vec![workload.clone()], ..Selection::default() };
    let found = cases(&selection).map_err(|error| unknown(&error))?;
    // Checked before the run, whose result would be lost otherwise.
    file::check(&output)?;
    let choices = choices(&found);
    let traced = guarded(|| choices.iter().take_while(|_| !interrupt::seen()).find_map(traced))?;
    if traced.is_none() && interrupt::seen() {
        out::note("heist: interrupted before there was a trace; no file was written");
        return Ok(Exit::Interrupted);
    }
    // A run cannot be interrupted in the middle. One that has finished is written even if the user has asked
    // to end.
    let (case, by, trace) = traced.ok_or_else(|| no_pool(&workload))?;
    if found.len() > 1 && !common.quiet {
        out::note(&format!("heist: {} cases match; traced {case}", found.len()));
    }
    let mut bytes = Vec::new();
    trace.write_chrome(&mut bytes).expect("writing to a vector does not fail");
    file::write(&output, &bytes)?;
    let mut text = description(&trace, case, by, &output.display().to_string());
    if asked.summary {
        text += &format!("\n{}", summary_of(&read::parse(&output, &bytes)?, common.quiet));
    }
    file::print_beside(&output, &text, common.quiet)?;
    Ok(interrupt::exit())
}

/// Returns the candidates, best first: heist, in the case with the most workers.
fn choices(found: &[Case]) -> Vec<(&str, &'static str)> {
    let mut cases: Vec<&Case> = found.iter().collect();
    cases.sort_by_key(|case| std::cmp::Reverse(case.workers));
    let ours = |case: &&Case| {
        // The peer `traced` is heist with a trace that is always on.
        case.peers.iter().find(|by| is_ours(by) || **by == "traced").copied()
    };
    cases.into_iter().filter_map(|case| Some((case.id.as_str(), ours(&case)?))).collect()
}

fn traced<'c>(&(case, by): &(&'c str, &'static str)) -> Option<(&'c str, &'static str, Trace)> {
    Some((case, by, heist_bench::trace(case, by)?))
}

fn no_pool(workload: &str) -> Failure {
    Failure {
        exit: Exit::Usage,
        what: format!("cannot trace `{workload}`"),
        why: "it does not use a heist pool: a queue has no workers".into(),
        advice: "Try `heist trace duel/skewed`; `heist bench --list` lists all names.".into(),
    }
}

/// Describes the trace, and how to open it.
fn description(trace: &Trace, case: &str, by: &str, path: &str) -> String {
    let events: usize = trace.threads.iter().map(|thread| thread.events.len()).sum();
    let lost: u64 = trace.threads.iter().map(|thread| thread.lost).sum();
    let lost = match lost {
        0 => "none dropped".to_owned(),
        1 => "1 older event dropped, because each thread keeps only its last".to_owned(),
        lost => format!(
            "{} older events dropped, because each thread keeps only its last",
            units::count(lost)
        ),
    };
    format!(
        "{path}\n{case} by {by}: {} of {}, {lost}\n\
         Open the file in https://ui.perfetto.dev or chrome://tracing. Nothing is uploaded.\n",
        units::of(events as u64, "event"),
        units::of(trace.threads.len() as u64, "thread"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str, workers: Option<usize>, peers: Vec<&'static str>) -> Case {
        Case { id: id.into(), title: String::new(), workers, peers }
    }

    #[test]
    fn the_case_with_most_workers_is_the_first_choice() {
        let found = [
            case("duel/skewed/1", Some(1), vec!["heist", "rayon"]),
            case("duel/latency", None, vec!["rayon", "heist-global"]),
            case("duel/skewed/4", Some(4), vec!["rayon", "heist"]),
            case("duel/none", Some(8), vec!["rayon"]),
        ];
        let expected = [
            ("duel/skewed/4", "heist"),
            ("duel/skewed/1", "heist"),
            ("duel/latency", "heist-global"),
        ];
        assert_eq!(choices(&found), expected);
    }

    #[test]
    fn the_trace_is_described() {
        let pool = heist::Pool::builder().workers(1).trace(1000).build().unwrap();
        pool.install(|| ());
        pool.stop();
        let trace = pool.trace_snapshot().unwrap();
        let text = description(&trace, "duel/skewed/2", "heist", "t.json");
        assert!(text.starts_with("t.json\nduel/skewed/2 by heist: "), "{text}");
        assert!(text.contains("events of 1 thread, none dropped"), "{text}");
        assert!(text.contains("ui.perfetto.dev"), "{text}");
    }
}
