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
    /// How many claims a thread makes between two sweeps: as many as there were tasks after the last one, so that a
    /// sweep costs little for each claim.
    ///
    /// Ordering: relaxed. It only says when to take the lock.
    interval: AtomicUsize,
}

impl Swept {
    pub(crate) fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            tasks: Mutex::new(VecDeque::new()),
            interval: AtomicUsize::new(FEWEST),
        }
    }

    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
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

    /// Sweeps, if the calling thread has claimed enough tasks since it last did: `next` takes the oldest task out of the
    /// injector, which has `injected` of them. Returns whether it did.
    ///
    /// A thread that is about to sleep and looks at the wrong moment finds neither an entry in the injector nor one here.
    /// The calling thread has a task to run, and announces what it has moved, as if it had pushed it.
    #[inline]
    pub(crate) fn sweep(
        &self,
        claims: usize,
        injected: usize,
        next: impl Fn() -> Option<Task>,
    ) -> bool {
        if claims < self.interval.load(Ordering::Relaxed) {
            return false;
        }
        let mut tasks = lock(&self.tasks);
        self.len.store(tasks.len() + 1, Ordering::Relaxed);
        tasks.retain(|task| !task.is_stale());
        let taken = std::iter::from_fn(next).take(injected);
        tasks.extend(taken.filter(|task| !task.is_stale()));
        self.len.store(tasks.len(), Ordering::Relaxed);
        self.interval.store(tasks.len().max(FEWEST), Ordering::Relaxed);
        true
    }
}
