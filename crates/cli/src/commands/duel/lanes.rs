//! What each worker is doing, as far as its counters tell: what has changed since the last look.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use heist::{Counters, Stats};

/// How many looks a lane remembers.
pub(super) const HISTORY: usize = 80;

/// What a worker was doing between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// There has been no second look yet.
    #[default]
    Unknown,
    /// It ran tasks, and took some of them from others.
    Stealing,
    /// It ran tasks.
    Running,
    /// It began a task and has not ended it: a long one, or one that forks.
    Deep,
    /// It looked for work and found none.
    Searching,
    /// It went to sleep.
    Asleep,
}

/// One worker.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) now: Look,
    /// The newest last.
    pub(super) history: VecDeque<Look>,
}

/// What a worker did between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Look {
    pub(super) state: State,
    /// Tasks a second.
    pub(super) rate: f64,
}

/// All workers of the pool that is measured, and of those before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    /// How many of them the current pool has; `None` for a pool that keeps no counters.
    pub(super) seats: Option<usize>,
    /// Steals that were seen, of all pools.
    pub(super) steals: u64,
    /// Tasks that wait or run.
    pub(super) depth: u64,
    /// What each pool had counted at the last look: while another one is measured, it sleeps.
    pools: BTreeMap<(String, usize), Stats>,
}

impl Lanes {
    pub(super) fn new(workers: usize) -> Self {
        Self { lanes: vec![Lane::default(); workers], ..Self::default() }
    }

    /// A look at somebody's pool, which has been at work for so long since the last one.
    pub(super) fn look(&mut self, by: &str, stats: Stats, since: Duration) {
        let seats = stats.per_worker.len();
        self.seats = Some(seats);
        self.depth = depth(&stats.total);
        if seats > self.lanes.len() {
            self.lanes.resize_with(seats, Lane::default);
        }
        let before = self.pools.insert((by.to_owned(), seats), stats.clone());
        let Some(before) = before.filter(|before| grew(before, &stats)) else { return };
        for (lane, (before, now)) in
            self.lanes.iter_mut().zip(before.per_worker.iter().zip(&stats.per_worker))
        {
            self.steals += now.successful_steals - before.successful_steals;
            lane.advance(before, now, since);
        }
        self.lanes[seats..].iter_mut().for_each(Lane::rest);
    }

    /// A look at a pool that does not say what it does.
    pub(super) fn look_in_vain(&mut self) {
        self.seats = None;
        self.depth = 0;
        self.lanes.iter_mut().for_each(Lane::rest);
    }
}

impl Lane {
    fn advance(&mut self, before: &Counters, now: &Counters, since: Duration) {
        let tasks = done(now) - done(before);
        let rate = tasks as f64 / since.as_secs_f64().max(1e-6);
        self.remember(Look { state: inferred(self.now.state, before, now), rate });
    }

    /// It is not in the pool that is measured.
    fn rest(&mut self) {
        self.remember(Look::default());
    }

    fn remember(&mut self, look: Look) {
        self.now = look;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(look);
    }
}

/// What the counters of a worker tell, after that state.
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
        silent(last)
    }
}

/// Nothing was counted: it sleeps on, or is still in what it had begun.
fn silent(last: State) -> State {
    match last {
        State::Running | State::Stealing | State::Deep => State::Deep,
        other => other,
    }
}

fn done(counters: &Counters) -> u64 {
    counters.tasks_completed + counters.panics
}

fn depth(total: &Counters) -> u64 {
    total.tasks_submitted.saturating_sub(done(total) + total.cancellations)
}

/// Can these be counters of the same pool?
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

    fn look(lanes: &mut Lanes, workers: &[Counters]) {
        lanes.look("heist", stats(workers), SECOND);
    }

    /// After these looks at a pool with one worker.
    fn state_after(looks: &[Counters]) -> State {
        let mut lanes = Lanes::new(1);
        looks.iter().for_each(|&counters| look(&mut lanes, &[counters]));
        lanes.lanes[0].now.state
    }

    #[test]
    fn one_look_tells_nothing() {
        assert_eq!(state_after(&[ran(5, 1)]), State::Unknown);
    }

    #[test]
    fn who_ends_tasks_is_running_and_who_took_some_is_stealing() {
        assert_eq!(state_after(&[ran(5, 1), ran(7, 1)]), State::Running);
        assert_eq!(state_after(&[ran(5, 1), ran(7, 2)]), State::Stealing);
    }

    #[test]
    fn who_looks_in_vain_is_searching_until_it_sleeps() {
        let spun = counters(|of| of.idle_spins = 4);
        let parked = counters(|of| (of.idle_spins, of.parks) = (5, 1));
        assert_eq!(state_after(&[Counters::default(), spun]), State::Searching);
        assert_eq!(state_after(&[spun, parked]), State::Asleep);
    }

    #[test]
    fn nothing_new_means_that_it_goes_on() {
        let parked = counters(|of| of.parks = 1);
        assert_eq!(state_after(&[Counters::default(), parked, parked]), State::Asleep);
        assert_eq!(state_after(&[ran(1, 0), ran(2, 0), ran(2, 0)]), State::Deep);
    }

    #[test]
    fn rates_are_per_second() {
        let mut lanes = Lanes::new(1);
        look(&mut lanes, &[ran(10, 0)]);
        lanes.look("heist", stats(&[ran(40, 0)]), SECOND * 2);
        assert_eq!(lanes.lanes[0].now, Look { state: State::Running, rate: 15.0 });
        assert_eq!(lanes.lanes[0].history.len(), 1);
    }

    #[test]
    fn every_pool_is_compared_with_itself() {
        let mut lanes = Lanes::new(1);
        lanes.look("heist", stats(&[ran(10, 4)]), SECOND);
        lanes.look("heist-locked", stats(&[ran(90, 6)]), SECOND);
        assert_eq!((lanes.steals, lanes.lanes[0].now.state), (0, State::Unknown));
        lanes.look("heist", stats(&[ran(11, 5)]), SECOND);
        assert_eq!((lanes.steals, lanes.lanes[0].now.state), (1, State::Stealing));
    }

    #[test]
    fn counters_that_shrink_are_those_of_a_new_pool() {
        let mut lanes = Lanes::new(1);
        look(&mut lanes, &[ran(10, 4)]);
        look(&mut lanes, &[ran(2, 0)]);
        assert_eq!((lanes.steals, lanes.lanes[0].now.state), (0, State::Unknown));
    }

    #[test]
    fn who_is_not_in_the_pool_rests() {
        let mut lanes = Lanes::new(2);
        look(&mut lanes, &[ran(1, 0), ran(1, 0)]);
        look(&mut lanes, &[ran(2, 0), ran(2, 0)]);
        look(&mut lanes, &[ran(1, 0)]);
        look(&mut lanes, &[ran(2, 0)]);
        assert_eq!(lanes.seats, Some(1));
        assert_eq!(lanes.lanes[1].now, Look::default());
    }

    #[test]
    fn a_pool_that_keeps_no_counters_leaves_a_gap() {
        let mut lanes = Lanes::new(1);
        look(&mut lanes, &[ran(1, 0)]);
        lanes.look_in_vain();
        assert_eq!((lanes.seats, lanes.depth), (None, 0));
        assert_eq!(lanes.lanes[0].history, [Look::default()]);
    }

    #[test]
    fn depth_is_what_was_taken_in_and_has_not_ended() {
        let mut found = stats(&[counters(|of| (of.tasks_completed, of.panics) = (3, 1))]);
        (found.total.tasks_submitted, found.total.cancellations) = (10, 2);
        let mut lanes = Lanes::new(1);
        lanes.look("heist", found, SECOND);
        assert_eq!(lanes.depth, 4);
    }

    #[test]
    fn a_lane_forgets() {
        let mut lane = Lane::default();
        (0..HISTORY + 10).for_each(|_| lane.rest());
        assert_eq!(lane.history.len(), HISTORY);
    }
}
