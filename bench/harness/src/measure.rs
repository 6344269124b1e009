//! In which order the cases run, on which cores, and what is kept of a run that is ended early.

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
    /// What a hand-off between the cores took, one a round.
    hand_offs: Vec<f64>,
    /// The watcher has ended it.
    cut_short: bool,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub struct Step<'s> {
    /// From 0.
    pub round: usize,
    /// The name of the case.
    pub case: &'s str,
    /// The case in words.
    pub title: &'s str,
    /// Which of all the cases, from 0.
    pub place: usize,
    /// Of how many.
    pub cases: usize,
    /// Who is measured.
    pub by: &'s str,
    /// With how many workers, where cases differ by it.
    pub workers: Option<usize>,
}

/// Is told what is measured, and may end the run.
pub trait Watcher {
    /// Before each measurement. A break ends the run: what was measured of this round is dropped. Of the first
    /// round, the cases in which everyone has been measured are kept.
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()>;

    /// After it, with a value for each metric of the case.
    fn after(&mut self, step: &Step<'_>, values: &[f64]);
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

    /// The cases, in the order in which they run.
    pub fn cases(&self) -> Vec<Case> {
        self.rows.iter().map(Case::of).collect()
    }

    /// How often everything that is kept was measured.
    pub fn rounds(&self) -> usize {
        self.hand_offs.len()
    }

    /// Measures everything `rounds` times, interleaved, or until the watcher ends it. Rounds of an earlier call
    /// are kept.
    ///
    /// The entries of a case come one right after the other, so that whatever else the machine is
    /// doing falls on all of them; and another one begins every round, so that what an entry leaves
    /// behind (caches, the allocator, the clock's speed) is not always left to the same one.
    ///
    /// # Panics
    ///
    /// If a case does: it says which entry gave a wrong result.
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

    /// Leaves what was measured in full: the rounds before this one, or else the cases of this one.
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

    /// What was measured so far.
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

    /// What was measured so far, for people.
    pub fn markdown(&self) -> String {
        report::markdown(&self.record(), self.measured())
    }
}

/// All of `count`, beginning with another one every round.
fn in_turn(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Sample, tests::row};

    #[test]
    fn every_entry_begins_once() {
        let order = |round| in_turn(round, 3).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2]);
        assert_eq!(order(1), [1, 2, 0]);
        assert_eq!(order(5), [2, 0, 1]);
    }

    /// Breaks before the measurement of this number; remembers who was measured.
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

    /// Two cases with two entries each; the samples are made up.
    fn bench() -> Bench {
        let case = |name| {
            let mut case = row(name, &[]);
            ["a", "b"].into_iter().for_each(|by| case.enter(by, || Sample::of([1.0])));
            case
        };
        Bench::new(vec![case("x"), case("y")], Record::default())
    }

    /// The numbers of samples that are left.
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
