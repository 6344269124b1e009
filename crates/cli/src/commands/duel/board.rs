//! What has been measured so far, as the measuring thread tells it to the one that draws.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use heist::Stats;
use heist_bench::{Step, stats};

use super::lanes::Lanes;
use super::text;

/// Both threads hold it for some microseconds at a time, and the measuring one only between measurements.
#[derive(Debug, Clone)]
pub(super) struct Board {
    pub(super) start: Instant,
    /// When measuring should end, from the start.
    pub(super) end: Duration,
    /// The most workers of any case.
    pub(super) workers: usize,
    pub(super) now: Option<Now>,
    pub(super) lanes: Lanes,
    /// When somebody looked last, or the measurement began.
    looked: Instant,
    /// By the name of the case and of who was measured.
    scores: BTreeMap<(String, String), Vec<f64>>,
}

/// What is measured just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Now {
    /// From 0.
    pub(super) round: usize,
    pub(super) case: String,
    /// In words.
    pub(super) title: String,
    pub(super) by: String,
}

impl Board {
    pub(super) fn new(workers: usize, start: Instant, end: Duration) -> Self {
        Self {
            start,
            end,
            workers,
            now: None,
            lanes: Lanes::new(workers),
            looked: start,
            scores: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, step: &Step<'_>) {
        self.looked = Instant::now();
        let workload = step.case.split('/').nth(1).unwrap_or(step.case);
        self.now = Some(Now {
            round: step.round,
            case: step.case.to_owned(),
            title: text::headline(workload, step.workers, step.title),
            by: step.by.to_owned(),
        });
    }

    /// What the pool that is measured has counted, if it counts.
    pub(super) fn look(&mut self, stats: Option<Stats>) {
        let since = std::mem::replace(&mut self.looked, Instant::now()).elapsed();
        match (&self.now, stats) {
            (Some(now), Some(stats)) => self.lanes.look(&now.by, stats, since),
            (Some(_), None) => self.lanes.look_in_vain(),
            (None, _) => {}
        }
    }

    pub(super) fn score(&mut self, step: &Step<'_>, value: f64) {
        let key = (step.case.to_owned(), step.by.to_owned());
        self.scores.entry(key).or_default().push(value);
    }

    /// The median so far, if there is one.
    pub(super) fn median(&self, case: &str, by: &str) -> Option<f64> {
        let key = (case.to_owned(), by.to_owned());
        self.scores.get(&key).map(|values| stats::interval(values.iter().copied()).median)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn step(case: &'static str, by: &'static str) -> Step<'static> {
        Step { round: 2, case, title: "a title", place: 0, cases: 1, by, workers: Some(2) }
    }

    #[test]
    fn medians_are_of_one_case_and_one_name() {
        let mut board = Board::new(2, Instant::now(), Duration::from_secs(1));
        for value in [3.0, 1.0, 2.0] {
            board.score(&step("duel/skewed/2", "heist"), value);
        }
        board.score(&step("duel/skewed/2", "rayon"), 9.0);
        assert_eq!(board.median("duel/skewed/2", "heist"), Some(2.0));
        assert_eq!(board.median("duel/skewed/1", "heist"), None);
    }

    #[test]
    fn nobody_is_looked_at_before_the_first_measurement() {
        let mut board = Board::new(1, Instant::now(), Duration::from_secs(1));
        board.look(None);
        assert!(board.lanes.lanes[0].history.is_empty());
        board.begin(&step("duel/skewed/2", "rayon"));
        board.look(None);
        assert_eq!(board.lanes.lanes[0].history.len(), 1);
    }
}
