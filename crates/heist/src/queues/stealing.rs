//! Work stealing: a lock-free deque and a lane for each thread, and an injector for work from outside.

use heist_deque::bounded::{self, Stealer, Worker};
use heist_deque::facade::Watched;
use heist_deque::{BATCH_LIMIT, Full, Injector};

use super::swept::Swept;
use super::{
    Found, Lane, Queues, steal_between_lanes, steal_from_lane, steal_until_decided, to_found,
};
use crate::stats::Tally;
use crate::sync::Arc;
use crate::task::Task;

/// The number of tasks that a thread's deque holds. When it is full, half of it goes to the injector. A guess:
/// enough that a tree of tasks never fills it, and small enough to stay in the nearest cache.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const CAPACITY: usize = 256;
/// Small, so that a checker sees a full deque.
#[cfg(any(loom, shuttle))]
pub(crate) const CAPACITY: usize = 4;

/// The ends of a thread's queues that other threads use.
pub(crate) struct Reach {
    tasks: Stealer<Task>,
    lane: Arc<Lane>,
}

pub(crate) struct Stealing {
    injector: Injector<Task>,
    /// What was in the injector when stale entries were last dropped from it: the tasks that come before those in the
    /// injector.
    swept: Swept,
    /// Parts of running tasks that came from outside.
    outside: Lane,
}

pub(crate) struct Own {
    deque: Worker<Task>,
    /// The thieves' end of the same deque: an overflow takes the oldest tasks.
    stealer: Stealer<Task>,
    lane: Arc<Lane>,
}

impl Queues for Stealing {
    type Own = Own;
    type Reach = Reach;

    const PATIENT: bool = true;

    fn new(_: usize) -> Self {
        Self { injector: Injector::new(), swept: Swept::new(), outside: Lane::new() }
    }

    fn of_thread() -> (Own, Reach) {
        let (deque, stealer) = bounded::new(CAPACITY).expect("a power of two, and memory for it");
        let lane = Arc::new(Lane::new());
        let reach = Reach { tasks: stealer.clone(), lane: Arc::clone(&lane) };
        (Own { deque, stealer, lane }, reach)
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

    fn push_job(&self, own: &Own, job: Task, group: usize) {
        own.lane.push(job, group);
    }

    fn push_jobs(&self, own: &Own, jobs: &mut dyn Iterator<Item = Task>, group: usize) {
        own.lane.push_all(jobs, group);
    }

    fn push_job_remote(&self, job: Task, group: usize, _: Tally<'_>) {
        self.outside.push(job, group);
    }

    #[inline]
    fn pop_job(&self, own: &Own) -> Option<Task> {
        own.lane.pop()
    }

    fn take_back_job(&self, own: &Own, is_it: impl Fn(&Task) -> bool) -> Option<Task> {
        own.lane.pop_if(is_it)
    }

    fn steal_job(&self, from: &Reach, tally: Tally<'_>) -> Found {
        steal_from_lane(&from.lane, tally)
    }

    fn has_many_jobs(&self, from: &Reach) -> bool {
        from.lane.has_many()
    }

    fn steal_jobs(&self, own: &Own, from: &Reach, tally: Tally<'_>) -> Found {
        steal_between_lanes(&own.lane, &from.lane, tally)
    }

    fn steal_job_remote(&self, tally: Tally<'_>) -> Found {
        steal_from_lane(&self.outside, tally)
    }

    fn take_job(&self, from: &Reach, group: usize, waits: bool) -> Option<Task> {
        from.lane.take(group, waits)
    }

    fn take_job_remote(&self, group: usize, waits: bool) -> Option<Task> {
        self.outside.take(group, waits)
    }

    fn has_job(&self, from: &Reach) -> bool {
        from.lane.any()
    }

    fn has_any(&self, from: &Reach) -> bool {
        !from.tasks.is_empty() || from.lane.any()
    }

    fn has_remote(&self) -> bool {
        !self.injector.is_empty() || self.swept.any() || self.outside.any()
    }

    fn take_injected(&self, own: &Own, tally: Tally<'_>) -> Found {
        if let Some(task) = self.swept.pop() {
            return Found::Task(task, 0);
        }
        let drawn = self.injector.steal_batch_and_pop(&Watched(&own.deque, Task::prefetch));
        to_found(drawn, came_along(own), tally)
    }

    fn steal(&self, own: &Own, from: &Reach, tally: Tally<'_>) -> Found {
        let stolen = from.tasks.steal_batch_and_pop(&own.deque);
        to_found(stolen, came_along(own), tally)
    }

    fn steal_one(&self, from: &Reach, tally: Tally<'_>) -> Found {
        to_found(from.tasks.steal(), 0, tally)
    }

    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task> {
        self.swept.pop().or_else(|| steal_until_decided(|| self.injector.steal(), tally))
    }

    fn drop_stale(&self, claims: usize, tally: Tally<'_>) -> bool {
        let next = || steal_until_decided(|| self.injector.steal(), tally);
        self.swept.sweep(claims, self.injector.len(), next)
    }

    fn leave(&self, own: &Own, tally: Tally<'_>) {
        let oldest = || steal_until_decided(|| own.stealer.steal(), tally);
        self.injector.push_batch(std::iter::from_fn(oldest));
    }
}

impl Stealing {
    /// Moves the older half of a full deque to the injector, where every worker can take it.
    #[cold]
    #[inline(never)]
    fn overflow(&self, own: &Own, task: Task, tally: Tally<'_>) {
        tally.one(|block| &block.overflows);
        let oldest = || steal_until_decided(|| own.stealer.steal(), tally);
        let older_half = std::iter::from_fn(oldest).take(CAPACITY / 2);
        self.injector.push_batch(older_half.filter(|task| !task.is_stale()));
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
