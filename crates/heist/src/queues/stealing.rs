//! Work stealing: a lock-free deque for each worker, and an injector for work from outside.

use heist_deque::bounded::{self, Stealer, Worker};
use heist_deque::facade::Watched;
use heist_deque::{BATCH_LIMIT, Full, Injector};

use super::{Found, Queues, steal_until_decided, to_found};
use crate::stats::Tally;
use crate::task::Task;

/// The number of tasks that a worker's deque holds. When it is full, half of it goes to the injector. A guess:
/// enough that a tree of tasks never fills it, and small enough to stay in the nearest cache.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const CAPACITY: usize = 256;
/// Small, so that a checker sees a full deque.
#[cfg(any(loom, shuttle))]
pub(crate) const CAPACITY: usize = 4;

/// The ends of a worker's queues that other workers use.
struct Reach {
    tasks: Stealer<Task>,
    jobs: Stealer<Task>,
}

pub(crate) struct Stealing {
    injector: Injector<Task>,
    workers: Box<[Reach]>,
}

pub(crate) struct Own {
    deque: Worker<Task>,
    /// The thieves' end of the same deque: an overflow takes the oldest tasks.
    stealer: Stealer<Task>,
    /// Published jobs of the worker's joins and scopes.
    jobs: Worker<Task>,
}

impl Queues for Stealing {
    type Own = Own;

    const STEALS: bool = true;
    const PATIENT: bool = true;

    fn new(workers: usize) -> (Self, Vec<Own>) {
        let deque = || bounded::new(CAPACITY).expect("a power of two, and memory for it");
        let (own, workers): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let ((deque, stealer), (jobs, thiefs_end)) = (deque(), deque());
                let reach = Reach { tasks: stealer.clone(), jobs: thiefs_end };
                (Own { deque, stealer, jobs }, reach)
            })
            .unzip();
        (Self { injector: Injector::new(), workers: workers.into() }, own)
    }

    #[inline]
    fn push_local(&self, own: &Own, task: Task, tally: Tally<'_>) {
        if let Err(Full(task)) = own.deque.push(task) {
            self.overflow(own, task, tally);
        }
    }

    #[inline]
    fn push_remote(&self, task: Task, _: Tally<'_>) {
        self.injector.push(task);
    }

    #[inline]
    fn pop(&self, own: &Own, _: Tally<'_>) -> Option<Task> {
        own.deque.pop()
    }

    fn push_job(&self, own: &Own, job: Task, _: Tally<'_>) -> Result<(), Task> {
        own.jobs.push(job).map_err(|Full(job)| job)
    }

    fn pop_job(&self, own: &Own, _: Tally<'_>) -> Option<Task> {
        own.jobs.pop()
    }

    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Found {
        to_found(self.workers[victim].jobs.steal(), 0, tally)
    }

    fn has_job(&self, victim: usize) -> bool {
        !self.workers[victim].jobs.is_empty()
    }

    fn take_injected(&self, own: &Own, tally: Tally<'_>) -> Found {
        let drawn = self.injector.steal_batch_and_pop(&Watched(&own.deque, Task::prefetch));
        to_found(drawn, came_along(own), tally)
    }

    fn steal(&self, own: &Own, victim: usize, tally: Tally<'_>) -> Found {
        let stolen = self.workers[victim].tasks.steal_batch_and_pop(&own.deque);
        to_found(stolen, came_along(own), tally)
    }

    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task> {
        steal_until_decided(|| self.injector.steal(), tally)
    }

    fn any(&self) -> bool {
        let has_any = |reach: &Reach| !reach.tasks.is_empty() || !reach.jobs.is_empty();
        !self.injector.is_empty() || self.workers.iter().any(has_any)
    }
}

impl Stealing {
    /// Moves the older half of a full deque to the injector, where every worker can take it.
    #[cold]
    #[inline(never)]
    fn overflow(&self, own: &Own, task: Task, tally: Tally<'_>) {
        tally.one(|block| &block.overflows);
        let oldest = || steal_until_decided(|| own.stealer.steal(), tally);
        self.injector.push_batch(std::iter::from_fn(oldest).take(CAPACITY / 2));
        if let Err(Full(task)) = own.deque.push(task) {
            // There is still no room: a thief is still reading from the next slot.
            self.injector.push(task);
        }
    }
}

/// Returns how many tasks came along with a steal: the worker's own deque was empty before.
fn came_along(own: &Own) -> usize {
    own.deque.len().min(BATCH_LIMIT)
}
