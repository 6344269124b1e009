//! `heist bench`: measures cases against peers.

mod limit;
mod names;
mod progress;

use std::path::Path;

use heist_bench::{Bench, Selection};

use crate::args::{self, Common};
use crate::exit::{Exit, Failure, Outcome, guarded};
use crate::{file, interrupt, out, units};
use limit::Limit;
pub(crate) use names::unknown;
use progress::Progress;
pub(crate) use progress::bar;

/// The number of cases whose traces are kept in the file. Each trace is some hundred kilobytes.
const TRACES: usize = 6;

pub(crate) fn run(asked: &args::Bench, common: &Common) -> Outcome {
    check(asked)?;
    let selection = Selection {
        cases: asked.workloads.clone(),
        peers: asked.peers.clone(),
        workers: asked.workers.clone(),
    };
    let mut bench = Bench::new(&selection).map_err(|error| unknown(&error))?;
    if asked.list {
        out::print(&list(&bench))?;
        return Ok(Exit::Done);
    }
    // Checked before the measurement, whose result would be lost otherwise.
    asked.json.as_deref().map_or(Ok(()), file::check)?;
    if !common.quiet {
        warn();
    }
    if !asked.targets {
        bench.forget_targets();
    }
    let (limit, cases) = (Limit::new(asked), bench.cases().len());
    let mut progress = Progress::new(limit, cases, common.quiet);
    let outcome = guarded(|| bench.run(limit.rounds(), &mut progress));
    progress.end(outcome.is_ok());
    outcome?;
    if matches!(limit, Limit::Time(_)) && !interrupt::seen() {
        end_of_time(&mut bench, cases, common.quiet);
    }
    if bench.rounds() == 0 {
        out::note("heist: interrupted before the first case was measured; there are no results");
        return Ok(Exit::Interrupted);
    }
    let tables = bench.markdown();
    match &asked.json {
        None => out::print(&tables)?,
        Some(path) => {
            let shown = file::print_beside(path, &tables, common.quiet);
            // The samples are kept even if stdout is closed.
            keep(&bench, path)?;
            shown?;
        }
    }
    if interrupt::seen() {
        out::note("heist: interrupted; these are the results so far");
    }
    Ok(interrupt::exit())
}

/// Notes that the time was up, which does not cut a run short unless cases are missing.
fn end_of_time(bench: &mut Bench, cases: usize, quiet: bool) {
    let measured = bench.cases().len();
    bench.set_complete(measured == cases);
    if measured < cases && !quiet {
        out::note(&format!(
            "heist: the time was up in the first round: {measured} of {} were measured",
            units::of(cases as u64, "case")
        ));
    }
}

/// Writes the samples, and traces of one additional run.
fn keep(bench: &Bench, path: &Path) -> Result<(), Failure> {
    let traces = guarded(|| bench.traces(TRACES, interrupt::seen));
    let mut record = bench.record();
    let wrong = traces.map(|traces| record.traces = traces);
    let mut bytes = Vec::new();
    record.write(&mut bytes).expect("writing to a vector does not fail");
    file::write(path, &bytes)?;
    wrong
}

/// Checks what the parser does not.
fn check(asked: &args::Bench) -> Result<(), Failure> {
    let refuse = |what: &str, why: &str, advice: &str| {
        let (what, why, advice) = (what.into(), why.into(), advice.into());
        Err(Failure { exit: Exit::Usage, what, why, advice })
    };
    if asked.rounds == Some(0) && !asked.list {
        return refuse(
            "cannot measure 0 rounds",
            "there would be no results",
            "Use --rounds 1 or more; with 6 or more there are confidence intervals.",
        );
    }
    if asked.workers.contains(&0) {
        return refuse(
            "cannot measure with 0 workers",
            "no worker would run the tasks",
            "Use numbers of at least 1, for example --workers 1,2.",
        );
    }
    Ok(())
}

/// Returns one line per case: its name and its description.
fn list(bench: &Bench) -> String {
    let line = |case: &heist_bench::Case| format!("{:<42} {}\n", case.id, case.title);
    bench.cases().iter().map(line).collect()
}

/// Warns if this build cannot give meaningful or complete numbers.
fn warn() {
    if cfg!(debug_assertions) {
        out::note("heist: this is a debug build; its times mean nothing");
    }
    if cfg!(not(feature = "peers")) {
        out::note(
            "heist: this build includes only rayon as a peer. To include the others:\n    \
             cargo run --release --features peers -- bench",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(workers: Vec<usize>, rounds: usize) -> args::Bench {
        args::Bench {
            workloads: Vec::new(),
            peers: Vec::new(),
            workers,
            rounds: Some(rounds),
            seconds: None,
            json: None,
            targets: false,
            list: false,
        }
    }

    #[test]
    fn zero_rounds_and_zero_workers_are_rejected() {
        for asked in [asked(vec![], 0), asked(vec![2, 0], 1)] {
            assert_eq!(check(&asked).unwrap_err().exit, Exit::Usage);
        }
        assert!(check(&asked(vec![2], 1)).is_ok());
        assert!(check(&args::Bench { list: true, ..asked(vec![], 0) }).is_ok());
    }

    #[test]
    fn the_list_has_a_line_for_every_case() {
        let cases = vec!["duel/uniform".into()];
        let bench = Bench::new(&Selection { cases, ..Selection::default() }).unwrap();
        let list = list(&bench);
        assert!(list.starts_with("duel/uniform/1 "), "{list}");
        assert_eq!(list.lines().count(), bench.cases().len());
    }
}
