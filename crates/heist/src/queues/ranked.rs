//! The queues for tasks whose priority is not the normal one: one for each such priority, for the whole pool.

use crate::priority::Rank;
use crate::stats::Tally;
use crate::sync::{AtomicUsize, Ordering, Padded};
use crate::task::Task;

/// A queue that all threads share, first in, first out.
pub(crate) trait SharedQueue {
    fn new() -> Self;

    /// Pushes a task. Returns how many stale entries were dropped for it.
    fn push(&self, task: Task, tally: Tally<'_>) -> usize;

    /// Removes the oldest task.
    fn pop(&self, tally: Tally<'_>) -> Option<Task>;

    /// Returns whether there is a task.
    fn any(&self) -> bool;

    /// Returns the number of tasks, unless another thread is in the way. It is only shown.
    fn len(&self) -> Option<usize>;

    /// May drop stale entries. Returns how many, and how many entries are left.
    fn sweep(&self, _: Tally<'_>) -> (usize, usize) {
        (0, 0)
    }
}

/// The tasks of a pool that are of high and of low priority.
pub(crate) struct Ranked<S> {
    /// At least the number of entries in both queues, which is zero as a rule. It is raised before a task is pushed and lowered
    /// after one was removed. Padded, because every worker reads it for every task.
    ///
    /// Ordering: relaxed. A worker that must not miss a task has passed a fence, and so has the thread that has pushed it:
    /// see `idle/README.md`, steps P1 to P4. Such a worker also looks at the queues themselves: if it took the number for a
    /// task, it would look again and again while a thread is interrupted between the two steps.
    waiting: Padded<AtomicUsize>,
    high: S,
    low: S,
}

impl<S: SharedQueue> Ranked<S> {
    pub(crate) fn new() -> Self {
        Self { waiting: Padded(AtomicUsize::new(0)), high: S::new(), low: S::new() }
    }

    fn of(&self, rank: Rank) -> &S {
        match rank {
            Rank::High => &self.high,
            Rank::Low => &self.low,
        }
    }

    /// Returns whether there may be a task. If not, there is none.
    #[inline(always)]
    pub(crate) fn may_have(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Returns whether there is a task.
    pub(crate) fn any(&self) -> bool {
        self.may_have() && (self.high.any() || self.low.any())
    }

    pub(crate) fn push(&self, rank: Rank, task: Task, tally: Tally<'_>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let dropped = self.of(rank).push(task, tally);
        self.count_removed(dropped);
    }

    /// Removes the oldest task of that priority.
    pub(crate) fn pop(&self, rank: Rank, tally: Tally<'_>) -> Option<Task> {
        let task = self.of(rank).pop(tally)?;
        self.count_removed(1);
        Some(task)
    }

    /// Drops stale entries, and returns how many entries are left.
    pub(crate) fn sweep(&self, tally: Tally<'_>) -> usize {
        let (dropped_high, high) = self.high.sweep(tally);
        let (dropped_low, low) = self.low.sweep(tally);
        self.count_removed(dropped_high + dropped_low);
        high + low
    }

    /// Returns the number of tasks of high and of low priority, unless another thread is in the way.
    pub(crate) fn lengths(&self) -> [Option<usize>; 2] {
        [self.high.len(), self.low.len()]
    }

    fn count_removed(&self, count: usize) {
        if count > 0 {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
        }
    }
}
