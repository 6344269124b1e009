//! The global queue: one queue with one mutex for all workers, first in, first out.

use std::collections::VecDeque;

use super::{Found, Queues};
use crate::stats::Tally;
use crate::sync::{Mutex, MutexGuard, TryLockError, lock};
use crate::task::Task;

/// A queue with a mutex. It counts how often the mutex was contended.
pub(super) struct Queue(Mutex<VecDeque<Task>>);

impl Queue {
    pub(super) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

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

    pub(super) fn push(&self, task: Task, tally: Tally<'_>) {
        self.lock(tally).push_back(task);
    }

    pub(super) fn pop(&self, tally: Tally<'_>) -> Option<Task> {
        self.lock(tally).pop_front()
    }

    /// Removes the newest task, if `is_it` says so.
    fn take_back(&self, is_it: impl Fn(&Task) -> bool, tally: Tally<'_>) -> Option<Task> {
        let mut tasks = self.lock(tally);
        if tasks.back().is_some_and(is_it) { tasks.pop_back() } else { None }
    }

    pub(super) fn any(&self) -> bool {
        !lock(&self.0).is_empty()
    }
}

pub(crate) struct Global {
    tasks: Queue,
    /// Published jobs of joins and scopes. They have a queue of their own, so that a thread which waits for a part of
    /// a fork finds other parts.
    jobs: Queue,
}

impl Queues for Global {
    type Own = ();

    const STEALS: bool = false;
    const PATIENT: bool = false;

    fn new(workers: usize) -> (Self, Vec<()>) {
        (Self { tasks: Queue::new(), jobs: Queue::new() }, vec![(); workers])
    }

    fn push_local(&self, _: &(), task: Task, tally: Tally<'_>) {
        self.tasks.push(task, tally);
    }

    fn push_remote(&self, task: Task, tally: Tally<'_>) {
        self.tasks.push(task, tally);
    }

    fn pop(&self, _: &(), _: Tally<'_>) -> Option<Task> {
        None
    }

    fn take_back(&self, _: &(), is_it: impl Fn(&Task) -> bool, tally: Tally<'_>) -> Option<Task> {
        self.tasks.take_back(is_it, tally)
    }

    fn push_job(&self, _: &(), job: Task, tally: Tally<'_>) -> Result<(), Task> {
        self.jobs.push(job, tally);
        Ok(())
    }

    /// Takes the newest job of the whole queue. The one that the worker has published last is that one, or close to
    /// it.
    fn pop_job(&self, _: &(), tally: Tally<'_>) -> Option<Task> {
        self.jobs.lock(tally).pop_back()
    }

    fn take_back_job(
        &self,
        _: &(),
        is_it: impl Fn(&Task) -> bool,
        tally: Tally<'_>,
    ) -> Option<Task> {
        self.jobs.take_back(is_it, tally)
    }

    fn steal_job(&self, _: usize, tally: Tally<'_>) -> Found {
        self.jobs.pop(tally).map_or(Found::Nothing, |job| Found::Task(job, 0))
    }

    fn has_job(&self, _: usize) -> bool {
        self.jobs.any()
    }

    fn take_injected(&self, _: &(), tally: Tally<'_>) -> Found {
        let oldest = self.tasks.pop(tally).or_else(|| self.jobs.pop(tally));
        oldest.map_or(Found::Nothing, |task| Found::Task(task, 0))
    }

    fn steal(&self, _: &(), _: usize, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task> {
        self.tasks.pop(tally)
    }

    fn any(&self) -> bool {
        self.tasks.any() || self.jobs.any()
    }
}
