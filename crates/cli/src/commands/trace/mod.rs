//! `heist trace`.

use heist::trace::Trace;
use heist_bench::{Case, Selection, cases, is_ours};

use crate::args::{self, Common};
use crate::commands::bench::unknown;
use crate::exit::{Exit, Failure, Outcome, guarded};
use crate::{file, interrupt, out, units};

pub(crate) fn run(asked: &args::Trace, common: &Common) -> Outcome {
    let selection = Selection { cases: vec![asked.workload.clone()], ..Selection::default() };
    let found = cases(&selection).map_err(|error| unknown(&error))?;
    // Before the run, which would be for nothing.
    file::check(&asked.output)?;
    let choices = choices(&found);
    let traced = guarded(|| choices.iter().take_while(|_| !interrupt::seen()).find_map(traced))?;
    if traced.is_none() && interrupt::seen() {
        out::note("heist: interrupted before there was a trace; nothing was written");
        return Ok(Exit::Interrupted);
    }
    // A run cannot be cut short: one that has ended is shown, also if somebody has lost patience meanwhile.
    let (case, by, trace) = traced.ok_or_else(|| nothing(&asked.workload))?;
    if found.len() > 1 && !common.quiet {
        out::note(&format!("heist: {} cases match; this is {case}", found.len()));
    }
    let mut bytes = Vec::new();
    trace.write_chrome(&mut bytes).expect("a Vec takes all");
    file::write(&asked.output, &bytes)?;
    let told = told(&trace, case, by, &asked.output.display().to_string());
    file::print_beside(&asked.output, &told, common.quiet)?;
    Ok(interrupt::exit())
}

/// Who might have a trace, the best first: ours, in the case with most workers.
fn choices(found: &[Case]) -> Vec<(&str, &'static str)> {
    let mut cases: Vec<&Case> = found.iter().collect();
    cases.sort_by_key(|case| std::cmp::Reverse(case.workers));
    let ours = |case: &&Case| {
        // The one that keeps a trace in any case is ours as well.
        case.peers.iter().find(|by| is_ours(by) || **by == "traced").copied()
    };
    cases.into_iter().filter_map(|case| Some((case.id.as_str(), ours(&case)?))).collect()
}

fn traced<'c>(&(case, by): &(&'c str, &'static str)) -> Option<(&'c str, &'static str, Trace)> {
    Some((case, by, heist_bench::trace(case, by)?))
}

fn nothing(workload: &str) -> Failure {
    Failure {
        exit: Exit::Usage,
        what: format!("cannot trace `{workload}`"),
        why: "it has no pool of ours: a queue has no workers".into(),
        advice: "Try `heist trace duel/skewed`; `heist bench --list` shows all names.".into(),
    }
}

/// What there is, and how to look at it.
fn told(trace: &Trace, case: &str, by: &str, path: &str) -> String {
    let events: usize = trace.threads.iter().map(|thread| thread.events.len()).sum();
    let lost: u64 = trace.threads.iter().map(|thread| thread.lost).sum();
    let lost = match lost {
        0 => "none lost".to_owned(),
        1 => "1 older one lost, as each thread keeps its last".to_owned(),
        lost => format!("{} older ones lost, as each thread keeps its last", units::count(lost)),
    };
    format!(
        "{path}\n{case} by {by}: {} of {}, {lost}\n\
         Open it in https://ui.perfetto.dev or chrome://tracing; nothing is uploaded.\n",
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
    fn what_was_written_is_told() {
        let pool = heist::Pool::builder().workers(1).trace(1000).build().unwrap();
        pool.install(|| ());
        pool.stop();
        let trace = pool.trace_snapshot().unwrap();
        let text = told(&trace, "duel/skewed/2", "heist", "t.json");
        assert!(text.starts_with("t.json\nduel/skewed/2 by heist: "), "{text}");
        assert!(text.contains("events of 1 thread, none lost"), "{text}");
        assert!(text.contains("ui.perfetto.dev"), "{text}");
    }
}
