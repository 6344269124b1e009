//! A task that is made anew again and again, such as the next poll of a future. Whoever waits for the whole can claim the latest
//! one while that is queued.
//!
//! The queue's side of the task owns what there is to be done, as that of every other task does. This is where the handle's side
//! is left. It gets here only when the task was pushed, and so counted: a thread that claims the task counts its end. By then
//! the task may have run, and the next one may be there. So the tasks are numbered, and a late handle is dropped.

use super::handle::TaskHandle;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Where the handle of the latest task is left.
pub(crate) struct Latest {
    /// The number of tasks that were made.
    ///
    /// Ordering: relaxed. One thread at a time makes a task, and only after the task before it has started.
    made: AtomicUsize,
    left: Mutex<Left>,
}

struct Left {
    /// The number of the newest task whose handle was left, or zero.
    number: usize,
    /// That handle, unless another thread has taken it. The task may have started.
    handle: Option<TaskHandle<()>>,
}

/// The number of a task that is being pushed.
pub(crate) struct Number(usize);

impl Latest {
    pub(crate) fn new() -> Self {
        let left = Mutex::new(Left { number: 0, handle: None });
        Self { made: AtomicUsize::new(0), left }
    }

    /// Returns the number of the next task, which is pushed afterwards. The task before it has started, and there is one caller at
    /// a time.
    pub(crate) fn next(&self) -> Number {
        let number = self.made.load(Ordering::Relaxed) + 1;
        self.made.store(number, Ordering::Relaxed);
        Number(number)
    }

    /// Leaves the handle of a task that was pushed, unless that of a newer one was left.
    pub(crate) fn leave(&self, Number(number): Number, handle: TaskHandle<()>) {
        let mut left = lock(&self.left);
        let old = if left.number < number {
            left.number = number;
            left.handle.replace(handle)
        } else {
            Some(handle)
        };
        drop(left);
        // Without the lock, because the slot of that task may be freed.
        drop(old);
    }

    /// Takes the handle of the latest task, for a thread that waits for the whole. The task may have started.
    pub(crate) fn take(&self) -> Option<TaskHandle<()>> {
        lock(&self.left).handle.take()
    }
}
