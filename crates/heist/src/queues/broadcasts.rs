//! The broadcast queues of a pool: for each worker, tasks that only that worker may take.

use std::collections::VecDeque;

use crate::sync::{AtomicUsize, Mutex, Ordering, Padded, lock};
use crate::task::Task;

pub(crate) struct Broadcasts {
    /// The number of tasks in all queues, which is zero as a rule. Changed under the lock of the queue. Padded, because every
    /// worker reads it whenever its own queues are empty.
    ///
    /// Ordering: relaxed. A worker that must not miss a task has passed a fence, and so has the thread that has pushed it:
    /// see `idle/README.md`, step P5.
    waiting: Padded<AtomicUsize>,
    /// By the number of the worker.
    queues: Box<[Mutex<VecDeque<Task>>]>,
}

impl Broadcasts {
    pub(crate) fn new(workers: usize) -> Self {
        let queues = (0..workers).map(|_| Mutex::new(VecDeque::new())).collect();
        Self { waiting: Padded(AtomicUsize::new(0)), queues }
    }

    /// Adds a task for that worker.
    pub(crate) fn push(&self, to: usize, task: Task) {
        let mut queue = lock(&self.queues[to]);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        queue.push_back(task);
    }

    /// Removes the oldest task for that worker.
    #[inline]
    pub(crate) fn pop(&self, of: usize) -> Option<Task> {
        if self.waiting.load(Ordering::Relaxed) == 0 { None } else { self.pop_locked(of) }
    }

    #[cold]
    fn pop_locked(&self, of: usize) -> Option<Task> {
        let mut queue = lock(&self.queues[of]);
        let task = queue.pop_front()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }

    /// Returns whether there is a task for that worker.
    pub(crate) fn any(&self, of: usize) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0 && !lock(&self.queues[of]).is_empty()
    }
}
