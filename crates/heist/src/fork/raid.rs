//! Raids: a thief takes a private job from a thread that does not look at its demand.
//!
//! A thread that has private jobs sees at its next fork, or at the end of one, that they are wanted. Until then it
//! may be busy for long, or wait for something that only the other half of a fork provides. So a thief that has
//! waited long enough takes a job itself.
//!
//! This costs the owner nothing. The owner changes its chain and then looks at its demand, with nothing but the
//! compiler's order in between. The thief announces itself in that demand and then looks at the chain, with a fence in
//! between that the owner passes as well, wherever it is ([`heavy_fence`](crate::sync::heavy_fence)). So either
//! the owner sees the thief and waits for the lock, or the thief sees the chain as the owner has left it.

use std::ptr::NonNull;

use crate::fork::demand::Demand;
use crate::fork::job::Jobs;
use crate::sync::{Mutex, MutexGuard, TryLockError, lock};
use crate::task::Task;

/// A pointer to the private jobs of a thread, and the lock that a thief or the owner holds while it moves the
/// border.
#[derive(Default)]
pub(crate) struct Chain(Mutex<Place>);

#[derive(Default)]
struct Place(Option<NonNull<Jobs>>);

// SAFETY: the fields of `Jobs` that other threads touch are atomic, or guarded as the module's documentation says.
unsafe impl Send for Place {}

impl Chain {
    /// Sets the jobs of the calling thread, which begins to use the demand of its place.
    pub(crate) fn put(&self, jobs: &Jobs) {
        lock(&self.0).0 = Some(NonNull::from(jobs));
    }

    /// Removes the jobs of the calling thread, which stops using that demand.
    pub(crate) fn remove(&self) {
        lock(&self.0).0 = None;
    }

    /// Locks the chain for the owner, while it moves the border.
    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(lock(&self.0))
    }

    fn try_guard(&self) -> Option<Guard<'_>> {
        match self.0.try_lock() {
            Ok(guard) => Some(Guard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Holds the lock of a chain.
pub(crate) struct Guard<'c>(MutexGuard<'c, Place>);

impl Guard<'_> {
    /// Returns the jobs of the thread in that place, if there is one.
    fn jobs(&self) -> Option<&Jobs> {
        // SAFETY: the jobs are in a thread-local of the thread in that place. That thread removes the pointer
        // under the lock, which this guard holds, before it ends (`job::close`).
        self.0.0.map(|jobs| unsafe { jobs.as_ref() })
    }
}

/// Takes a private job of that thread, if it has one, and publishes it for the caller.
pub(crate) fn raid(demand: &Demand) -> Option<Task> {
    // If the lock is taken, another thief or the owner is moving the border.
    let guard = demand.chain.as_ref()?.try_guard()?;
    let jobs = guard.jobs()?;
    if !jobs.seem_private() {
        return None;
    }
    demand.announce_raid();
    // SAFETY: this thread holds the lock, the raid was announced, and a thread puts its jobs only into the chain of
    // the worker that it is, whose number is in the same demand.
    unsafe { jobs.publish_of_another(demand.worker) }
}

/// Returns whether that thread may have private jobs. The caller has passed a heavy fence.
pub(crate) fn may_raid(demand: &Demand) -> bool {
    let Some(chain) = &demand.chain else { return false };
    chain.try_guard().is_none_or(|guard| guard.jobs().is_some_and(Jobs::seem_private))
}
