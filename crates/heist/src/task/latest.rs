//! A task that is made anew again and again, such as the next poll of a future. Whoever waits for the whole can claim the latest
//! one while that is queued.
//!
//! The queue's side of the task owns what there is to be done, as that of every other task does. This is where the handle's side
//! is left. It gets here only when the task was pushed, and so counted: a thread that claims the task counts its end. By then
//! the task may have run, and the next one may be there. So the tasks are numbered, and a late handle is dropped.

use super::handle::TaskHandle;
use crate::sync::{Mutex, lock};

/// Where the handle of the latest task is left.
pub(crate) struct Latest(Mutex<Newest>);

struct Newest {
    /// The number of tasks that were made.
    number: u64,
    /// The handle of the newest one, when it was pushed, until another thread takes it. It may have started.
    handle: Option<TaskHandle<()>>,
}

/// The number of a task that is being pushed.
pub(crate) struct Next(u64);

impl Latest {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Newest { number: 0, handle: None }))
    }

    /// Begins a task, before it is pushed. The one before has started. There is one caller at a time.
    pub(crate) fn begin(&self) -> Next {
        let mut newest = lock(&self.0);
        newest.number += 1;
        let number = newest.number;
        let started = newest.handle.take();
        drop(newest);
        // Without the lock, because the slot of the task may be freed.
        drop(started);
        Next(number)
    }

    /// Leaves the handle of a task that was pushed, unless there is a newer one.
    pub(crate) fn leave(&self, Next(number): Next, handle: TaskHandle<()>) {
        let mut newest = lock(&self.0);
        let late =
            if newest.number == number { newest.handle.replace(handle) } else { Some(handle) };
        drop(newest);
        drop(late);
    }

    /// Takes the handle of the latest task, for a thread that waits for the whole. The task may have started.
    pub(crate) fn take(&self) -> Option<TaskHandle<()>> {
        lock(&self.0).handle.take()
    }
}
