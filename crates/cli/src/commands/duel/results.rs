//! The results of a duel: medians, intervals and ratios of each case.

use heist_bench::record::{Latencies, Record};
use heist_bench::stats::Interval;

use super::text::{GLOBAL_QUEUE, NAMES, RAYON, WORK_STEALING};
use crate::cases::{self, Entry, cases, speed_up};

/// The family of all cases of the duel.
pub(super) const FAMILY: &str = "duel";

/// The case that measures latency instead of throughput.
const LATENCY: &str = "latency";

/// The metrics of the duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Time,
    P50,
    P99,
}

impl Metric {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Time => "nanoseconds",
            Self::P50 => "p50_nanoseconds",
            Self::P99 => "p99_nanoseconds",
        }
    }
}

/// The samples of all peers for one case.
pub(super) struct Case<'r>(pub(super) cases::Case<'r>);

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Score {
    pub(super) by: &'static str,
    pub(super) value: Interval,
    /// The ratio to rayon within the same rounds. `None` for rayon itself.
    pub(super) to_rayon: Option<Interval>,
    pub(super) to_global: Option<Interval>,
}

impl<'r> Case<'r> {
    /// Returns `skewed` for `duel/skewed/2`.
    pub(super) fn workload(&self) -> &str {
        without_family(&self.0.family)
    }

    /// Returns `skewed with 2 workers`.
    pub(super) fn phrase(&self) -> String {
        without_family(&self.0.phrase()).to_owned()
    }

    /// Returns the scores of all measured peers, in the order in which they are shown.
    pub(super) fn scores(&self, metric: Metric) -> Vec<Score> {
        let score = |&(by, _): &(&'static str, _)| {
            let entry = self.entry(by, metric)?;
            let to = |whom: &str| {
                let other = self.entry(whom, metric).filter(|other| other.by != by)?;
                entry.over(other)
            };
            Some(Score {
                by,
                value: entry.middle,
                to_rayon: to(RAYON),
                to_global: to(GLOBAL_QUEUE),
            })
        };
        NAMES.iter().filter_map(score).collect()
    }

    /// Returns the widest interval of a time as a part of its median, and the peer.
    pub(super) fn spread(&self) -> Option<(f64, &'static str)> {
        let spread = |score: Score| {
            let Interval { low, median, high, .. } = score.value;
            ((high - low) / median, score.by)
        };
        let spreads = self.scores(Metric::Time).into_iter().map(spread);
        spreads.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Returns the number of disturbed values, and of all values.
    pub(super) fn disturbed(&self) -> (usize, usize) {
        let entries = &self.0.main().entries;
        let disturbed = entries.iter().map(|entry| entry.disturbed).sum();
        (disturbed, entries.iter().map(|entry| entry.values.len()).sum())
    }

    fn entry(&self, by: &str, metric: Metric) -> Option<&Entry<'r>> {
        self.0.metrics.iter().find(|found| found.key == metric.key())?.entry(by)
    }
}

/// Removes the family: `duel/skewed with 2 workers` becomes `skewed with 2 workers`.
pub(super) fn without_family(name: &str) -> &str {
    name.strip_prefix(FAMILY).and_then(|name| name.strip_prefix('/')).unwrap_or(name)
}

/// All cases of the duel that have samples, in the order in which they were measured.
pub(super) struct Results<'r> {
    pub(super) rounds: usize,
    /// The number of answers that each peer gave per round of the latency case.
    pub(super) questions: Option<u64>,
    pub(super) cases: Vec<Case<'r>>,
}

impl<'r> Results<'r> {
    pub(super) fn of(record: &'r Record) -> Self {
        let of_duel = cases(record).into_iter().filter(|case| case.workload == FAMILY);
        let answers = |latencies: &Latencies| latencies.buckets.iter().map(|bucket| bucket.1).sum();
        let found = record.latencies.iter().find(|found| without_family(&found.case) == LATENCY);
        let questions =
            found.map(answers).and_then(|all: u64| all.checked_div(record.rounds as u64));
        Self { rounds: record.rounds, questions, cases: of_duel.map(Case).collect() }
    }

    /// Returns the largest number of workers of any case.
    pub(super) fn workers(&self) -> usize {
        self.cases.iter().filter_map(|case| case.0.workers).max().unwrap_or(1)
    }

    /// Returns the cases with this number of workers, without the latency case.
    pub(super) fn with(&self, workers: usize) -> impl Iterator<Item = &Case<'r>> {
        let fits =
            move |case: &&Case<'_>| case.0.workers == Some(workers) && case.workload() != LATENCY;
        self.cases.iter().filter(fits)
    }

    /// Returns the latency case.
    pub(super) fn latency(&self) -> Option<&Case<'r>> {
        self.cases.iter().find(|case| case.workload() == LATENCY)
    }

    /// Returns the speed-up of work stealing from one worker to all, for each workload.
    pub(super) fn speed_ups(&self) -> Vec<(&str, Interval)> {
        let of_case = |all: &Case<'r>| {
            let one = self.with(1).find(|one| one.workload() == all.workload())?;
            speed_up(&one.0, &all.0, WORK_STEALING)
        };
        let workers = self.workers();
        if workers == 1 {
            return Vec::new();
        }
        self.with(workers).filter_map(|all| Some((all.workload(), of_case(all)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{all_wins, record, series};
    use super::*;

    #[test]
    fn ratios_are_computed_within_a_round() {
        let samples = vec![
            series("skewed/2", "heist", &[1.0, 10.0, 1.0]),
            series("skewed/2", "rayon", &[2.0, 20.0, 2.0]),
        ];
        let record = record(samples);
        let results = Results::of(&record);
        let scores = results.cases[0].scores(Metric::Time);
        assert_eq!(scores[0].to_rayon.unwrap().median, 0.5);
        assert_eq!((scores[0].to_global, scores[1].to_rayon), (None, None));
    }

    #[test]
    fn peers_are_in_the_order_of_the_tables() {
        let record = all_wins();
        let results = Results::of(&record);
        let names: Vec<_> = results.cases[0].scores(Metric::Time).iter().map(|of| of.by).collect();
        assert_eq!(names, ["heist", "heist-locked", "heist-global", "rayon"]);
    }

    #[test]
    fn speed_ups_are_those_of_all_workers() {
        let record = all_wins();
        let results = Results::of(&record);
        let speed_ups = results.speed_ups();
        assert_eq!(speed_ups.len(), 3);
        assert_eq!(speed_ups[1].0, "skewed");
        assert!((1.9..2.1).contains(&speed_ups[1].1.median));
    }

    #[test]
    fn one_worker_has_no_speed_up() {
        let record = record(vec![series("skewed/1", "heist", &[1.0])]);
        assert!(Results::of(&record).speed_ups().is_empty());
    }

    #[test]
    fn cases_without_samples_are_left_out() {
        let mut other = series("fib/1", "heist", &[1.0]);
        other.workload = "fork".to_owned();
        let record = record(vec![series("skewed/1", "heist", &[]), other]);
        assert!(Results::of(&record).cases.is_empty());
    }

    #[test]
    fn the_widest_interval_is_found() {
        let samples = vec![
            series("skewed/2", "heist", &[10.0, 11.0, 12.0]),
            series("skewed/2", "rayon", &[10.0, 10.0, 20.0]),
        ];
        let record = record(samples);
        assert_eq!(Results::of(&record).cases[0].spread(), Some((1.0, "rayon")));
    }
}
