//! A run of selected cases, and what only this crate's pools can add to it: live counters and traces.

use std::ops::ControlFlow;

use harness::cores;
use harness::record::{Record, Traced};
use harness::row::{Entry, Row};
use harness::{Case, Selection, Step, UnknownName, Watcher};
use heist::trace::Trace;

use crate::peers::{live, traced};
use crate::{built, is_ours, timeline, workloads};

/// The cases of a run, and what has been measured of them so far.
pub struct Bench(harness::Bench);

impl Bench {
    /// Selects cases and peers.
    ///
    /// # Errors
    ///
    /// Returns an error for a name that no case has, or that no peer in these cases has.
    pub fn new(selection: &Selection) -> Result<Self, UnknownName> {
        let rows = selection.of(workloads::rows())?;
        Ok(Self(harness::Bench::new(rows, built::about())))
    }

    /// Returns the cases, in the order in which they run.
    pub fn cases(&self) -> Vec<Case> {
        self.0.cases()
    }

    /// Returns how many rounds were measured completely.
    pub fn rounds(&self) -> usize {
        self.0.rounds()
    }

    /// Measures everything `rounds` times, interleaved, or until the watcher ends the run: see
    /// [`harness::Bench::run`].
    ///
    /// # Panics
    ///
    /// Panics with a message that names the entry, if a result is wrong; with [`Refused`](crate::Refused), if the
    /// system refuses what a pool needs.
    pub fn run(&mut self, rounds: usize, watcher: &mut dyn Watcher) {
        self.0.run(rounds, &mut ResetLive(watcher));
        live::set(None);
    }

    /// Decides whether the run counts as complete: see [`harness::Bench::set_complete`].
    pub fn set_complete(&mut self, complete: bool) {
        self.0.set_complete(complete);
    }

    /// Removes the targets of all cases, so that the tables do not show them.
    pub fn forget_targets(&mut self) {
        self.0.forget_targets();
    }

    /// Returns what was measured so far.
    pub fn record(&self) -> Record {
        self.0.record()
    }

    /// Returns tables of what was measured so far, as Markdown.
    pub fn markdown(&self) -> String {
        self.0.markdown()
    }

    /// Runs some of the cases once more, unmeasured, in a heist pool that keeps a trace: at most `most`, cases with
    /// several workers first, and none after `stop` returns true.
    pub fn traces(&self, most: usize, stop: impl Fn() -> bool) -> Vec<Traced> {
        let (alone, crowd): (Vec<_>, Vec<_>) =
            self.0.rows().iter().partition(|row| row.workers == Some(1));
        let trace = |row: &Row| {
            let entry = row.entries.iter().find(|entry| is_ours(entry.name))?;
            Some(timeline::summarize(&trace_of(entry)?, &row.id(), entry.name))
        };
        // A queue has no pool.
        let rows = crowd.into_iter().chain(alone).filter(|row| row.item.is_none());
        let traces = rows.take_while(|_| !stop()).filter_map(trace).take(most).collect();
        live::set(None);
        traces
    }
}

/// Clears the live pool before every measurement, after the watcher was asked.
struct ResetLive<'w>(&'w mut dyn Watcher);

impl Watcher for ResetLive<'_> {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.0.before(step)?;
        live::set(None);
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, values: &[f64]) {
        self.0.after(step, values);
    }
}

/// Returns all selected cases, in the order in which they run.
///
/// # Errors
///
/// Returns an error for a name that no case has, or that no peer in these cases has.
pub fn cases(selection: &Selection) -> Result<Vec<Case>, UnknownName> {
    Ok(selection.of(workloads::rows())?.iter().map(Case::of).collect())
}

/// Runs heist's entry `by` of a case once more, unmeasured, in a pool that keeps a trace. Returns `None` if the entry
/// uses no heist pool.
pub fn trace(case: &str, by: &str) -> Option<Trace> {
    let rows = workloads::rows();
    let row = rows.iter().find(|row| row.id() == case)?;
    // A queue has no pool.
    if row.item.is_some() { None } else { trace_of(row.entry(by)?) }
}

fn trace_of(entry: &Entry) -> Option<Trace> {
    cores::roam();
    traced::run(|| drop((entry.run)()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use harness::Unwatched;

    use super::*;

    #[test]
    fn every_family_of_pools_can_be_traced() {
        let case = |family: &str| Selection { cases: vec![family.into()], ..Selection::default() };
        let families = [
            "spawn/",
            "strategies/",
            "fib/",
            "ignition/",
            "latency/",
            "server/",
            "pipeline/",
            "duel/",
        ];
        for family in families {
            let traces = Bench::new(&case(family)).unwrap().traces(1, || false);
            let [trace] = &traces[..] else { panic!("{family} has {} traces", traces.len()) };
            assert!(trace.case.starts_with(family), "{}", trace.case);
            assert!(trace.lanes.iter().map(|lane| lane.tasks).sum::<u64>() > 0, "{family}");
        }
        assert!(Bench::new(&case("deque/u64")).unwrap().traces(1, || false).is_empty());
        assert!(trace("duel/tree/1", "heist-global").is_some());
        assert!(trace("duel/tree/1", "rayon").is_none());
        assert!(trace("duel/tree/none", "heist").is_none());
    }

    #[test]
    fn no_trace_begins_after_stop() {
        let cases = vec!["duel/".into()];
        let bench = Bench::new(&Selection { cases, ..Selection::default() }).unwrap();
        assert!(bench.0.rows().len() > 1);
        assert!(bench.traces(9, || true).is_empty());
        let looks = Cell::new(0);
        assert_eq!(bench.traces(9, || looks.replace(looks.get() + 1) == 1).len(), 1);
    }

    /// The workloads verify their results; here with the sizes that tests use. The crate of the queues has such a test
    /// as well.
    #[test]
    fn every_case_runs_with_every_entry() {
        let mut rows = workloads::rows();
        rows.retain(|row| row.item.is_none());
        let mut bench = Bench(harness::Bench::new(rows, built::about()));
        bench.run(1, &mut Unwatched);
        bench.0.assert_measured();
        assert!(bench.markdown().contains("fewer than 6 rounds"));
        let latencies = bench.record().latencies;
        let heist =
            latencies.iter().find(|found| found.case == "duel/latency" && found.by == "heist");
        assert_eq!(heist.unwrap().buckets.iter().map(|bucket| bucket.1).sum::<u64>(), 3);
    }

    /// Two recorded files can be compared only if it is known which direction is better.
    #[test]
    fn every_metric_of_every_case_is_known() {
        for row in workloads::rows() {
            for metric in row.metrics {
                let named = harness::metric::named(metric.key).unwrap();
                assert_eq!(named.better, metric.better, "{}", metric.key);
            }
        }
    }
}
