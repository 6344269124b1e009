//! FIFO order for what is spawned with the `_fifo` functions: a queue beside the engine's.
//!
//! The engine runs the newest job first. For each job in a FIFO queue the engine therefore gets a
//! placeholder, and a placeholder that runs takes the oldest job of the queue. There are as many
//! placeholders as jobs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A closure that waits in a queue.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A FIFO queue of jobs. One thread pushes, any thread pops. It allocates nothing before it is used.
#[derive(Default)]
pub(crate) struct Fifo(Mutex<VecDeque<Job>>);

impl Fifo {
    /// Returns a queue for each of `threads` threads.
    pub(crate) fn for_each(threads: usize) -> Box<[Self]> {
        (0..threads).map(|_| Self::default()).collect()
    }

    /// Adds a job. The caller gives the placeholder to the engine afterwards.
    pub(crate) fn push(&self, job: Job) {
        lock(&self.0).push_back(job);
    }

    /// Takes the oldest job. A placeholder calls this, so there is a job.
    pub(crate) fn pop(&self) -> Job {
        lock(&self.0).pop_front().expect("there is a job for every placeholder")
    }
}

/// Locks a mutex, even if it is poisoned: no user code runs under the locks of this crate, so a panic
/// leaves the data intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Boxes a closure and erases the lifetime of what it borrows.
///
/// # Safety
///
/// The job is called or dropped while everything that it borrows is alive.
pub(crate) unsafe fn erase_lifetime<'a>(job: impl FnOnce() + Send + 'a) -> Job {
    let job: Box<dyn FnOnce() + Send + 'a> = Box::new(job);
    // SAFETY: the types differ only in the lifetime, and the caller guarantees that it is long enough.
    unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'a>, Job>(job) }
}
