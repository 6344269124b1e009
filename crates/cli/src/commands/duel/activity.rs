//! The activity of each worker, inferred from the changes of its counters between two samples.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use heist::{Counters, Stats};

/// The number of samples in the history of a worker.
pub(super) const HISTORY: usize = 80;

/// The state of a worker between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// There is no second sample yet.
    #[default]
    Unknown,
    /// It ran tasks, and stole some of them.
    Stealing,
    /// It ran tasks.
    Running,
    /// It is inside a task that began earlier: a long one, or one that forks.
    InTask,
    /// It searched for work and found none.
    Searching,
    /// It went to sleep.
    Asleep,
}

/// The activity of one worker.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkerActivity {
    pub(super) now: Sample,
    /// The latest samples, newest last.
    pub(super) history: VecDeque<Sample>,
}

/// The activity of a worker between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sample {
    pub(super) state: State,
    /// Tasks per second.
    pub(super) rate: f64,
}

/// The activity of all workers of the measured pool, and of the pools before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity {
    pub(super) workers: Vec<WorkerActivity>,
    /// The number of workers of the current pool. `None` for a pool without counters.
    pub(super) in_pool: Option<usize>,
    /// The number of steals between samples, of all pools.
    pub(super) steals: u64,
    /// The number of tasks that wait or run.
    pub(super) depth: u64,
    /// The counters of each pool at its last sample. A pool sleeps while another one is measured.
    pools: BTreeMap<(String, usize), Stats>,
}

impl Activity {
    pub(super) fn new(workers: usize) -> Self {
        Self { workers: vec![WorkerActivity::default(); workers], ..Self::default() }
    }

    /// Takes a sample of a pool that has worked for `since` after the last sample.
    pub(super) fn sample(&mut self, by: &str, stats: Stats, since: Duration) {
        let in_pool = stats.per_worker.len();
        self.in_pool = Some(in_pool);
        self.depth = depth(&stats.total);
        if in_pool > self.workers.len() {
            self.workers.resize_with(in_pool, WorkerActivity::default);
        }
        let before = self.pools.insert((by.to_owned(), in_pool), stats.clone());
        let Some(before) = before.filter(|before| grew(before, &stats)) else { return };
        for (worker, (before, now)) in
            self.workers.iter_mut().zip(before.per_worker.iter().zip(&stats.per_worker))
        {
            self.steals += now.successful_steals - before.successful_steals;
            worker.advance(before, now, since);
        }
        self.workers[in_pool..].iter_mut().for_each(WorkerActivity::record_absence);
    }

    /// Records that the measured pool has no counters.
    pub(super) fn sample_unavailable(&mut self) {
        self.in_pool = None;
        self.depth = 0;
        self.workers.iter_mut().for_each(WorkerActivity::record_absence);
    }
}

impl WorkerActivity {
    fn advance(&mut self, before: &Counters, now: &Counters, since: Duration) {
        let tasks = done(now) - done(before);
        let rate = tasks as f64 / since.as_secs_f64().max(1e-6);
        self.record(Sample { state: inferred(self.now.state, before, now), rate });
    }

    /// Records that the worker is not part of the measured pool.
    fn record_absence(&mut self) {
        self.record(Sample::default());
    }

    fn record(&mut self, sample: Sample) {
        self.now = sample;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(sample);
    }
}

/// Infers the state of a worker from the changes of its counters and from its last state.
fn inferred(last: State, before: &Counters, now: &Counters) -> State {
    let more = |counter: fn(&Counters) -> u64| counter(now) > counter(before);
    let worked = more(done) || more(|of| of.local_pops) || more(|of| of.publications);
    let took = more(|of| of.injector_pops);
    if more(|of| of.successful_steals) {
        State::Stealing
    } else if worked || took {
        State::Running
    } else if more(|of| of.parks) {
        State::Asleep
    } else if more(|of| of.idle_spins) || more(|of| of.steal_attempts) {
        State::Searching
    } else {
        unchanged(last)
    }
}

/// Returns the state of a worker whose counters did not change: it still sleeps, or is still inside its task.
fn unchanged(last: State) -> State {
    match last {
        State::Running | State::Stealing | State::InTask => State::InTask,
        other => other,
    }
}

fn done(counters: &Counters) -> u64 {
    counters.tasks_completed + counters.panics
}

fn depth(total: &Counters) -> u64 {
    total.tasks_submitted.saturating_sub(done(total) + total.cancellations)
}

/// Returns `true` if both can be counters of the same pool.
fn grew(before: &Stats, now: &Stats) -> bool {
    let grew = |before: &Counters, now: &Counters| {
        done(now) >= done(before)
            && now.successful_steals >= before.successful_steals
            && now.parks >= before.parks
    };
    before.per_worker.iter().zip(&now.per_worker).all(|(before, now)| grew(before, now))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn counters(change: impl FnOnce(&mut Counters)) -> Counters {
        let mut counters = Counters::default();
        change(&mut counters);
        counters
    }

    pub(crate) fn stats(workers: &[Counters]) -> Stats {
        let mut stats = Stats::default();
        stats.per_worker = workers.to_vec();
        workers.iter().for_each(|&worker| stats.total += worker);
        stats
    }

    pub(crate) fn ran(tasks: u64, steals: u64) -> Counters {
        counters(|of| (of.tasks_completed, of.successful_steals) = (tasks, steals))
    }

    fn sample(activity: &mut Activity, workers: &[Counters]) {
        activity.sample("heist", stats(workers), SECOND);
    }

    /// Returns the state after these samples of a pool with one worker.
    fn state_after(samples: &[Counters]) -> State {
        let mut activity = Activity::new(1);
        samples.iter().for_each(|&counters| sample(&mut activity, &[counters]));
        activity.workers[0].now.state
    }

    #[test]
    fn one_sample_is_not_enough() {
        assert_eq!(state_after(&[ran(5, 1)]), State::Unknown);
    }

    #[test]
    fn completed_tasks_mean_running_and_steals_mean_stealing() {
        assert_eq!(state_after(&[ran(5, 1), ran(7, 1)]), State::Running);
        assert_eq!(state_after(&[ran(5, 1), ran(7, 2)]), State::Stealing);
    }

    #[test]
    fn spins_mean_searching_until_it_sleeps() {
        let spun = counters(|of| of.idle_spins = 4);
        let parked = counters(|of| (of.idle_spins, of.parks) = (5, 1));
        assert_eq!(state_after(&[Counters::default(), spun]), State::Searching);
        assert_eq!(state_after(&[spun, parked]), State::Asleep);
    }

    #[test]
    fn unchanged_counters_continue_the_state() {
        let parked = counters(|of| of.parks = 1);
        assert_eq!(state_after(&[Counters::default(), parked, parked]), State::Asleep);
        assert_eq!(state_after(&[ran(1, 0), ran(2, 0), ran(2, 0)]), State::InTask);
    }

    #[test]
    fn rates_are_per_second() {
        let mut activity = Activity::new(1);
        sample(&mut activity, &[ran(10, 0)]);
        activity.sample("heist", stats(&[ran(40, 0)]), SECOND * 2);
        assert_eq!(activity.workers[0].now, Sample { state: State::Running, rate: 15.0 });
        assert_eq!(activity.workers[0].history.len(), 1);
    }

    #[test]
    fn every_pool_is_compared_with_itself() {
        let mut activity = Activity::new(1);
        activity.sample("heist", stats(&[ran(10, 4)]), SECOND);
        activity.sample("heist-locked", stats(&[ran(90, 6)]), SECOND);
        assert_eq!((activity.steals, activity.workers[0].now.state), (0, State::Unknown));
        activity.sample("heist", stats(&[ran(11, 5)]), SECOND);
        assert_eq!((activity.steals, activity.workers[0].now.state), (1, State::Stealing));
    }

    #[test]
    fn counters_that_shrink_are_those_of_a_new_pool() {
        let mut activity = Activity::new(1);
        sample(&mut activity, &[ran(10, 4)]);
        sample(&mut activity, &[ran(2, 0)]);
        assert_eq!((activity.steals, activity.workers[0].now.state), (0, State::Unknown));
    }

    #[test]
    fn absent_workers_have_no_state() {
        let mut activity = Activity::new(2);
        sample(&mut activity, &[ran(1, 0), ran(1, 0)]);
        sample(&mut activity, &[ran(2, 0), ran(2, 0)]);
        sample(&mut activity, &[ran(1, 0)]);
        sample(&mut activity, &[ran(2, 0)]);
        assert_eq!(activity.in_pool, Some(1));
        assert_eq!(activity.workers[1].now, Sample::default());
    }

    #[test]
    fn a_pool_that_keeps_no_counters_leaves_a_gap() {
        let mut activity = Activity::new(1);
        sample(&mut activity, &[ran(1, 0)]);
        activity.sample_unavailable();
        assert_eq!((activity.in_pool, activity.depth), (None, 0));
        assert_eq!(activity.workers[0].history, [Sample::default()]);
    }

    #[test]
    fn depth_counts_unfinished_tasks() {
        let mut found = stats(&[counters(|of| (of.tasks_completed, of.panics) = (3, 1))]);
        (found.total.tasks_submitted, found.total.cancellations) = (10, 2);
        let mut activity = Activity::new(1);
        activity.sample("heist", found, SECOND);
        assert_eq!(activity.depth, 4);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut worker = WorkerActivity::default();
        (0..HISTORY + 10).for_each(|_| worker.record_absence());
        assert_eq!(worker.history.len(), HISTORY);
    }
}
