//! `heist` without a command: work stealing beside its rivals, in at most 20 seconds.

mod board;
mod budget;
mod doubts;
mod files;
#[cfg(test)]
mod fixture;
mod lanes;
mod live;
mod losses;
mod results;
mod summary;
mod table;
mod text;
mod watch;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heist::trace::Trace;
use heist_bench::record::{Record, Traced};
use heist_bench::{Bench, Case, Selection};
use ratatui::crossterm::terminal;

use self::board::Board;
use self::budget::{Budget, MOST_ROUNDS};
use self::doubts::Circumstances;
use self::live::Live;
use self::results::{FAMILY, Results};
use self::text::STEALING;
use self::watch::{Stop, Watch};
use super::topo::{self, Overview};
use crate::args::{Common, Duel};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::{interrupt, out, style, units};

/// How long it takes at most.
const SECONDS: f64 = 20.0;

/// Of a text that is no terminal's, and the most that is nice to read.
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
    let mut bench = Bench::new(&selection).expect("the benchmarks have a duel");
    let cases = bench.cases();
    let head = head(&overview, &cases)?;
    let watch = measure(&mut bench, budget, start, common.quiet);
    let mut record = bench.record();
    if Results::of(&record).cases.is_empty() {
        out::note("interrupted before anything was measured");
        return Ok(Exit::Interrupted);
    }
    let trace = traces(&mut record, &watch, budget, start);
    // That the time was up is how a duel ends; that cases are missing is not.
    record.complete = Some(!interrupt::seen() && bench.cases().len() == cases.len());
    let circumstances = Circumstances {
        stop: if interrupt::seen() { Stop::Interrupted } else { Stop::Enough },
        cases: cases.len(),
        cores: overview.topology.available_parallelism.unwrap_or_default(),
        debug: cfg!(debug_assertions),
    };
    let paint = style::out();
    let results = Results::of(&record);
    let result = summary::of_results(&results, circumstances, width(), paint);
    let shown = out::print(&format!("{head}{result}\n"));
    // Also if nobody reads the tables any more.
    let (written, outcome) = files::write(&record, trace.as_ref());
    let files = summary::of_files(&written, record.program(), width(), paint);
    let shown = shown.and_then(|()| out::print(&files));
    outcome.and(shown)?;
    Ok(interrupt::exit())
}

/// Says where it runs: at once on a terminal. What goes through a pipe may come to the terminal while something is drawn there; it is
/// returned, to be printed with the rest.
fn head(overview: &Overview, cases: &[Case]) -> Result<String, Failure> {
    let machine = format!("heist on {}; {}", overview.machine(), workers_of(cases));
    let head = text::lines(&machine, width()).join("\n") + "\n\n";
    if io::stdout().is_terminal() {
        out::print(&head)?;
        return Ok(String::new());
    }
    Ok(head)
}

/// All numbers of workers that there are: `1 and 2 workers`.
fn workers_of(cases: &[Case]) -> String {
    let numbers: BTreeSet<usize> = cases.iter().filter_map(|case| case.workers).collect();
    if numbers.last() == Some(&1) {
        return units::of(1, "worker");
    }
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("{} workers", units::list(&numbers))
}

/// Measures for as long as the budget allows, and shows it.
fn measure(bench: &mut Bench, budget: Budget, start: Instant, quiet: bool) -> Watch {
    let workers = bench.cases().iter().filter_map(|case| case.workers).max().unwrap_or(1);
    let board = Arc::new(Mutex::new(Board::new(workers, start, budget.soft())));
    let live = if quiet { None } else { Live::start(Arc::clone(&board)) };
    let mut watch = Watch::new(budget, board, !quiet && live.is_none());
    bench.run(MOST_ROUNDS, &mut watch);
    watch
}

/// Runs the workloads once more with work stealing, not measured, if there is time: what the workers did goes to the record. Returns
/// that of the unequal tasks, which have most to show.
fn traces(record: &mut Record, watch: &Watch, budget: Budget, start: Instant) -> Option<Trace> {
    let workers = Results::of(record).workers();
    let mut shown = None;
    for workload in ["skewed", "tree", "uniform", "recursive"] {
        if interrupt::seen() || !budget.allows_extra(start.elapsed(), watch.longest()) {
            break;
        }
        let case = format!("{FAMILY}/{workload}/{workers}");
        let Some(trace) = heist_bench::trace(&case, STEALING) else { continue };
        record.traces.push(Traced::of(&trace, &case, STEALING));
        shown.get_or_insert(trace);
    }
    shown
}

/// In columns. A terminal that has nobody before it may say that it has none.
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
