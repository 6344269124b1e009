//! The pool on which a case of forks or loops runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use heist::{Pool, Stats, Strategy};

use crate::error::{Error, Violation};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug)]
pub(crate) enum PoolChoice {
    /// The global pool. The calling thread takes part in the work for the duration of the call.
    Global,
    /// A pool that the case starts and stops.
    Own { strategy: Strategy, workers: usize },
}

impl PoolChoice {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let own = Self::Own {
            strategy: rng.pick(&Strategy::ALL),
            workers: rng.pick(&[1, 2, 3, 4, 8, 20]),
        };
        if rng.one_in(8) { Self::Global } else { own }
    }

    /// Calls `f` on the pool, and returns its result or its panic.
    ///
    /// `case` describes the caller in an error. There is an error if the pool does not start, or if its
    /// counters do not add up; a panic of `f` is none.
    pub(crate) fn run<R: Send>(
        self,
        case: &impl std::fmt::Debug,
        f: impl FnOnce() -> R + Send,
    ) -> Result<thread::Result<R>, Error> {
        let Self::Own { strategy, workers } = self else {
            return Ok(catch_unwind(AssertUnwindSafe(f)));
        };
        let pool = Pool::builder().workers(workers).strategy(strategy).build()?;
        let outcome = catch_unwind(AssertUnwindSafe(|| pool.install(f)));
        pool.stop();
        check_balance(&pool.stats()).map_err(|violation| violation.in_case(case))?;
        Ok(outcome)
    }
}

/// Checks that every submitted task has ended and that none was cancelled.
fn check_balance(stats: &Stats) -> Result<(), Violation> {
    let right = stats.total.tasks_submitted == stats.total.tasks_completed + stats.total.panics
        && stats.total.cancellations == 0;
    if right {
        Ok(())
    } else {
        Err(Violation::Counters(format!("the counters do not add up: {:?}", stats.total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_never_ended_is_found() {
        let mut stats = Stats::default();
        stats.total.tasks_submitted = 2;
        stats.total.tasks_completed = 1;
        assert!(check_balance(&stats).is_err());
        stats.total.panics = 1;
        assert!(check_balance(&stats).is_ok());
        stats.total.tasks_submitted = 3;
        stats.total.cancellations = 1;
        assert!(check_balance(&stats).is_err());
    }
}
