//! Where forks and loops run: on a pool of their own, or on the global one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use heist::{Pool, Stats, Strategy};

use super::PLANNED;
use super::die::Die;
use super::trouble::Trouble;
use crate::exit::panic_message;

#[derive(Clone, Copy, Debug)]
pub(super) enum Ground {
    /// Whose workers this thread joins for a call.
    Global,
    Own {
        strategy: Strategy,
        workers: usize,
    },
}

impl Ground {
    pub(super) fn random(die: &mut Die) -> Self {
        let own =
            Self::Own { strategy: die.pick(&Strategy::ALL), workers: die.pick(&[1, 2, 3, 4, 8]) };
        if die.roll(8) == 0 { Self::Global } else { own }
    }

    /// Calls the closure there. The error is not its panic, but a pool that does not start, or whose counters do not add up.
    pub(super) fn run<R: Send>(
        self,
        f: impl FnOnce() -> R + Send,
    ) -> Result<thread::Result<R>, Trouble> {
        let Self::Own { strategy, workers } = self else {
            return Ok(catch_unwind(AssertUnwindSafe(f)));
        };
        let pool = Pool::builder().workers(workers).strategy(strategy).build()?;
        let outcome = catch_unwind(AssertUnwindSafe(|| pool.install(f)));
        pool.stop();
        balance(&pool.stats())?;
        Ok(outcome)
    }
}

/// Every task that came in has ended, and none was cancelled.
fn balance(stats: &Stats) -> Result<(), String> {
    let right = stats.total.tasks_submitted == stats.total.tasks_completed + stats.total.panics
        && stats.total.cancellations == 0;
    if right { Ok(()) } else { Err(format!("the pool counted {:?}", stats.total)) }
}

/// The error says what else it was.
pub(super) fn is_planned(payload: &(dyn Any + Send)) -> Result<(), String> {
    let message = panic_message(payload);
    if message == PLANNED { Ok(()) } else { Err(message.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_never_ended_is_found() {
        let mut stats = Stats::default();
        stats.total.tasks_submitted = 2;
        stats.total.tasks_completed = 1;
        assert!(balance(&stats).is_err());
        stats.total.panics = 1;
        assert!(balance(&stats).is_ok());
        stats.total.tasks_submitted = 3;
        stats.total.cancellations = 1;
        assert!(balance(&stats).is_err());
    }
}
