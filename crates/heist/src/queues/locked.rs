//! Locked deques: like work stealing, with a mutex around each queue.

use heist_deque::Steal;
use heist_deque::locked::{self, Stealer, Worker};

use super::global::Queue;
use super::{Found, Queues};
use crate::stats::Tally;
use crate::task::Task;

/// The ends of a worker's queues that other workers use.
struct Reach {
    tasks: Stealer<Task>,
    jobs: Stealer<Task>,
}

pub(crate) struct Locked {
    injector: Queue,
    workers: Box<[Reach]>,
}

pub(crate) struct Own {
    tasks: Worker<Task>,
    /// Published jobs of the worker's joins and scopes.
    jobs: Worker<Task>,
}

impl Queues for Locked {
    type Own = Own;

    const STEALS: bool = true;
    const PATIENT: bool = true;

    fn new(workers: usize) -> (Self, Vec<Own>) {
        let (own, workers): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let ((tasks, tasks_end), (jobs, jobs_end)) = (locked::new(), locked::new());
                (Own { tasks, jobs }, Reach { tasks: tasks_end, jobs: jobs_end })
            })
            .unzip();
        (Self { injector: Queue::new(), workers: workers.into() }, own)
    }

    fn push_local(&self, own: &Own, task: Task, tally: Tally<'_>) {
        counted(&own.tasks, tally, || own.tasks.push(task));
    }

    fn push_remote(&self, task: Task, tally: Tally<'_>) {
        self.injector.push(task, tally);
    }

    fn pop(&self, own: &Own, tally: Tally<'_>) -> Option<Task> {
        counted(&own.tasks, tally, || own.tasks.pop())
    }

    fn push_job(&self, own: &Own, job: Task, tally: Tally<'_>) -> Result<(), Task> {
        counted(&own.jobs, tally, || own.jobs.push(job));
        Ok(())
    }

    fn pop_job(&self, own: &Own, tally: Tally<'_>) -> Option<Task> {
        counted(&own.jobs, tally, || own.jobs.pop())
    }

    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Found {
        to_found(self.workers[victim].jobs.steal(), 0, tally)
    }

    fn has_job(&self, victim: usize) -> bool {
        !self.workers[victim].jobs.is_empty()
    }

    fn take_injected(&self, _: &Own, tally: Tally<'_>) -> Found {
        self.injector.pop(tally).map_or(Found::Nothing, |task| Found::Task(task, 0))
    }

    fn steal(&self, own: &Own, victim: usize, tally: Tally<'_>) -> Found {
        let stolen = self.workers[victim].tasks.steal_batch_and_pop(&own.tasks);
        to_found(stolen, own.tasks.len(), tally)
    }

    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task> {
        self.injector.pop(tally)
    }

    fn any(&self) -> bool {
        let has_any = |reach: &Reach| !reach.tasks.is_empty() || !reach.jobs.is_empty();
        self.injector.any() || self.workers.iter().any(has_any)
    }
}

fn to_found(stolen: Steal<Task>, more: usize, tally: Tally<'_>) -> Found {
    match stolen {
        Steal::Success(task) => Found::Task(task, more),
        Steal::Empty => Found::Nothing,
        Steal::Retry => {
            tally.one(|block| &block.lock_contention);
            Found::Contended
        }
    }
}

/// Calls `f`, and counts a contention if the owner finds its own lock taken.
fn counted<R>(own: &Worker<Task>, tally: Tally<'_>, f: impl FnOnce() -> R) -> R {
    let before = own.lock_waits();
    let result = f();
    if own.lock_waits() != before {
        tally.one(|block| &block.lock_contention);
    }
    result
}
