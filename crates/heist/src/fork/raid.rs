//! Taking a private job from a thread that does not look.
//!
//! A thread that has private jobs sees at its next fork, or at the end of one, that somebody wants them. Until then it
//! may be busy for long, or wait for what only the other half of a fork can bring. So a thief that has waited long enough
//! helps itself. The owner's side of that costs nothing: it changes its chain and then looks at its demand, with no more
//! than the compiler's order in between; the thief announces itself in that demand and then looks at the chain, with
//! a fence in between that the owner passes too, wherever it is ([`heavy_fence`](crate::sync::heavy_fence)). So either
//! the owner sees the thief, and waits for the lock; or the thief sees the chain as the owner has left it.

use std::ptr::NonNull;

use crate::fork::demand::Demand;
use crate::fork::job::Jobs;
use crate::sync::{Mutex, MutexGuard, TryLockError, lock};
use crate::task::Task;

/// Where the private jobs of the thread in a core are, and a lock for whoever moves the border: a thief, or the owner.
#[derive(Default)]
pub(crate) struct Chain(Mutex<Place>);

#[derive(Default)]
struct Place(Option<NonNull<Jobs>>);

// SAFETY: what of it is touched by other threads is atomic, or guarded as the module says.
unsafe impl Send for Place {}

impl Chain {
    /// The thread that calls has the core.
    pub(crate) fn put(&self, jobs: &Jobs) {
        lock(&self.0).0 = Some(NonNull::from(jobs));
    }

    /// It has not any more.
    pub(crate) fn remove(&self) {
        lock(&self.0).0 = None;
    }

    /// For the owner, while it moves the border.
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

pub(crate) struct Guard<'c>(MutexGuard<'c, Place>);

impl Guard<'_> {
    /// Of the thread in the core, if there is one.
    fn jobs(&self) -> Option<&Jobs> {
        // SAFETY: it is taken out, with the lock, before the thread ends.
        self.0.0.map(|jobs| unsafe { jobs.as_ref() })
    }
}

/// A private job of the thread in that core, if it has one, published for whoever asks.
pub(crate) fn raid(demand: &Demand) -> Option<Task> {
    // Otherwise somebody else is at it.
    let guard = demand.chain.as_ref()?.try_guard()?;
    let jobs = guard.jobs()?;
    if !jobs.seem_private() {
        return None;
    }
    demand.announce_raid();
    // SAFETY: with the lock, and announced.
    unsafe { jobs.publish_of_another(demand.worker) }
}

/// Has the thread in that core private jobs, or may it have? After a heavy fence.
pub(crate) fn may_raid(demand: &Demand) -> bool {
    let Some(chain) = &demand.chain else { return false };
    chain.try_guard().is_none_or(|guard| guard.jobs().is_some_and(Jobs::seem_private))
}
