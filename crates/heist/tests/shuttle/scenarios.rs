//! What the tests of whole pools share.

use std::sync::Arc;

use heist::{Pool, Strategy};

/// Schedules of each kind; a pool takes many steps.
const SCHEDULES: usize = 2_000;

pub(crate) fn pool(strategy: Strategy, workers: usize) -> Arc<Pool> {
    Arc::new(Pool::builder().workers(workers).strategy(strategy).build().expect("a small pool"))
}

/// Checks that every submitted task has ended, according to the counters.
pub(crate) fn exact(pool: &Pool) {
    let stats = pool.stats();
    let out = stats.total.tasks_completed + stats.total.panics + stats.total.cancellations;
    assert_eq!(stats.total.tasks_submitted, out, "{stats:?}");
}

pub(crate) fn explore(scenario: fn()) {
    heist_testkit::schedules::check(SCHEDULES, scenario);
}

/// For scenarios with hundreds of tasks.
pub(crate) fn explore_few(scenario: fn()) {
    heist_testkit::schedules::check(SCHEDULES / 100, scenario);
}

// The list of strategies below is complete.
const _: () = assert!(Strategy::ALL.len() == 3);

/// A test for each strategy.
macro_rules! scenarios {
    ($($name:ident)*) => {
        $crate::scenarios::scenarios! { @with explore $($name)* }
    };
    (@with $explore:ident $($name:ident)*) => {$(
        mod $name {
            use heist::Strategy;

            #[test]
            fn work_stealing() {
                $crate::scenarios::$explore(|| super::$name(Strategy::WorkStealing));
            }

            #[test]
            fn locked_deques() {
                $crate::scenarios::$explore(|| super::$name(Strategy::LockedDeques));
            }

            #[test]
            fn global_queue() {
                $crate::scenarios::$explore(|| super::$name(Strategy::GlobalQueue));
            }
        }
    )*};
}
pub(crate) use scenarios;
