//! The queues of an engine (`crate::engine`): one growable deque for each thread, for its tasks and jobs in the
//! order in which they come; a broadcast queue for each thread; and an injector. A task leaves its queue only to run.

use std::iter;

use heist_deque::Injector;
use heist_deque::growable::{self, Stealer, Worker};

use super::{Found, Queues, steal_until_decided, to_found};
use crate::stats::Tally;
use crate::sync::{Mutex, lock};
use crate::task::Task;

/// The ends of a thread's queues that other threads use.
struct Reach {
    tasks: Stealer<Task>,
    /// Tasks that only this thread may take.
    broadcasts: Injector<Task>,
}

pub(crate) struct Single {
    injector: Injector<Task>,
    threads: Box<[Reach]>,
    /// Tells for each worker whether it was abandoned, so that no thread will be this worker. Locked during a
    /// broadcast, so that all threads get broadcasts in the same order.
    absent: Mutex<Box<[bool]>>,
}

impl Queues for Single {
    type Own = Worker<Task>;

    const STEALS: bool = true;
    const PATIENT: bool = true;
    /// Enough that loops which follow each other within a few microseconds find all threads awake.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 128 };

    fn new(workers: usize) -> (Self, Vec<Self::Own>) {
        let (own, threads): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let (own, tasks) = growable::new();
                (own, Reach { tasks, broadcasts: Injector::new() })
            })
            .unzip();
        let absent = Mutex::new(vec![false; workers].into());
        (Self { injector: Injector::new(), threads: threads.into(), absent }, own)
    }

    #[inline]
    fn push_local(&self, own: &Self::Own, task: Task, _: Tally<'_>) {
        own.push(task);
    }

    #[inline]
    fn push_remote(&self, task: Task, _: Tally<'_>) {
        self.injector.push(task);
    }

    #[inline]
    fn pop(&self, own: &Self::Own, _: Tally<'_>) -> Option<Task> {
        own.pop()
    }

    fn push_job(&self, own: &Self::Own, job: Task, _: Tally<'_>) -> Result<(), Task> {
        own.push(job);
        Ok(())
    }

    fn pop_job(&self, own: &Self::Own, _: Tally<'_>) -> Option<Task> {
        own.pop()
    }

    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Found {
        to_found(self.threads[victim].tasks.steal(), 0, tally)
    }

    fn has_job(&self, victim: usize) -> bool {
        !self.threads[victim].tasks.is_empty()
    }

    fn take_injected(&self, _: &Self::Own, tally: Tally<'_>) -> Found {
        to_found(self.injector.steal(), 0, tally)
    }

    /// Returns nothing: there is only one deque per thread, and `steal_job` has tried it.
    fn steal(&self, _: &Self::Own, _: usize, _: Tally<'_>) -> Found {
        Found::Nothing
    }

    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task> {
        steal_until_decided(|| self.injector.steal(), tally)
    }

    fn any(&self) -> bool {
        !self.injector.is_empty() || self.threads.iter().any(|thread| !thread.tasks.is_empty())
    }

    fn broadcast(&self, tasks: impl Iterator<Item = Task>, sent: impl Fn(usize)) -> Vec<Task> {
        let mut left = Vec::new();
        let absent = lock(&self.absent);
        for (to, task) in tasks.enumerate() {
            if absent[to] {
                left.push(task);
            } else {
                sent(to);
                self.threads[to].broadcasts.push(task);
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
        steal_until_decided(|| self.threads[of].broadcasts.steal(), tally)
    }

    fn has_broadcast(&self, of: usize) -> bool {
        !self.threads[of].broadcasts.is_empty()
    }
}
