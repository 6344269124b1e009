//! In which order the cases run, on which cores, and what is kept of a run that is ended early.

use std::ops::ControlFlow;

use crate::record::{Record, Traced};
use crate::row::{Row, Threads};
use crate::selection::{Case, Selection, UnknownName};
use crate::{cores, handoff, json, pools, report};

/// The cases of a run, and what has been measured of them so far.
pub struct Bench {
    rows: Vec<Row>,
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
    /// Those that were selected.
    ///
    /// # Errors
    ///
    /// A name that no case, or nobody in these cases, has.
    pub fn new(selection: &Selection) -> Result<Self, UnknownName> {
        Ok(Self { rows: selection.of(crate::all_rows())?, hand_offs: Vec::new(), cut_short: false })
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
    /// With a message that says who was wrong, if a result is wrong; with [`Refused`](crate::Refused), if there is no pool.
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
        pools::live::set(None);
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
                pools::live::set(None);
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
        Record { complete, ..json::record(&self.hand_offs, self.measured()) }
    }

    fn measured(&self) -> &[Row] {
        if self.hand_offs.is_empty() { &[] } else { &self.rows }
    }

    /// Runs a few of the cases once more, not measured, with a pool of ours that keeps a trace: at most so many, rather those
    /// with several workers than those with one, and none once it is to stop.
    pub fn traces(&self, most: usize, stop: impl Fn() -> bool) -> Vec<Traced> {
        let (alone, crowd): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|row| row.workers == Some(1));
        let trace = |row: &Row| {
            let entry = row.entries.iter().find(|entry| crate::is_ours(entry.name))?;
            Some(Traced::of(&entry.trace()?, &row.id(), entry.name))
        };
        // A queue has no pool.
        let rows = crowd.into_iter().chain(alone).filter(|row| row.item.is_none());
        let traces = rows.take_while(|_| !stop()).filter_map(trace).take(most).collect();
        pools::live::set(None);
        traces
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
    use std::cell::Cell;

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
        Bench { rows: vec![case("x"), case("y")], hand_offs: Vec::new(), cut_short: false }
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

    #[test]
    fn every_family_of_pools_can_be_traced() {
        let case = |family: &str| Selection { cases: vec![family.into()], ..Selection::default() };
        let families =
            ["spawn/", "strategies/", "fib/", "ignition/", "latency/", "pipeline/", "duel/"];
        for family in families {
            let traces = Bench::new(&case(family)).unwrap().traces(1, || false);
            let [trace] = &traces[..] else { panic!("{family} has {} traces", traces.len()) };
            assert!(trace.case.starts_with(family), "{}", trace.case);
            assert!(trace.lanes.iter().map(|lane| lane.tasks).sum::<u64>() > 0, "{family}");
        }
        assert!(Bench::new(&case("deque/u64")).unwrap().traces(1, || false).is_empty());
        assert!(crate::trace("duel/tree/1", "heist-global").is_some());
        assert!(crate::trace("duel/tree/1", "rayon").is_none());
        assert!(crate::trace("duel/tree/none", "heist").is_none());
    }

    #[test]
    fn no_trace_is_begun_once_it_is_to_stop() {
        let cases = vec!["duel/".into()];
        let bench = Bench::new(&Selection { cases, ..Selection::default() }).unwrap();
        assert!(bench.rows.len() > 1);
        assert!(bench.traces(9, || true).is_empty());
        let looks = Cell::new(0);
        assert_eq!(bench.traces(9, || looks.replace(looks.get() + 1) == 1).len(), 1);
    }

    /// The loops check what comes out; here with the sizes that tests use.
    #[test]
    fn every_case_runs_with_every_entry() {
        let mut bench = Bench::new(&Selection::default()).unwrap();
        bench.run(1, &mut Until { end: usize::MAX, seen: Vec::new() });
        for row in &bench.rows {
            for entry in &row.entries {
                let values = &entry.samples[0].values;
                assert_eq!(values.len(), row.metrics.len(), "{} {}", row.id(), entry.name);
                let is_number = |value: &f64| value.is_finite() && *value >= 0.0;
                assert!(values.iter().all(is_number), "{} {}: {values:?}", row.id(), entry.name);
            }
        }
        assert!(bench.markdown().contains("fewer than 6 rounds"));
        let latencies = bench.record().latencies;
        let heist =
            latencies.iter().find(|found| found.case == "duel/latency" && found.by == "heist");
        assert_eq!(heist.unwrap().buckets.iter().map(|bucket| bucket.1).sum::<u64>(), 3);
    }
}
