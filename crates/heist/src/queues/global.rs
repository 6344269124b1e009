//! The global queue: one queue with one mutex for all workers, first in, first out.

use std::collections::VecDeque;

use super::{
    Broadcasts, Found, Lane, Lengths, Queues, Ranked, RemoteLengths, SharedQueue,
    steal_between_lanes, steal_from_lane,
};
use crate::cluster::Clusters;
use crate::stats::Tally;
use crate::sync::{Arc, Mutex, MutexGuard, TryLockError, lock, try_lock};
use crate::task::Task;

/// A queue with a mutex. It counts how often the mutex was contended.
pub(crate) struct Queue(Mutex<VecDeque<Task>>);

impl Queue {
    fn lock(&self, tally: Tally<'_>) -> MutexGuard<'_, VecDeque<Task>> {
        match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                tally.one(|block| &block.lock_contention);
                lock(&self.0)
            }
        }
    }

    /// Removes the newest task, if `is_it` says so.
    fn take_back(&self, is_it: impl Fn(&Task) -> bool, tally: Tally<'_>) -> Option<Task> {
        let mut tasks = self.lock(tally);
        if tasks.back().is_some_and(is_it) { tasks.pop_back() } else { None }
    }
}

impl SharedQueue for Queue {
    fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    fn push(&self, task: Task, tally: Tally<'_>) -> usize {
        let mut tasks = self.lock(tally);
        let dropped =
            if tasks.len() == tasks.capacity() { make_room(&mut tasks, Task::is_stale) } else { 0 };
        tasks.push_back(task);
        dropped
    }

    fn pop(&self, tally: Tally<'_>) -> Option<Task> {
        self.lock(tally).pop_front()
    }

    fn any(&self) -> bool {
        !lock(&self.0).is_empty()
    }

    fn len(&self) -> Option<usize> {
        try_lock(&self.0).map(|tasks| tasks.len())
    }
}

/// Drops the stale entries of a full queue, and lets it grow if that leaves it more than half full. So stale entries never
/// make it grow, and their number is bounded by the number of the other tasks. Returns how many were dropped.
#[cold]
pub(super) fn make_room<T>(entries: &mut VecDeque<T>, is_stale: impl Fn(&T) -> bool) -> usize {
    let full = entries.len();
    entries.retain(|entry| !is_stale(entry));
    let left = entries.len();
    if left > full / 2 {
        entries.reserve(full);
    }
    full - left
}

pub(crate) struct Global {
    tasks: Queue,
    /// Parts of running tasks that came from outside.
    outside: Lane,
    broadcasts: Broadcasts,
    ranked: Ranked<Queue>,
}

/// The only queue that each thread has of its own is its lane.
impl Queues for Global {
    type Own = Arc<Lane>;
    type Reach = Arc<Lane>;
    type Shared = Queue;

    const PATIENT: bool = false;

    fn new(workers: usize, _: Clusters) -> Self {
        let broadcasts = Broadcasts::new(workers);
        Self { tasks: Queue::new(), outside: Lane::new(), broadcasts, ranked: Ranked::new() }
    }

    fn of_thread() -> (Arc<Lane>, Arc<Lane>) {
        let lane = Arc::new(Lane::new());
        (Arc::clone(&lane), lane)
    }

    fn push_local(&self, _: &Arc<Lane>, task: Task, tally: Tally<'_>) {
        self.tasks.push(task, tally);
    }

    fn push_remote(&self, _: usize, task: Task, tally: Tally<'_>) {
        self.tasks.push(task, tally);
    }

    #[inline(always)]
    fn ranked(&self) -> Option<&Ranked<Self::Shared>> {
        Some(&self.ranked)
    }

    fn pop(&self, _: &Arc<Lane>, _: Tally<'_>) -> Option<Task> {
        None
    }

    fn take_back(
        &self,
        _: &Arc<Lane>,
        is_it: impl Fn(&Task) -> bool,
        tally: Tally<'_>,
    ) -> Option<Task> {
        self.tasks.take_back(is_it, tally)
    }

    fn push_job(&self, own: &Arc<Lane>, job: Task, group: usize) {
        own.push(job, group);
    }

    fn push_jobs(&self, own: &Arc<Lane>, jobs: &mut dyn Iterator<Item = Task>, group: usize) {
        own.push_all(jobs, group);
    }

    fn push_job_remote(&self, job: Task, group: usize, _: Tally<'_>) {
        self.outside.push(job, group);
    }

    fn pop_job(&self, own: &Arc<Lane>) -> Option<Task> {
        own.pop()
    }

    fn take_back_job(&self, own: &Arc<Lane>, is_it: impl Fn(&Task) -> bool) -> Option<Task> {
        own.pop_if(is_it)
    }

    fn steal_job(&self, from: &Arc<Lane>, tally: Tally<'_>) -> Found {
        steal_from_lane(from, tally)
    }

    fn has_far_part(&self, from: &Arc<Lane>) -> bool {
        from.has_far_part()
    }

    fn has_many_jobs(&self, from: &Arc<Lane>) -> bool {
        from.has_many()
    }

    fn steal_jobs(&self, own: &Arc<Lane>, from: &Arc<Lane>, tally: Tally<'_>) -> Found {
        steal_between_lanes(own, from, tally)
    }

    fn steal_job_remote(&self, tally: Tally<'_>) -> Found {
        steal_from_lane(&self.outside, tally)
    }

    fn take_job(&self, from: &Arc<Lane>, group: usize, waits: bool) -> Option<Task> {
        from.take(group, waits)
    }

    fn take_job_remote(&self, group: usize, waits: bool) -> Option<Task> {
        self.outside.take(group, waits)
    }

    fn has_job(&self, from: &Arc<Lane>) -> bool {
        from.any()
    }

    fn has_any(&self, from: &Arc<Lane>) -> bool {
        from.any()
    }

    fn has_remote(&self) -> bool {
        self.tasks.any() || self.outside.any() || self.ranked.any()
    }

    fn take_injected(&self, _: &Arc<Lane>, tally: Tally<'_>) -> Found {
        self.tasks.pop(tally).map_or(Found::Nothing, |task| Found::Task(task, 0))
    }

    fn steal(&self, _: &Arc<Lane>, _: &Arc<Lane>, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn steal_one(&self, _: &Arc<Lane>, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn take_one_injected(&self, _: usize, tally: Tally<'_>) -> Option<Task> {
        self.tasks.pop(tally)
    }

    #[inline(always)]
    fn broadcasts(&self) -> Option<&Broadcasts> {
        Some(&self.broadcasts)
    }

    fn lengths(&self, from: &Arc<Lane>) -> Lengths {
        Lengths { tasks: 0, parts: from.len() }
    }

    fn remote_lengths(&self) -> RemoteLengths {
        RemoteLengths {
            injectors: vec![self.tasks.len()],
            ranked: self.ranked.lengths(),
            parts: self.outside.len(),
        }
    }

    fn leave(&self, _: &Arc<Lane>, _: Tally<'_>) {}
}
