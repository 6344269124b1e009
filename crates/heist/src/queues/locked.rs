//! Locked deques: like work stealing, with a mutex around each queue.

use std::cell::Cell;

use heist_deque::Steal;
use heist_deque::locked::{self, Stealer, Worker};

use super::global::Queue;
use super::{
    Broadcasts, FEWEST, Found, Lane, Lengths, Queues, Ranked, RemoteLengths, SharedQueue,
    steal_between_lanes, steal_from_lane,
};
use crate::cluster::Clusters;
use crate::stats::Tally;
use crate::sync::Arc;
use crate::task::Task;

/// The ends of a thread's queues that other threads use.
pub(crate) struct Reach {
    tasks: Stealer<Task>,
    lane: Arc<Lane>,
}

pub(crate) struct Locked {
    injector: Queue,
    /// Parts of running tasks that came from outside.
    outside: Lane,
    broadcasts: Broadcasts,
    ranked: Ranked<Queue>,
}

pub(crate) struct Own {
    tasks: Worker<Task>,
    lane: Arc<Lane>,
    /// The number of tasks until stale entries are looked for.
    until_sweep: Cell<usize>,
    /// Memory for sweeps. Empty in between.
    live: Cell<Vec<Task>>,
}

impl Queues for Locked {
    type Own = Own;
    type Reach = Reach;
    type Shared = Queue;

    const PATIENT: bool = true;

    fn new(workers: usize, _: Clusters) -> Self {
        let broadcasts = Broadcasts::new(workers);
        Self { injector: Queue::new(), outside: Lane::new(), broadcasts, ranked: Ranked::new() }
    }

    fn of_thread() -> (Own, Reach) {
        let ((own, tasks), lane) = (locked::new(), Arc::new(Lane::new()));
        let (until_sweep, live) = (Cell::new(FEWEST), Cell::default());
        (Own { tasks: own, lane: Arc::clone(&lane), until_sweep, live }, Reach { tasks, lane })
    }

    fn push_local(&self, own: &Own, task: Task, tally: Tally<'_>) {
        let left = own.until_sweep.get();
        own.until_sweep.set(left.saturating_sub(1));
        if left == 0 {
            sweep(own);
        }
        counted(&own.tasks, tally, || own.tasks.push(task));
    }

    fn push_remote(&self, _: usize, task: Task, tally: Tally<'_>) {
        self.injector.push(task, tally);
    }

    #[inline(always)]
    fn ranked(&self) -> Option<&Ranked<Self::Shared>> {
        Some(&self.ranked)
    }

    fn pop(&self, own: &Own, tally: Tally<'_>) -> Option<Task> {
        counted(&own.tasks, tally, || own.tasks.pop())
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

    fn pop_job(&self, own: &Own) -> Option<Task> {
        own.lane.pop()
    }

    fn take_back_job(&self, own: &Own, is_it: impl Fn(&Task) -> bool) -> Option<Task> {
        own.lane.pop_if(is_it)
    }

    fn steal_job(&self, from: &Reach, tally: Tally<'_>) -> Found {
        steal_from_lane(&from.lane, tally)
    }

    fn has_far_part(&self, from: &Reach) -> bool {
        from.lane.has_far_part()
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
        self.injector.any() || self.outside.any() || self.ranked.any()
    }

    fn take_injected(&self, _: &Own, tally: Tally<'_>) -> Found {
        self.injector.pop(tally).map_or(Found::Nothing, |task| Found::Task(task, 0))
    }

    fn steal(&self, own: &Own, from: &Reach, tally: Tally<'_>) -> Found {
        let stolen = from.tasks.steal_batch_and_pop(&own.tasks);
        to_found(stolen, own.tasks.len(), tally)
    }

    fn steal_one(&self, from: &Reach, tally: Tally<'_>) -> Found {
        to_found(from.tasks.steal(), 0, tally)
    }

    fn take_one_injected(&self, _: usize, tally: Tally<'_>) -> Option<Task> {
        self.injector.pop(tally)
    }

    #[inline(always)]
    fn broadcasts(&self) -> Option<&Broadcasts> {
        Some(&self.broadcasts)
    }

    fn lengths(&self, from: &Reach) -> Lengths {
        Lengths { tasks: from.tasks.len(), parts: from.lane.len() }
    }

    fn remote_lengths(&self) -> RemoteLengths {
        RemoteLengths {
            injectors: vec![self.injector.len()],
            ranked: self.ranked.lengths(),
            parts: self.outside.len(),
        }
    }

    fn leave(&self, own: &Own, tally: Tally<'_>) {
        let mut left: Vec<_> = std::iter::from_fn(|| own.tasks.pop()).collect();
        left.drain(..).rev().for_each(|task| _ = self.injector.push(task, tally));
    }
}

/// Drops the stale entries of a thread's deque. The next sweep comes after as many tasks as are left, so that it costs
/// little for each of them, and so that there are never many more stale entries than tasks.
#[cold]
fn sweep(own: &Own) {
    let mut live = own.live.take();
    let newest_first = std::iter::from_fn(|| own.tasks.pop());
    live.extend(newest_first.filter(|task| !task.is_stale()));
    own.until_sweep.set(live.len().max(FEWEST));
    live.drain(..).rev().for_each(|task| own.tasks.push(task));
    own.live.set(live);
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
