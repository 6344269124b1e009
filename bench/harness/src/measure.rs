//! Runs the cases in interleaved rounds, and decides what is kept of a run that ends early.

use std::ops::ControlFlow;

use crate::record::Record;
use crate::row::{Row, Threads};
use crate::selection::Case;
use crate::{cores, handoff, json, report};

/// The cases of a run, and what has been measured of them so far.
pub struct Bench {
    rows: Vec<Row>,
    /// A record without measurements: the machine, the build and the command.
    about: Record,
    /// The time of a hand-off between processors, one value for each round.
    hand_offs: Vec<f64>,
    /// Whether the watcher ended the run.
    cut_short: bool,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub struct Step<'s> {
    /// The round, from 0.
    pub round: usize,
    /// The name of the case.
    pub case: &'s str,
    /// The case in words.
    pub title: &'s str,
    /// The index of the case, from 0.
    pub place: usize,
    /// The number of cases.
    pub cases: usize,
    /// The name of the entry.
    pub by: &'s str,
    /// The number of workers, if cases differ by it.
    pub workers: Option<usize>,
}

/// Observes a run, and may end it.
pub trait Watcher {
    /// Called before each measurement. A break ends the run and drops what was measured of this round. If it is the
    /// first round, the cases in which every entry was measured are kept.
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()>;

    /// Called after each measurement, with a value for each metric of the case.
    fn after(&mut self, step: &Step<'_>, values: &[f64]);
}

/// A watcher that ignores what it sees and never ends a run.
#[derive(Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn before(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &Step<'_>, _: &[f64]) {}
}

impl Bench {
    /// Takes the cases to run, and a record without measurements that says on what they run: see
    /// [`machine::look`](crate::machine::look).
    pub fn new(rows: Vec<Row>, about: Record) -> Self {
        Self { rows, about, hand_offs: Vec::new(), cut_short: false }
    }

    /// Returns the rows, with their samples.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the cases, in the order in which they run.
    pub fn cases(&self) -> Vec<Case> {
        self.rows.iter().map(Case::of).collect()
    }

    /// Returns the number of complete rounds.
    pub fn rounds(&self) -> usize {
        self.hand_offs.len()
    }

    /// Measures everything `rounds` times, interleaved, or until the watcher ends the run. The rounds of earlier
    /// calls are kept.
    ///
    /// The entries of a case run one right after another, so that other activity of the machine affects all of
    /// them. A different entry begins in each round, so that what an entry leaves behind (caches, the allocator,
    /// the clock frequency) does not always affect the same one.
    ///
    /// # Panics
    ///
    /// Panics if a case panics. Its message names the entry whose result was wrong.
    pub fn run(&mut self, rounds: usize, watcher: &mut dyn Watcher) {
        for _ in 0..rounds {
            let round = self.hand_offs.len();
            cores::pin(cores::OWNER);
            self.hand_offs.push(handoff::measure());
            if self.round(round, watcher).is_break() {
                self.drop_partial(round);
                self.cut_short = true;
                break;
            }
        }
        cores::roam();
    }

    fn round(&mut self, round: usize, watcher: &mut dyn Watcher) -> ControlFlow<()> {
        let cases = self.rows.len();
        for (place, row) in self.rows.iter_mut().enumerate() {
            match row.threads {
                Threads::Pinned => cores::pin(cores::OWNER),
                Threads::Free => cores::roam(),
            }
            let id = row.id();
            for turn in in_turn(round, row.entries.len()) {
                let entry = &mut row.entries[turn];
                let (case, title, workers) = (id.as_str(), row.title.as_str(), row.workers);
                let step = Step { round, case, title, place, cases, by: entry.name, workers };
                watcher.before(&step)?;
                let sample = (entry.run)();
                watcher.after(&step, &sample.values);
                entry.samples.push(sample);
            }
        }
        ControlFlow::Continue(())
    }

    /// Keeps what was measured completely: the rounds before this one, or in the first round the complete cases.
    fn drop_partial(&mut self, round: usize) {
        if round == 0 {
            self.rows.retain(Row::is_measured);
            if self.rows.is_empty() {
                self.hand_offs.clear();
            }
            return;
        }
        self.hand_offs.truncate(round);
        let entries = self.rows.iter_mut().flat_map(|row| &mut row.entries);
        entries.for_each(|entry| entry.samples.truncate(round));
    }

    /// Decides whether the run counts as complete. By default it does unless the watcher has ended it.
    pub fn set_complete(&mut self, complete: bool) {
        self.cut_short = !complete;
    }

    /// Removes the targets of all rows, so that the tables do not show them.
    pub fn forget_targets(&mut self) {
        self.rows.iter_mut().for_each(|row| row.targets.clear());
    }

    /// Returns the record of what was measured so far.
    pub fn record(&self) -> Record {
        let complete = Some(!self.cut_short);
        Record { complete, ..json::record(&self.about, &self.hand_offs, self.measured()) }
    }

    fn measured(&self) -> &[Row] {
        if self.hand_offs.is_empty() { &[] } else { &self.rows }
    }

    /// Panics unless every entry of every row has a finite, non-negative value for each metric: for tests that run
    /// every case once.
    pub fn assert_measured(&self) {
        for row in &self.rows {
            for entry in &row.entries {
                let values = &entry.samples[0].values;
                assert_eq!(values.len(), row.metrics.len(), "{} {}", row.id(), entry.name);
                let is_number = |value: &f64| value.is_finite() && *value >= 0.0;
                assert!(values.iter().all(is_number), "{} {}: {values:?}", row.id(), entry.name);
            }
        }
    }

    /// Returns tables of what was measured so far, as Markdown.
    pub fn markdown(&self) -> String {
        report::markdown(&self.record(), self.measured())
    }
}

/// Returns the indices below `count`, beginning with a different one in each round.
fn in_turn(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;
    use crate::row::{Sample, tests::row};
    use crate::target::{Target, Than};

    #[test]
    fn targets_and_completeness_are_what_the_caller_says() {
        let mut measured = row("empty", &[("ours", [1.0; 3])]);
        let than = Than::Nothing;
        measured.targets = vec![Target { of: "ours", metric: &metric::TIME, than, at_most: 2.0 }];
        let mut bench = Bench::new(vec![measured], Record::default());
        bench.hand_offs = vec![1.0; 3];
        assert!(bench.markdown().contains("Targets: 1 met, 0 missed."), "{}", bench.markdown());
        bench.forget_targets();
        assert!(!bench.markdown().contains("arget"), "{}", bench.markdown());
        bench.set_complete(false);
        assert_eq!(bench.record().complete, Some(false));
    }

    #[test]
    fn every_entry_begins_once() {
        let order = |round| in_turn(round, 3).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2]);
        assert_eq!(order(1), [1, 2, 0]);
        assert_eq!(order(5), [2, 0, 1]);
    }

    /// Breaks before the measurement with this number, and remembers what was measured.
    struct Until {
        end: usize,
        seen: Vec<String>,
    }

    impl Watcher for Until {
        fn before(&mut self, _: &Step<'_>) -> ControlFlow<()> {
            if self.seen.len() == self.end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }

        fn after(&mut self, step: &Step<'_>, values: &[f64]) {
            assert!(!values.is_empty());
            self.seen.push(format!("{} {} {}", step.round, step.case, step.by));
        }
    }

    /// Two cases with two entries each, with invented samples.
    fn bench() -> Bench {
        let case = |name| {
            let mut case = row(name, &[]);
            ["a", "b"].into_iter().for_each(|by| case.enter(by, || Sample::of([1.0])));
            case
        };
        Bench::new(vec![case("x"), case("y")], Record::default())
    }

    /// Returns the number of rounds and the number of samples of each entry that are left.
    fn ended(end: usize) -> (usize, Vec<usize>) {
        let mut bench = bench();
        bench.run(3, &mut Until { end, seen: Vec::new() });
        let entries = bench.rows.iter().flat_map(|row| &row.entries);
        (bench.rounds(), entries.map(|entry| entry.samples.len()).collect())
    }

    #[test]
    fn rounds_are_interleaved() {
        let mut until = Until { end: usize::MAX, seen: Vec::new() };
        bench().run(2, &mut until);
        let expected = [
            "0 spawn/x a",
            "0 spawn/x b",
            "0 spawn/y a",
            "0 spawn/y b",
            "1 spawn/x b",
            "1 spawn/x a",
            "1 spawn/y b",
            "1 spawn/y a",
        ];
        assert_eq!(until.seen, expected);
    }

    #[test]
    fn a_break_keeps_whole_rounds_or_whole_cases() {
        assert_eq!(ended(usize::MAX), (3, vec![3; 4]));
        assert_eq!(ended(9), (2, vec![2; 4]));
        assert_eq!(ended(7), (1, vec![1; 4]));
        assert_eq!(ended(3), (1, vec![1; 2]));
        assert_eq!(ended(1), (0, vec![]));
    }

    #[test]
    fn a_record_says_whether_the_run_was_complete() {
        for (end, complete) in [(usize::MAX, true), (9, false), (3, false)] {
            let mut bench = bench();
            bench.run(3, &mut Until { end, seen: Vec::new() });
            assert_eq!(bench.record().complete, Some(complete), "{end}");
        }
    }
}
