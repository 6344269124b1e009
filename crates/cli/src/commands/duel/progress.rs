//! The state of a run, shared between the measuring thread and the thread that draws.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use heist::Stats;
use heist_bench::{Step, stats};

use super::activity::Activity;
use super::text;

/// The state of a run. Both threads lock it for some microseconds at a time, and the measuring thread only
/// between measurements.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) start: Instant,
    /// When measuring should end, relative to the start.
    pub(super) end: Duration,
    /// The largest number of workers of any case.
    pub(super) workers: usize,
    pub(super) current: Option<Current>,
    pub(super) activity: Activity,
    /// The time of the last sample, or the beginning of the measurement.
    sampled: Instant,
    /// The values, by the names of the case and of the peer.
    scores: BTreeMap<(String, String), Vec<f64>>,
}

/// The measurement that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    /// Counted from 0.
    pub(super) round: usize,
    pub(super) case: String,
    /// The description of the case.
    pub(super) title: String,
    pub(super) by: String,
}

impl Progress {
    pub(super) fn new(workers: usize, start: Instant, end: Duration) -> Self {
        Self {
            start,
            end,
            workers,
            current: None,
            activity: Activity::new(workers),
            sampled: start,
            scores: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, step: &Step<'_>) {
        self.sampled = Instant::now();
        let workload = step.case.split('/').nth(1).unwrap_or(step.case);
        self.current = Some(Current {
            round: step.round,
            case: step.case.to_owned(),
            title: text::headline(workload, step.workers, step.title),
            by: step.by.to_owned(),
        });
    }

    /// Takes a sample of the measured pool. `None` if it has no counters.
    pub(super) fn sample(&mut self, stats: Option<Stats>) {
        let since = std::mem::replace(&mut self.sampled, Instant::now()).elapsed();
        match (&self.current, stats) {
            (Some(current), Some(stats)) => self.activity.sample(&current.by, stats, since),
            (Some(_), None) => self.activity.sample_unavailable(),
            (None, _) => {}
        }
    }

    pub(super) fn score(&mut self, step: &Step<'_>, value: f64) {
        let key = (step.case.to_owned(), step.by.to_owned());
        self.scores.entry(key).or_default().push(value);
    }

    /// Returns the median so far, if there is one.
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
    fn medians_are_per_case_and_peer() {
        let mut progress = Progress::new(2, Instant::now(), Duration::from_secs(1));
        for value in [3.0, 1.0, 2.0] {
            progress.score(&step("duel/skewed/2", "heist"), value);
        }
        progress.score(&step("duel/skewed/2", "rayon"), 9.0);
        assert_eq!(progress.median("duel/skewed/2", "heist"), Some(2.0));
        assert_eq!(progress.median("duel/skewed/1", "heist"), None);
    }

    #[test]
    fn nothing_is_sampled_before_the_first_measurement() {
        let mut progress = Progress::new(1, Instant::now(), Duration::from_secs(1));
        progress.sample(None);
        assert!(progress.activity.workers[0].history.is_empty());
        progress.begin(&step("duel/skewed/2", "rayon"));
        progress.sample(None);
        assert_eq!(progress.activity.workers[0].history.len(), 1);
    }
}
