//! One injector of a pool that steals, and what was left of it when stale entries were dropped.

use heist_deque::bounded::Worker;
use heist_deque::facade::Watched;
use heist_deque::{BATCH_LIMIT, Injector};

use super::swept::Swept;
use super::{Found, SharedQueue, steal_until_decided, to_found};
use crate::stats::Tally;
use crate::task::Task;

/// The tasks that were pushed to a cluster. Both fields are on cache lines of their own, because those of the injector are.
pub(crate) struct Injected {
    pub(super) injector: Injector<Task>,
    /// What was in the injector when stale entries were last dropped from it: the tasks that come before those in the
    /// injector.
    swept: Swept,
}

impl Injected {
    /// Takes the oldest tasks: one to run, and perhaps more into the thread's own deque.
    pub(super) fn take(&self, deque: &Worker<Task>, tally: Tally<'_>) -> Found {
        if let Some(task) = self.swept.pop() {
            return Found::Task(task, 0);
        }
        let drawn = self.injector.steal_batch_and_pop(&Watched(deque, Task::prefetch));
        to_found(drawn, came_along(deque), tally)
    }

    /// Takes the oldest task.
    pub(super) fn take_one(&self, tally: Tally<'_>) -> Option<Task> {
        self.swept.pop().or_else(|| steal_until_decided(|| self.injector.steal(), tally))
    }
}

impl SharedQueue for Injected {
    fn new() -> Self {
        Self { injector: Injector::new(), swept: Swept::new() }
    }

    fn push(&self, task: Task, _: Tally<'_>) -> usize {
        self.injector.push(task);
        0
    }

    fn pop(&self, tally: Tally<'_>) -> Option<Task> {
        if self.any() { self.take_one(tally) } else { None }
    }

    fn any(&self) -> bool {
        !self.injector.is_empty() || self.swept.any()
    }

    fn len(&self) -> Option<usize> {
        Some(self.injector.len() + self.swept.len())
    }

    fn sweep(&self, tally: Tally<'_>) -> (usize, usize) {
        let next = || steal_until_decided(|| self.injector.steal(), tally);
        self.swept.sweep(self.injector.len(), next)
    }
}

/// Returns how many tasks came along with a steal: the worker's own deque was empty before.
pub(super) fn came_along(deque: &Worker<Task>) -> usize {
    deque.len().min(BATCH_LIMIT)
}
