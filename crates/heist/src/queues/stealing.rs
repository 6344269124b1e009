//! Work stealing: a lock-free deque and a lane for each thread, and injectors for work from outside.
//!
//! There is an injector for each cluster of workers. Both ends of an injector are cache lines that all who use it write to;
//! if all workers of a large pool used the same one, they would wait for these lines most of the time. A thread from outside
//! always pushes to the same injector, so that its tasks stay in order. A worker tries the injector of its own cluster first,
//! and then those of the next ones. A pool of one cluster has one injector.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;

use heist_deque::bounded::{self, Stealer, Worker};
use heist_deque::{CapacityError, Full, Injector};

use super::injected::{Injected, came_along};
use super::swept::Interval;
use super::{
    Broadcasts, Found, Lane, Lengths, Queues, Ranked, RemoteLengths, SharedQueue,
    steal_between_lanes, steal_from_lane, steal_until_decided, to_found,
};
use crate::cluster::Clusters;
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

/// In a pool of several clusters, a thief takes one task if a deque has no more than this many, and half of them if it has
/// more. A short deque is that of a tree of tasks as a rule, whose oldest task stands for half of the others. Many thieves
/// that each take half of what is left take the tasks from each other again and again. Simulated: at 128 cores, eight times
/// fewer steals in a tree of tasks.
const FEW: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// The ends of a thread's queues that other threads use.
pub(crate) struct Reach {
    tasks: Stealer<Task>,
    lane: Arc<Lane>,
}

pub(crate) struct Stealing {
    clusters: Clusters,
    /// The injectors, by cluster.
    injected: Box<[Injected]>,
    /// When to sweep the injectors.
    interval: Interval,
    /// [`FEW`] if there are several clusters, else zero.
    few: usize,
    /// Parts of running tasks that came from outside. There is one lane for all clusters: such parts are few, because a
    /// thread outside that forks moves to the pool as a rule. A worker that searches only reads the number of parts, which
    /// does not change meanwhile.
    outside: Lane,
    broadcasts: Broadcasts,
    ranked: Ranked<Injected>,
}

pub(crate) struct Own {
    deque: Worker<Task>,
    /// The thieves' end of the same deque: an overflow takes the oldest tasks.
    stealer: Stealer<Task>,
    lane: Arc<Lane>,
    /// The cluster of the core that the thread has, or had last.
    cluster: Cell<usize>,
    /// The cluster whose injector the thread tries first when that of its own cluster is empty: one that had something, or
    /// a near one. It is not the same for all workers of a cluster, so that they do not meet again elsewhere.
    other: Cell<usize>,
}

/// Ends the program because there is no memory for a deque, as every allocation here does.
#[cold]
fn refused(error: CapacityError) -> ! {
    match error {
        CapacityError::OutOfMemory { bytes, .. } => {
            let words = bytes.div_ceil(size_of::<usize>());
            handle_alloc_error(Layout::array::<usize>(words).unwrap_or(Layout::new::<usize>()))
        }
        error => unreachable!("the capacity is a power of two: {error}"),
    }
}

impl Queues for Stealing {
    type Own = Own;
    type Reach = Reach;
    type Shared = Injected;

    const PATIENT: bool = true;
    const PRIVATE: bool = true;

    fn new(workers: usize, clusters: Clusters) -> Self {
        Self {
            injected: (0..clusters.count()).map(|_| Injected::new()).collect(),
            interval: Interval::new(),
            few: if clusters.count() > 1 { FEW } else { 0 },
            clusters,
            outside: Lane::new(),
            broadcasts: Broadcasts::new(workers),
            ranked: Ranked::new(),
        }
    }

    fn injectors(&self) -> usize {
        self.injected.len()
    }

    fn set_worker(&self, own: &Own, worker: usize) {
        let cluster = self.clusters.of(worker);
        // Clusters with neighbouring numbers are near each other: one of the same four.
        let other = cluster ^ (1 + worker % 3);
        own.cluster.set(cluster);
        own.other.set(if other < self.injected.len() { other } else { 0 });
    }

    fn cluster(&self, own: &Own) -> usize {
        own.cluster.get()
    }

    fn of_thread() -> (Own, Reach) {
        let (deque, stealer) = bounded::new(CAPACITY).unwrap_or_else(|error| refused(error));
        let lane = Arc::new(Lane::new());
        let reach = Reach { tasks: stealer.clone(), lane: Arc::clone(&lane) };
        (Own { deque, stealer, lane, cluster: Cell::new(0), other: Cell::new(0) }, reach)
    }

    #[inline]
    fn push_local(&self, own: &Own, task: Task, tally: Tally<'_>) {
        if let Err(Full(task)) = own.deque.push(task) {
            self.overflow(own, task, tally);
        }
    }

    fn push_many_local(&self, own: &Own, tasks: &mut dyn Iterator<Item = Task>, tally: Tally<'_>) {
        tally.one(|block| &block.overflows);
        // What is in the deque is older.
        self.leave(own, tally);
        self.near(own).push_batch(tasks.filter(|task| !task.is_stale()));
    }

    #[inline]
    fn push_remote(&self, cluster: usize, task: Task, _: Tally<'_>) {
        self.injected[cluster].injector.push(task);
    }

    #[inline(always)]
    fn ranked(&self) -> Option<&Ranked<Self::Shared>> {
        Some(&self.ranked)
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
        self.injected.iter().any(SharedQueue::any) || self.outside.any() || self.ranked.any()
    }

    fn take_injected(&self, own: &Own, tally: Tally<'_>) -> Found {
        if let [only] = &*self.injected {
            return only.take(&own.deque, tally);
        }
        let mut contended = false;
        for cluster in [own.cluster.get()].into_iter().chain(self.clusters.from(own.other.get())) {
            let injected = &self.injected[cluster];
            // A look, because most of them are empty as a rule.
            match if injected.any() { injected.take(&own.deque, tally) } else { Found::Nothing } {
                Found::Nothing => {}
                Found::Contended => contended = true,
                found @ Found::Task(..) => {
                    if cluster != own.cluster.get() {
                        own.other.set(cluster);
                    }
                    return found;
                }
            }
        }
        if contended { Found::Contended } else { Found::Nothing }
    }

    fn steal(&self, own: &Own, from: &Reach, tally: Tally<'_>) -> Found {
        let stolen = from.tasks.steal_one_of_few(&own.deque, self.few);
        to_found(stolen, came_along(&own.deque), tally)
    }

    fn steal_one(&self, from: &Reach, tally: Tally<'_>) -> Found {
        to_found(from.tasks.steal(), 0, tally)
    }

    fn take_one_injected(&self, first: usize, tally: Tally<'_>) -> Option<Task> {
        let mut clusters = self.clusters.from(first % self.injected.len());
        clusters.find_map(|cluster| self.injected[cluster].take_one(tally))
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
            injectors: self.injected.iter().map(SharedQueue::len).collect(),
            ranked: self.ranked.lengths(),
            parts: self.outside.len(),
        }
    }

    fn drop_stale(&self, claims: usize, tally: Tally<'_>) -> bool {
        if !self.interval.is_over(claims) {
            return false;
        }
        let left: usize = self.injected.iter().map(|injected| injected.sweep(tally).1).sum();
        self.interval.begin(left + self.ranked.sweep(tally));
        true
    }

    fn leave(&self, own: &Own, tally: Tally<'_>) {
        let oldest = || steal_until_decided(|| own.stealer.steal(), tally);
        self.near(own).push_batch(std::iter::from_fn(oldest));
    }
}

impl Stealing {
    /// Returns the injector of the thread's own cluster.
    fn near(&self, own: &Own) -> &Injector<Task> {
        &self.injected[own.cluster.get()].injector
    }

    /// Moves the older half of a full deque to the injector, where every worker can take it.
    #[cold]
    #[inline(never)]
    fn overflow(&self, own: &Own, task: Task, tally: Tally<'_>) {
        tally.one(|block| &block.overflows);
        let oldest = || steal_until_decided(|| own.stealer.steal(), tally);
        let older_half = std::iter::from_fn(oldest).take(CAPACITY / 2);
        self.near(own).push_batch(older_half.filter(|task| !task.is_stale()));
        if let Err(Full(task)) = own.deque.push(task) {
            // There is still no room: a thief is still reading from the next slot.
            self.near(own).push(task);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::stats::Ledger;

    const CLUSTERS: usize = 3;

    /// Calls `f` with the queues of a pool of several clusters, those of a thread of each cluster, and counters.
    fn with_queues(f: impl Fn(&Stealing, &[Own], Tally<'_>)) {
        let workers = 8 * CLUSTERS;
        let queues = Stealing::new(workers, Clusters::of_size(workers, 8));
        let of_cluster = |cluster| {
            let (own, _) = Stealing::of_thread();
            queues.set_worker(&own, 8 * cluster + 3);
            own
        };
        let own: Vec<_> = (0..CLUSTERS).map(of_cluster).collect();
        f(&queues, &own, Ledger::new(workers, CLUSTERS).of_non_workers());
    }

    fn task() -> Task {
        // SAFETY: it borrows nothing.
        unsafe { Task::new(|| ()) }.0
    }

    #[test]
    fn a_task_in_any_injector_is_found_by_all() {
        with_queues(|queues, own, tally| {
            for (cluster, own) in (0..CLUSTERS).flat_map(|n| own.iter().map(move |own| (n, own))) {
                assert!(!queues.has_remote());
                queues.push_remote(cluster, task(), tally);
                assert!(queues.has_remote(), "the last look sees it");
                assert!(matches!(queues.take_injected(own, tally), Found::Task(_, 0)));
            }
        });
    }

    #[test]
    fn a_worker_takes_from_its_own_cluster_first() {
        with_queues(|queues, own, tally| {
            let tasks: [_; CLUSTERS] = std::array::from_fn(|_| task());
            let ids = tasks.each_ref().map(Task::id);
            for (cluster, task) in tasks.into_iter().enumerate() {
                queues.push_remote(cluster, task, tally);
            }
            let taken = || match queues.take_injected(&own[1], tally) {
                Found::Task(task, _) => task.id(),
                Found::Nothing | Found::Contended => 0,
            };
            assert_eq!(taken(), ids[1]);
            let mut others = [taken(), taken()];
            others.sort_unstable();
            let mut expected = [ids[0], ids[2]];
            expected.sort_unstable();
            assert_eq!(others, expected);
        });
    }

    #[test]
    fn one_task_is_taken_from_the_injector_that_was_asked_for() {
        with_queues(|queues, _, tally| {
            let tasks: [_; CLUSTERS] = std::array::from_fn(|_| task());
            let ids = tasks.each_ref().map(Task::id);
            for (cluster, task) in tasks.into_iter().enumerate() {
                queues.push_remote(cluster, task, tally);
            }
            let taken = |first| queues.take_one_injected(first, tally).map(|task| task.id());
            assert_eq!(taken(2 + 7 * CLUSTERS), Some(ids[2]));
            assert_eq!(taken(2), Some(ids[0]), "the next one that has a task");
            assert_eq!(taken(0), Some(ids[1]));
            assert_eq!(taken(0), None);
        });
    }

    #[test]
    fn what_a_thread_leaves_goes_to_its_own_cluster() {
        with_queues(|queues, own, tally| {
            (0..=CAPACITY).for_each(|_| queues.push_local(&own[2], task(), tally));
            let lengths = || queues.injected.iter().map(|cluster| cluster.injector.len());
            assert_eq!(lengths().collect::<Vec<_>>(), [0, 0, CAPACITY / 2], "an overflow");
            queues.leave(&own[2], tally);
            assert_eq!(lengths().collect::<Vec<_>>(), [0, 0, CAPACITY + 1]);
        });
    }

    #[test]
    fn stale_entries_are_dropped_from_all_injectors() {
        with_queues(|queues, own, tally| {
            let cluster_of = |n: usize| n % CLUSTERS;
            // SAFETY: the closures borrow nothing.
            let (tasks, handles): (Vec<_>, Vec<_>) =
                (0..30).map(|_| unsafe { Task::new(|| ()) }).unzip();
            for (n, task) in tasks.into_iter().enumerate() {
                queues.push_remote(cluster_of(n), task, tally);
            }
            let hook = Arc::default();
            for handle in &handles {
                let claimed = crate::task::Awaited::claim(handle).expect("it has not started");
                let _ = claimed.execute(&hook);
                claimed.done();
            }
            assert!(!queues.drop_stale(super::super::FEWEST - 1, tally), "too early");
            assert!(queues.drop_stale(super::super::FEWEST, tally));
            assert!(!queues.has_remote());
            assert!(matches!(queues.take_injected(&own[0], tally), Found::Nothing));
        });
    }

    #[test]
    fn a_thief_takes_one_of_few_and_half_of_many() {
        with_queues(|queues, own, tally| {
            let (victim, reach) = Stealing::of_thread();
            for (count, moved) in [(FEW, 0), (2 * FEW, FEW - 1)] {
                (0..count).for_each(|_| queues.push_local(&victim, task(), tally));
                let stolen = queues.steal(&own[0], &reach, tally);
                assert!(matches!(stolen, Found::Task(_, more) if more == moved), "of {count}");
                while queues.pop(&victim, tally).is_some() {}
                while queues.pop(&own[0], tally).is_some() {}
            }
        });
    }
}
