//! The older part of an injector: what is left of it after stale entries were dropped.
//!
//! A task that is claimed by its handle leaves a stale entry in its queue, which is dropped when it comes out. That may
//! take for ever: tasks that wait for tasks from outside, again and again, may keep all workers from ever looking into
//! the injector. So after many claims a thread *sweeps*: it takes all entries out of the injector, drops the stale ones,
//! and keeps the others here, in their order. They are taken before those in the injector.

use std::collections::VecDeque;

use super::FEWEST;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::task::Task;

pub(crate) struct Swept {
    /// The number of tasks, for looks without the lock. Written under the lock. One more while a sweep goes on, so that
    /// other threads wait for the older tasks instead of taking newer ones.
    ///
    /// Ordering: relaxed. A thread that must not miss a task has passed a fence, and so has the thread that has pushed
    /// it. The sweep is not missed either: see [`sweep`](Self::sweep).
    len: AtomicUsize,
    tasks: Mutex<VecDeque<Task>>,
}

/// How many claims a thread makes between two sweeps of all injectors: as many as there were tasks after the last one, so
/// that a sweep costs little for each claim.
pub(crate) struct Interval(AtomicUsize);

/// Ordering: relaxed, for both accesses. It only says when to take the locks.
impl Interval {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(FEWEST))
    }

    /// Returns whether a thread that has claimed that many tasks since it last swept has to sweep.
    #[inline]
    pub(crate) fn is_over(&self, claims: usize) -> bool {
        claims >= self.0.load(Ordering::Relaxed)
    }

    /// Begins with the next one, after a sweep that has left that many tasks.
    pub(crate) fn begin(&self, left: usize) {
        self.0.store(left.max(FEWEST), Ordering::Relaxed);
    }
}

impl Swept {
    pub(crate) fn new() -> Self {
        Self { len: AtomicUsize::new(0), tasks: Mutex::new(VecDeque::new()) }
    }

    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
    }

    /// Returns the number of tasks. It may be a moment old, or one more.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Removes the oldest task.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Task> {
        if self.any() { self.pop_locked() } else { None }
    }

    #[cold]
    fn pop_locked(&self) -> Option<Task> {
        let mut tasks = lock(&self.tasks);
        let oldest = tasks.pop_front();
        self.len.store(tasks.len(), Ordering::Relaxed);
        oldest
    }

    /// Sweeps: `next` takes the oldest task out of the injector, which has `injected` of them. Returns how many stale entries
    /// were dropped, and how many tasks are left.
    ///
    /// A thread that is about to sleep and looks at the wrong moment finds neither an entry in the injector nor one here.
    /// The calling thread has a task to run, and announces what it has moved, as if it had pushed it.
    pub(crate) fn sweep(&self, injected: usize, next: impl Fn() -> Option<Task>) -> (usize, usize) {
        let mut tasks = lock(&self.tasks);
        self.len.store(tasks.len() + 1, Ordering::Relaxed);
        let mut seen = tasks.len();
        tasks.retain(|task| !task.is_stale());
        let taken = std::iter::from_fn(next).take(injected).inspect(|_| seen += 1);
        tasks.extend(taken.filter(|task| !task.is_stale()));
        self.len.store(tasks.len(), Ordering::Relaxed);
        (seen - tasks.len(), tasks.len())
    }
}
