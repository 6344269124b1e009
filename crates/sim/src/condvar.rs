//! A condition variable with the algorithm that `std` has on Linux.

use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering};
use crate::costs::Picos;
use crate::error::WaitsFor;
use crate::futex;
use crate::mutex::{LockResult, MutexGuard};
use crate::time::picos;

/// A condition variable for virtual threads. Each notification is a system call, also if nobody waits, as in `std`.
#[derive(Debug, Default)]
pub struct Condvar {
    /// The number of notifications.
    word: AtomicU32,
}

/// Whether a wait with a limit has ended because of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns whether it has.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Returns a condition variable for which nobody waits.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Unlocks the mutex, waits for a notification, and locks it again.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    ///
    /// # Panics
    ///
    /// Panics outside of a simulation.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        Ok(self.wait_until(guard, |_| None).0)
    }

    /// Like [`wait`](Self::wait), but not longer than this.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    ///
    /// # Panics
    ///
    /// Panics outside of a simulation.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let until = |now: Picos| Some(now.saturating_add(picos(limit)));
        let (guard, timed_out) = self.wait_until(guard, until);
        Ok((guard, WaitTimeoutResult(timed_out)))
    }

    /// Wakes one of the threads that wait.
    #[track_caller]
    pub fn notify_one(&self) {
        self.word.fetch_add(1, Ordering::Relaxed);
        futex::wake(&self.word, 1);
    }

    /// Wakes all threads that wait.
    #[track_caller]
    pub fn notify_all(&self) {
        self.word.fetch_add(1, Ordering::Relaxed);
        futex::wake(&self.word, usize::MAX);
    }

    #[track_caller]
    fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        until: impl FnOnce(Picos) -> Option<Picos>,
    ) -> (MutexGuard<'a, T>, bool) {
        // A notification that comes after the mutex is unlocked changes the word, and then nobody sleeps.
        let notifications = self.word.load(Ordering::Relaxed);
        let mutex = guard.mutex();
        drop(guard);
        let timed_out = futex::wait(&self.word, notifications, WaitsFor::Notification, until);
        (mutex.lock().unwrap_or_else(|never| never.into_inner()), timed_out)
    }
}
