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

use std::array;
use std::cell::Cell;
use std::iter;
use std::ptr::NonNull;

use crate::fork::demand::Demand;
use crate::fork::job::Jobs;
use crate::fork::private::{PrivateTasks, Stack};
use crate::sync::{HeavyFence, Mutex, MutexGuard, TryLockError, heavy_fence_state, lock};
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

/// What a thief has taken.
pub(crate) enum Raided {
    /// A second half of a join, which is a task from now on.
    Job(Task),
    /// A part of a scope, or a private task and the next ones.
    Tasks(Task, More),
}

/// What a thief takes beyond the task that it runs, the oldest first. A raid allocates nothing.
#[derive(Default)]
pub(crate) struct More([Option<Task>; MOST_MORE]);

impl More {
    /// Takes at most that many tasks, until there is none.
    fn take(count: usize, take: impl FnMut() -> Option<Task>) -> Self {
        let mut more = Self::default();
        let taken = iter::from_fn(take).take(count);
        more.0.iter_mut().zip(taken).for_each(|(place, task)| *place = Some(task));
        more
    }

    /// The number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }
}

impl IntoIterator for More {
    type Item = Task;
    type IntoIter = iter::Flatten<array::IntoIter<Option<Task>, MOST_MORE>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

/// The largest number of tasks that a thief takes beyond the one that it runs.
const MOST_MORE: usize = if cfg!(any(loom, shuttle)) { 1 } else { 15 };

/// Takes a private job of that thread, or private tasks, if it has any. With `seen`, it takes nothing from a thread that has
/// kept a few of them and goes on to look at its demand, and sets `seen`.
pub(crate) fn raid(demand: &Demand, seen: Option<&Cell<bool>>) -> Option<Raided> {
    if heavy_fence_state() != HeavyFence::Ready {
        return None;
    }
    // If the lock is taken, another thief or the owner is moving the border.
    let guard = demand.chain.as_ref()?.try_guard()?;
    let jobs = guard.jobs()?;
    let tasks = demand.tasks.as_deref();
    if let Some(seen) = seen.filter(|_| demand.take_seen()) {
        seen.set(true);
        return None;
    }
    if !jobs.seem_private() && !tasks.is_some_and(PrivateTasks::any) {
        return None;
    }
    if !demand.may_be_raided() {
        return None;
    }
    demand.announce_raid();
    // SAFETY: this thread holds the lock, the raid was announced, and a thread puts its jobs only into the chain of
    // the worker that it is, whose number is in the same demand.
    if let Some(job) = unsafe { jobs.publish_of_another(demand.worker) } {
        return Some(Raided::Job(job));
    }
    let PrivateTasks { parts, tasks } = tasks?;
    // SAFETY: this thread holds the lock of that demand, and has announced the raid since.
    let oldest = |stack: &Stack| unsafe { stack.take_oldest(&guard) };
    // One part only: a part that is on its way to the thief's lane would be out of reach of those who wait for it.
    if let Some(part) = oldest(parts) {
        return Some(Raided::Tasks(part, More::default()));
    }
    let first = oldest(tasks)?;
    // Half of them, as in a steal.
    Some(Raided::Tasks(first, More::take(tasks.len() / 2, || oldest(tasks))))
}

/// Takes the oldest private job of that thread, if it seems to be of that root. Returns it together with its root, which may be
/// another one after all.
pub(crate) fn raid_job(demand: &Demand, root: usize) -> Option<(Task, usize)> {
    if heavy_fence_state() != HeavyFence::Ready {
        return None;
    }
    let guard = demand.chain.as_ref()?.try_guard()?;
    let jobs = guard.jobs()?;
    // What other threads want of an older root is none of the caller's business, and no reason to interrupt anybody.
    if !jobs.seem_private() || jobs.root_of_oldest() != root || !demand.may_be_raided() {
        return None;
    }
    demand.announce_raid();
    // SAFETY: this thread holds the lock, the raid was announced, and a thread puts its jobs only into the chain of
    // the worker that it is, whose number is in the same demand.
    let job = unsafe { jobs.publish_of_another(demand.worker) }?;
    // The border has just passed the job, and does not move while this thread holds the lock.
    Some((job, jobs.root_of_oldest()))
}

/// Returns whether that thread may have private jobs or tasks. The caller has passed a heavy fence.
pub(crate) fn may_raid(demand: &Demand) -> bool {
    let Some(chain) = &demand.chain else { return false };
    let Some(guard) = chain.try_guard() else { return true };
    guard.jobs().is_some_and(Jobs::seem_private)
        || demand.tasks.as_deref().is_some_and(PrivateTasks::any)
}
