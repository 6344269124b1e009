//! The queues of an engine (`crate::engine`): one growable deque for each thread, for its tasks and jobs in the
//! order in which they come; a broadcast queue for each thread; and an injector. A task leaves its queue only to run.

use std::iter;

use heist_deque::Injector;
use heist_deque::growable::{self, Stealer, Worker};

use super::injected::Injected;
use super::{Found, Lengths, Queues, RemoteLengths, steal_until_decided, to_found};
use crate::cluster::Clusters;
use crate::stats::Tally;
use crate::sync::{Mutex, lock};
use crate::task::Task;

pub(crate) struct Single {
    injector: Injector<Task>,
    /// For each worker, tasks that only that one may take.
    broadcasts: Box<[Injector<Task>]>,
    /// Tells for each worker whether it was abandoned, so that no thread will be this worker. Locked during a
    /// broadcast, so that all threads get broadcasts in the same order.
    absent: Mutex<Box<[bool]>>,
}

impl Queues for Single {
    type Own = Worker<Task>;
    type Reach = Stealer<Task>;
    /// There is none.
    type Shared = Injected;

    const PATIENT: bool = true;
    /// Enough that loops which follow each other within a few microseconds find all threads awake.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 128 };

    fn new(workers: usize, _: Clusters) -> Self {
        Self {
            injector: Injector::new(),
            broadcasts: (0..workers).map(|_| Injector::new()).collect(),
            absent: Mutex::new(vec![false; workers].into()),
        }
    }

    fn of_thread() -> (Self::Own, Self::Reach) {
        growable::new()
    }

    #[inline]
    fn push_local(&self, own: &Self::Own, task: Task, _: Tally<'_>) {
        own.push(task);
    }

    #[inline]
    fn push_remote(&self, _: usize, task: Task, _: Tally<'_>) {
        self.injector.push(task);
    }

    #[inline]
    fn pop(&self, own: &Self::Own, _: Tally<'_>) -> Option<Task> {
        own.pop()
    }

    fn push_job(&self, own: &Self::Own, job: Task, _: usize) {
        own.push(job);
    }

    fn push_job_remote(&self, job: Task, _: usize, _: Tally<'_>) {
        self.injector.push(job);
    }

    /// Returns nothing: there is only one deque per thread, and `pop` has tried it.
    fn pop_job(&self, _: &Self::Own) -> Option<Task> {
        None
    }

    fn take_back_job(&self, own: &Self::Own, is_it: impl Fn(&Task) -> bool) -> Option<Task> {
        let newest = own.pop()?;
        if is_it(&newest) {
            return Some(newest);
        }
        own.push(newest);
        None
    }

    fn steal_job(&self, from: &Self::Reach, tally: Tally<'_>) -> Found {
        to_found(from.steal(), 0, tally)
    }

    /// Returns nothing: what comes from outside is in the injector, in the order in which it came.
    fn steal_job_remote(&self, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn take_job(&self, _: &Self::Reach, _: usize, _: bool) -> Option<Task> {
        None
    }

    fn take_job_remote(&self, _: usize, _: bool) -> Option<Task> {
        None
    }

    fn has_job(&self, from: &Self::Reach) -> bool {
        !from.is_empty()
    }

    fn has_any(&self, from: &Self::Reach) -> bool {
        !from.is_empty()
    }

    fn has_remote(&self) -> bool {
        !self.injector.is_empty()
    }

    fn take_injected(&self, _: &Self::Own, tally: Tally<'_>) -> Found {
        to_found(self.injector.steal(), 0, tally)
    }

    /// Returns nothing: there is only one deque per thread, and `steal_job` has tried it.
    fn steal(&self, _: &Self::Own, _: &Self::Reach, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn steal_one(&self, _: &Self::Reach, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn take_one_injected(&self, _: usize, tally: Tally<'_>) -> Option<Task> {
        steal_until_decided(|| self.injector.steal(), tally)
    }

    fn lengths(&self, from: &Self::Reach) -> Lengths {
        Lengths { tasks: from.len(), parts: 0 }
    }

    fn remote_lengths(&self) -> RemoteLengths {
        RemoteLengths { injectors: vec![Some(self.injector.len())], ranked: [Some(0); 2], parts: 0 }
    }

    fn leave(&self, own: &Self::Own, _: Tally<'_>) {
        iter::from_fn(|| own.pop()).for_each(|task| self.injector.push(task));
    }

    fn broadcast(&self, tasks: impl Iterator<Item = Task>, sent: impl Fn(usize)) -> Vec<Task> {
        let mut left = Vec::new();
        let absent = lock(&self.absent);
        for (to, task) in tasks.enumerate() {
            if absent[to] {
                left.push(task);
            } else {
                sent(to);
                self.broadcasts[to].push(task);
            }
        }
        left
    }

    fn abandon_worker(&self, of: usize, tally: Tally<'_>) -> Vec<Task> {
        let mut absent = lock(&self.absent);
        absent[of] = true;
        iter::from_fn(|| self.pop_broadcast(of, tally)).collect()
    }

    fn pop_broadcast(&self, of: usize, tally: Tally<'_>) -> Option<Task> {
        steal_until_decided(|| self.broadcasts[of].steal(), tally)
    }

    fn has_broadcast(&self, of: usize) -> bool {
        !self.broadcasts[of].is_empty()
    }
}
