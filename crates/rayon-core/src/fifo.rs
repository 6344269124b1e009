//! First in, first out, for those who ask for it: a queue beside the engine's.
//!
//! The engine runs the newest first. So for each entry of the queue it is given a stand-in, and whichever of these
//! comes to run takes the oldest entry. There are as many of the one as of the other.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A closure that waits for its turn.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Filled by one thread, emptied by any. Costs nothing before it is used.
#[derive(Default)]
pub(crate) struct Fifo(Mutex<VecDeque<Job>>);

impl Fifo {
    /// One for each of so many threads.
    pub(crate) fn for_each(threads: usize) -> Box<[Self]> {
        (0..threads).map(|_| Self::default()).collect()
    }

    /// Called before its stand-in is given to the engine.
    pub(crate) fn push(&self, job: Job) {
        lock(&self.0).push_back(job);
    }

    /// The oldest. Called by a stand-in, so there is one.
    pub(crate) fn pop(&self) -> Job {
        lock(&self.0).pop_front().expect("an entry for every stand-in")
    }
}

/// No code of the user's runs under any of our locks, so a poisoned one is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets for how long a closure borrows.
///
/// # Safety
///
/// It is called, or dropped, before what it borrows is gone.
pub(crate) unsafe fn boxed<'a>(job: impl FnOnce() + Send + 'a) -> Job {
    let job: Box<dyn FnOnce() + Send + 'a> = Box::new(job);
    // SAFETY: only the lifetime differs, and the caller sees to that.
    unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'a>, Job>(job) }
}
