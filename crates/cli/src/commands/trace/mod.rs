//! `heist trace`: records what each worker does in one run.

use heist::trace::Trace;
use heist_bench::{Case, Selection, cases, is_ours};

use crate::args::{self, Common};
use crate::commands::bench::unknown;
use crate::exit::{Exit, Failure, Outcome, guarded};
use crate::{file, interrupt, out, units};

pub(crate) fn run(asked: &args::Trace, common: &Common) -> Outcome {
    let selection = Selection { cases: vec![asked.workload.clone()], ..Selection::default() };
    let found = cases(&selection).map_err(|error| unknown(&error))?;
    // Checked before the run, whose result would be lost otherwise.
    file::check(&asked.output)?;
    let choices = choices(&found);
    let traced = guarded(|| choices.iter().take_while(|_| !interrupt::seen()).find_map(traced))?;
    if traced.is_none() && interrupt::seen() {
        out::note("heist: interrupted before there was a trace; no_pool was written");
        return Ok(Exit::Interrupted);
    }
    // A run cannot be interrupted in the middle. One that has finished is written even if the user has asked
    // to end.
    let (case, by, trace) = traced.ok_or_else(|| no_pool(&asked.workload))?;
    if found.len() > 1 && !common.quiet {
        out::note(&format!("heist: {} cases match; traced {case}", found.len()));
    }
    let mut bytes = Vec::new();
    trace.write_chrome(&mut bytes).expect("writing to a vector does not fail");
    file::write(&asked.output, &bytes)?;
    let description = description(&trace, case, by, &asked.output.display().to_string());
    file::print_beside(&asked.output, &description, common.quiet)?;
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
