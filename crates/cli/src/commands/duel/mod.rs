//! `heist` without a command, the duel: compares heist's strategies and rayon in at most 20 seconds.

mod progress;
mod budget;
mod caveats;
mod files;
#[cfg(test)]
mod fixture;
mod activity;
mod live;
mod loss_line;
mod results;
mod summary;
mod table;
mod text;
mod watcher;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossterm::terminal;
use heist::trace::Trace;
use heist_bench::record::Record;
use heist_bench::{Bench, Case, Selection};

use self::budget::{Budget, MAX_ROUNDS};
use self::caveats::Circumstances;
use self::live::Live;
use self::progress::Progress;
use self::results::{FAMILY, Results};
use self::text::WORK_STEALING;
use self::watcher::{EndReason, RunWatcher};
use super::topo::{self, Overview};
use crate::args::{Common, Duel};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::{interrupt, out, style, units};

/// The default time limit.
const SECONDS: f64 = 20.0;

/// The width of output that does not go to a terminal, and the largest width that reads well.
const WIDTH: usize = 80;
const WIDEST: usize = 100;

pub(crate) fn run(asked: &Duel, common: &Common) -> Outcome {
    let start = Instant::now();
    let budget = Budget::new(Duration::from_secs_f64(asked.seconds.unwrap_or(SECONDS)));
    let overview = topo::detect();
    // The pools of the duel ignore `HEIST_WORKERS`, but a malformed value is reported rather than ignored.
    overview.workers.as_ref().map_err(|why| exit::refused(why))?;
    let _folder = files::prepare()?;
    let selection = Selection { cases: vec![format!("{FAMILY}/")], ..Selection::default() };
    let mut bench = Bench::new(&selection).expect("the benchmarks include the duel");
    let cases = bench.cases();
    let head = head(&overview, &cases)?;
    let watch = measure(&mut bench, budget, start, common.quiet);
    let mut record = bench.record();
    if Results::of(&record).cases.is_empty() {
        out::note("interrupted before anything was measured");
        return Ok(Exit::Interrupted);
    }
    let trace = traces(&mut record, &watch, budget, start);
    // A duel usually ends because its time is up. It is incomplete only if it was interrupted or cases are
    // missing.
    record.complete = Some(!interrupt::seen() && bench.cases().len() == cases.len());
    let circumstances = Circumstances {
        stop: if interrupt::seen() { EndReason::Interrupted } else { EndReason::Finished },
        cases: cases.len(),
        cores: overview.topology.available_parallelism.unwrap_or_default(),
        debug: cfg!(debug_assertions),
    };
    let paint = style::out();
    let results = Results::of(&record);
    let result = summary::of_results(&results, circumstances, width(), paint);
    let shown = out::print(&format!("{head}{result}\n"));
    // The files are written even if stdout is closed.
    let (written, outcome) = files::write(&record, trace.as_ref());
    let files = summary::of_files(&written, record.program(), width(), paint);
    let shown = shown.and_then(|()| out::print(&files));
    outcome.and(shown)?;
    Ok(interrupt::exit())
}

/// Prints the line about the machine immediately if stdout is a terminal. Otherwise returns it, to be printed
/// with the results: a pipe may end at the terminal on which the live view is drawn.
fn head(overview: &Overview, cases: &[Case]) -> Result<String, Failure> {
    let machine = format!("heist on {}; {}", overview.machine(), workers_of(cases));
    let head = text::lines(&machine, width()).join("\n") + "\n\n";
    if io::stdout().is_terminal() {
        out::print(&head)?;
        return Ok(String::new());
    }
    Ok(head)
}

/// Returns all numbers of workers of the cases: `1 and 2 workers`.
fn workers_of(cases: &[Case]) -> String {
    let numbers: BTreeSet<usize> = cases.iter().filter_map(|case| case.workers).collect();
    if numbers.last() == Some(&1) {
        return units::of(1, "worker");
    }
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("{} workers", units::list(&numbers))
}

/// Measures for as long as the budget allows, and shows the progress.
fn measure(bench: &mut Bench, budget: Budget, start: Instant, quiet: bool) -> RunWatcher {
    let workers = bench.cases().iter().filter_map(|case| case.workers).max().unwrap_or(1);
    let progress = Arc::new(Mutex::new(Progress::new(workers, start, budget.soft())));
    let live = if quiet { None } else { Live::start(Arc::clone(&progress)) };
    let mut watch = RunWatcher::new(budget, progress, !quiet && live.is_none());
    bench.run(MAX_ROUNDS, &mut watch);
    watch
}

/// Runs the workloads once more with work stealing to trace them, if there is time. These runs are not
/// measured. Adds the traces to the record and returns the first one, which is of the skewed tasks and shows
/// the most steals.
fn traces(
    record: &mut Record,
    watch: &RunWatcher,
    budget: Budget,
    start: Instant,
) -> Option<Trace> {
    let workers = Results::of(record).workers();
    let mut shown = None;
    for workload in ["skewed", "tree", "uniform", "recursive"] {
        if interrupt::seen() || !budget.allows_extra(start.elapsed(), watch.longest()) {
            break;
        }
        let case = format!("{FAMILY}/{workload}/{workers}");
        let Some(trace) = heist_bench::trace(&case, WORK_STEALING) else { continue };
        record.traces.push(heist_bench::summarize(&trace, &case, WORK_STEALING));
        shown.get_or_insert(trace);
    }
    shown
}

/// Returns the width of the output in columns. A terminal without a window may report 0 columns.
fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(|| terminal::size().ok()).flatten();
    let columns = terminal.map(|(columns, _)| usize::from(columns));
    columns.filter(|&columns| columns > 0).map_or(WIDTH, |columns| columns.min(WIDEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_are_those_of_the_cases() {
        let case =
            |workers| Case { id: String::new(), title: String::new(), workers, peers: vec![] };
        let of = |workers: &[Option<usize>]| {
            workers_of(&workers.iter().copied().map(case).collect::<Vec<_>>())
        };
        assert_eq!(of(&[Some(1), Some(1), None]), "1 worker");
        assert_eq!(of(&[Some(1), Some(4), Some(2), Some(1), None]), "1, 2 and 4 workers");
    }
}
