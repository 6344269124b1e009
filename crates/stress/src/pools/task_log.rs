//! Records what became of each task of a pool, and compares it with what the pool has counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heist::Stats;

use crate::Violation;
use crate::exactly_once::ExactlyOnce;
use crate::planned::expect_planned_message;

/// What became of the tasks of one pool. Tasks are numbered in the order in which they are registered.
pub(super) struct TaskLog {
    /// How many tasks may be registered.
    limit: usize,
    /// How many calls of [`register`](Self::register) there were, refused ones included.
    registered: AtomicUsize,
    /// Which tasks have run.
    ran: ExactlyOnce,
    /// Which tasks have dropped their closure.
    dropped: ExactlyOnce,
    panicked: AtomicU64,
    /// Whether the pool is stopped before everything has been spawned, or tasks are cancelled.
    may_refuse: bool,
    first_violation: Mutex<Option<Violation>>,
}

/// A task in the log. The closure of the task owns it.
pub(super) struct LoggedTask {
    log: Arc<TaskLog>,
    number: usize,
}

impl TaskLog {
    pub(super) fn new(limit: usize, may_refuse: bool) -> Self {
        Self {
            limit,
            registered: AtomicUsize::new(0),
            ran: ExactlyOnce::new(limit),
            dropped: ExactlyOnce::new(limit),
            panicked: AtomicU64::new(0),
            may_refuse,
            first_violation: Mutex::new(None),
        }
    }

    /// Registers one more task, unless the limit is reached.
    pub(super) fn register(self: &Arc<Self>) -> Option<LoggedTask> {
        let number = self.registered.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then(|| LoggedTask { log: Arc::clone(self), number })
    }

    /// Returns how many tasks were registered.
    pub(super) fn tasks(&self) -> usize {
        self.registered.load(Ordering::Relaxed).min(self.limit)
    }

    pub(super) fn may_refuse(&self) -> bool {
        self.may_refuse
    }

    /// Keeps the violation for [`check`](Self::check) if it is the first one.
    pub(super) fn record_violation(&self, violation: Violation) {
        let mut first = self.first_violation.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(violation);
    }

    /// Records a panic that a handle, a call of `install` or the panic hook of the pool has reported.
    pub(super) fn record_panic(&self, message: &str) {
        if let Err(violation) = expect_planned_message(message) {
            self.record_violation(violation);
        }
    }

    /// Checks, once the pool has ended, that each task has run once and has dropped its closure once, and
    /// that the counters of the pool agree. If the pool stops early, or tasks are cancelled, it need
    /// not have run every task.
    pub(super) fn check(&self, stats: Option<&Stats>) -> Result<(), Violation> {
        let first = self.first_violation.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(violation) = first {
            return Err(violation);
        }
        // `ExactlyOnce` has room for `limit` tasks: those that were never registered are not lost.
        let total = self.tasks();
        let unused = self.limit - total;
        let not_once = |what, lost, doubled| Violation::NotOnce { what, lost, doubled, total };

        let (lost, doubled) = (self.ran.lost() - unused, self.ran.doubled());
        if doubled > 0 || lost > 0 && !self.may_refuse {
            return Err(not_once("tasks", lost, doubled));
        }
        let (kept, freed_twice) = (self.dropped.lost() - unused, self.dropped.doubled());
        if kept + freed_twice > 0 {
            return Err(not_once("drops of closures", kept, freed_twice));
        }
        stats.map_or(Ok(()), |stats| self.compare(stats, (total - lost) as u64))
    }

    fn compare(&self, stats: &Stats, ran: u64) -> Result<(), Violation> {
        let panicked = self.panicked.load(Ordering::Relaxed);
        let tasks = self.tasks() as u64;
        let ended = stats.total.tasks_completed + stats.total.panics + stats.total.cancellations;
        let submitted = if self.may_refuse {
            stats.total.tasks_submitted <= tasks
        } else {
            stats.total.tasks_submitted == tasks
        };
        let right = submitted
            && stats.total.tasks_submitted == ended
            && (stats.total.tasks_completed, stats.total.panics) == (ran - panicked, panicked);
        if right {
            Ok(())
        } else {
            Err(Violation::Counters(format!(
                "{tasks} tasks, {ran} ran, {panicked} panicked, but the pool counted {:?}",
                stats.total
            )))
        }
    }
}

impl LoggedTask {
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Records that the task runs.
    pub(super) fn runs(&mut self) {
        self.log.ran.record(self.number);
    }

    /// Records that the task is about to panic.
    pub(super) fn panics(&mut self) {
        self.log.panicked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for LoggedTask {
    fn drop(&mut self) {
        self.log.dropped.record(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planned::PLANNED;

    /// Returns the log of three tasks that have run, and the counters to match.
    fn three_tasks() -> (Arc<TaskLog>, Stats) {
        let log = Arc::new(TaskLog::new(3, false));
        (0..3).for_each(|_| log.register().unwrap().runs());
        let mut stats = Stats::default();
        (stats.total.tasks_submitted, stats.total.tasks_completed) = (3, 3);
        (log, stats)
    }

    #[test]
    fn tasks_that_ran_once_pass() {
        let (log, stats) = three_tasks();
        assert_eq!(log.check(Some(&stats)), Ok(()));
        assert!(log.register().is_none());
        assert_eq!(log.tasks(), 3);
    }

    #[test]
    fn a_lost_task_is_found_unless_the_pool_may_refuse() {
        for may_refuse in [false, true] {
            let log = Arc::new(TaskLog::new(5, may_refuse));
            log.register().unwrap().runs();
            drop(log.register());
            assert_eq!(log.check(None).is_err(), !may_refuse);
        }
    }

    #[test]
    fn a_task_that_runs_twice_is_found() {
        let log = Arc::new(TaskLog::new(5, true));
        let mut task = log.register().unwrap();
        task.runs();
        task.runs();
        drop(task);
        let violation = log.check(None).unwrap_err();
        assert_eq!(violation.to_string(), "0 lost, 1 doubled, of 1 tasks");
    }

    #[test]
    fn a_leaked_closure_is_found() {
        let log = Arc::new(TaskLog::new(5, false));
        let mut task = log.register().unwrap();
        task.runs();
        std::mem::forget(task);
        let violation = log.check(None).unwrap_err();
        assert_eq!(violation.to_string(), "1 lost, 0 doubled, of 1 drops of closures");
    }

    #[test]
    fn counters_that_do_not_add_up_are_found() {
        let (log, right) = three_tasks();
        for spoil in [
            |stats: &mut Stats| stats.total.tasks_submitted += 1,
            |stats: &mut Stats| stats.total.cancellations += 1,
            |stats: &mut Stats| {
                stats.total.panics += 1;
                stats.total.tasks_completed -= 1;
            },
        ] {
            let mut stats = right.clone();
            spoil(&mut stats);
            assert!(log.check(Some(&stats)).is_err(), "{stats:?}");
        }
    }

    #[test]
    fn a_panic_that_was_not_planned_is_found() {
        let (log, _) = three_tasks();
        log.record_panic(PLANNED);
        assert_eq!(log.check(None), Ok(()));
        log.record_panic("index out of bounds");
        assert!(log.check(None).is_err());
    }
}
