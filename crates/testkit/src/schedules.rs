//! How a scenario is run under shuttle.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Stack size of shuttle's threads: enough for a task on top of a task on top of a scheduler.
const STACK: usize = 256 << 10;

/// A fixed seed, so that the same code gives the same answer. `SHUTTLE_RANDOM_SEED` chooses other
/// schedules, as `ci/soak.sh` does.
const SEED: u64 = 1;

/// Runs a scenario under random schedules and under PCT of two depths, `schedules` of each. If
/// `HEIST_REPLAY` is set, replays that schedule instead.
///
/// # Panics
///
/// Panics if the scenario fails under one of the schedules.
pub fn check(schedules: usize, scenario: impl Fn() + Clone + Send + Sync + 'static) {
    if let Ok(schedule) = std::env::var("HEIST_REPLAY") {
        shuttle::replay(scenario, &schedule);
        return;
    }
    let config = || {
        let mut config = Config::new();
        config.stack_size = STACK;
        config
    };
    let random = Runner::new(RandomScheduler::new_from_seed(SEED, schedules), config())
        .run(scenario.clone());
    let shallow = Runner::new(PctScheduler::new_from_seed(SEED, 5, schedules), config())
        .run(scenario.clone());
    let deep =
        Runner::new(PctScheduler::new_from_seed(SEED, 10, schedules), config()).run(scenario);
    assert_eq!([random, shallow, deep], [schedules; 3], "all schedules were run");
}
