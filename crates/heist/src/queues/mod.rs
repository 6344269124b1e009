//! Where tasks wait: the strategies behind one trait, so that everything else is written once.

mod broadcasts;
mod global;
mod grouped;
mod inboxes;
mod injected;
mod lane;
mod locked;
mod ranked;
mod single;
mod stealing;
mod swept;

use std::fmt;

use heist_deque::Steal;

use crate::cluster::Clusters;
use crate::priority::Rank;
use crate::stats::Tally;
use crate::sync::{pause, yield_now};
use crate::task::Task;
use broadcasts::Broadcasts;
pub(crate) use global::Global;
pub(crate) use inboxes::{Inboxes, NO_GROUP};
pub(crate) use lane::Lane;
pub(crate) use locked::Locked;
use ranked::{Ranked, SharedQueue};
pub(crate) use single::Single;
pub(crate) use stealing::Stealing;

/// How a pool keeps its tasks.
///
/// All three strategies keep every promise of the pool. Change one word to compare them, or to rule the queues out as
/// the cause of a problem.
///
/// ```
/// use heist::{Pool, Strategy};
///
/// for strategy in Strategy::ALL {
///     let pool = Pool::builder().workers(2).strategy(strategy).build()?;
///     assert_eq!(pool.spawn(|| 6 * 7).join().unwrap(), 42);
/// }
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// A lock-free deque for each thread, from which the others steal. This is the recommended strategy.
    #[default]
    WorkStealing,
    /// A deque with a mutex for each thread. Thieves only try to lock it.
    LockedDeques,
    /// One queue with one mutex for all threads: the baseline.
    GlobalQueue,
}

impl Strategy {
    /// Every strategy, the default first.
    ///
    /// ```
    /// assert_eq!(heist::Strategy::ALL[0], heist::Strategy::default());
    /// ```
    pub const ALL: [Self; 3] = [Self::WorkStealing, Self::LockedDeques, Self::GlobalQueue];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WorkStealing => "work stealing",
            Self::LockedDeques => "locked deques",
            Self::GlobalQueue => "global queue",
        })
    }
}

/// At least this many entries of a queue may be stale before they are looked for. A guess.
const FEWEST: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// The result of one look into a queue.
pub(crate) enum Found {
    /// A task or a part, and how many more were moved into the thread's own deque or lane with it.
    Task(Task, usize),
    Nothing,
    /// Another thread was in the way. There may be a task.
    Contended,
}

/// The lengths of one thread's queues at some moment. They are only shown.
pub(crate) struct Lengths {
    /// Tasks in the deque.
    pub(crate) tasks: usize,
    /// Published parts in the lane.
    pub(crate) parts: usize,
}

/// The lengths of the queues for what comes from outside, at some moment. They are only shown.
pub(crate) struct RemoteLengths {
    /// Tasks in each injector, `None` if another thread holds its lock.
    pub(crate) injectors: Vec<Option<usize>>,
    /// Tasks of high and of low priority, `None` if another thread holds the lock of their queue.
    pub(crate) ranked: [Option<usize>; 2],
    /// Parts of running tasks.
    pub(crate) parts: usize,
}

/// All queues of a pool. Each thread has queues of its own; threads outside of the pool share the injector. There may be
/// several injectors, one for each cluster of workers.
pub(crate) trait Queues: Send + Sync + Sized + 'static {
    /// The owner's ends of one thread's queues.
    type Own: Send + 'static;

    /// The ends of one thread's queues that other threads use.
    type Reach: Send + Sync + 'static;

    /// A queue that all threads share.
    type Shared: SharedQueue;

    /// Does a worker that finds nothing look again for a while before it sleeps, and does a thread that pushes a task
    /// rely on such a worker? If not, every push wakes a sleeper, as a condition variable would.
    const PATIENT: bool;

    /// How often a searching worker looks before it sleeps, for work that is about to be spawned. All looks together
    /// take some microseconds, while to sleep and to be woken takes twenty. Few under a checker, so that it explores
    /// what comes after the looks.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 32 };

    /// Does a worker keep the tasks that it spawns private until another one wants them (`fork::private`)?
    const PRIVATE: bool = false;

    /// Returns the shared queues of a pool with that many workers, which are divided into these clusters.
    fn new(workers: usize, clusters: Clusters) -> Self;

    /// Returns the number of injectors.
    fn injectors(&self) -> usize {
        1
    }

    /// Notes that the thread has the core of that worker from now on. So it uses the injector of that worker's cluster,
    /// until it has another core.
    fn set_worker(&self, _own: &Self::Own, _worker: usize) {}

    /// Returns the cluster of the core that the thread has, or had last.
    fn cluster(&self, _own: &Self::Own) -> usize {
        0
    }

    /// Returns the queues of one thread: the owner's ends, and those for the others.
    fn of_thread() -> (Self::Own, Self::Reach);

    /// Pushes a new task of a thread to its own deque.
    fn push_local(&self, own: &Self::Own, task: Task, tally: Tally<'_>);

    /// Pushes tasks of a thread that it has spawned, the oldest first, to where every worker can take them: too many of them
    /// are private.
    fn push_many_local(&self, _: &Self::Own, _: &mut dyn Iterator<Item = Task>, _: Tally<'_>) {
        unreachable!("only where tasks are private")
    }

    /// Pushes a task to the injector of that cluster, from outside.
    fn push_remote(&self, cluster: usize, task: Task, tally: Tally<'_>);

    /// Returns the tasks that are not of normal priority. An engine has no priorities.
    #[inline(always)]
    fn ranked(&self) -> Option<&Ranked<Self::Shared>> {
        None
    }

    /// Pushes a task that is not of normal priority to the queue for that, from any thread. An engine has no priorities, and
    /// treats it as any other task from outside.
    fn push_ranked(&self, rank: Rank, task: Task, tally: Tally<'_>) {
        match self.ranked() {
            Some(ranked) => ranked.push(rank, task, tally),
            None => self.push_remote(0, task, tally),
        }
    }

    /// Returns whether there may be a task that is not of normal priority.
    #[inline(always)]
    fn has_ranked(&self) -> bool {
        self.ranked().is_some_and(Ranked::may_have)
    }

    /// Removes the oldest task of that priority.
    fn pop_ranked(&self, rank: Rank, tally: Tally<'_>) -> Option<Task> {
        self.ranked()?.pop(rank, tally)
    }

    /// Pops the thread's own newest task.
    fn pop(&self, own: &Self::Own, tally: Tally<'_>) -> Option<Task>;

    /// Pops the thread's own newest task, if `is_it` says so.
    fn take_back(
        &self,
        own: &Self::Own,
        is_it: impl Fn(&Task) -> bool,
        tally: Tally<'_>,
    ) -> Option<Task> {
        let newest = self.pop(own, tally)?;
        if is_it(&newest) {
            return Some(newest);
        }
        self.push_local(own, newest, tally);
        None
    }

    /// Pushes a part of a running task, which belongs to that group, to the thread's own lane.
    fn push_job(&self, own: &Self::Own, job: Task, group: usize);

    /// Pushes parts of a running task, all of which belong to that group, to the thread's own lane, the newest last.
    fn push_jobs(&self, own: &Self::Own, jobs: &mut dyn Iterator<Item = Task>, group: usize) {
        jobs.for_each(|job| self.push_job(own, job, group));
    }

    /// Pushes a part of a running task, from outside.
    fn push_job_remote(&self, job: Task, group: usize, tally: Tally<'_>);

    /// Pops the newest part that the thread has published.
    fn pop_job(&self, own: &Self::Own) -> Option<Task>;

    /// Pops the newest part that the thread has published, if `is_it` says so.
    fn take_back_job(&self, own: &Self::Own, is_it: impl Fn(&Task) -> bool) -> Option<Task>;

    /// Steals the oldest part that another thread has published, and only that one: the others are smaller, and that
    /// thread will run them next.
    fn steal_job(&self, from: &Self::Reach, tally: Tally<'_>) -> Found;

    /// Returns whether the oldest part that thread has published may be stolen by threads on other NUMA nodes as well as by others.
    fn has_far_part(&self, _from: &Self::Reach) -> bool {
        false
    }

    /// Returns whether that thread seems to have so many published parts that [`steal_jobs`](Self::steal_jobs) would move
    /// some of them.
    fn has_many_jobs(&self, _from: &Self::Reach) -> bool {
        false
    }

    /// Like [`steal_job`](Self::steal_job), but may move more parts to the thread's own lane.
    fn steal_jobs(&self, _own: &Self::Own, from: &Self::Reach, tally: Tally<'_>) -> Found {
        self.steal_job(from, tally)
    }

    /// Steals the oldest part that came from outside.
    fn steal_job_remote(&self, tally: Tally<'_>) -> Found;

    /// Takes a part of that group out of another thread's lane. With `waits`, misses none because another thread is in the
    /// way. Only in pools whose threads wait for groups.
    fn take_job(&self, from: &Self::Reach, group: usize, waits: bool) -> Option<Task>;

    /// Takes a part of that group that came from outside, as [`take_job`](Self::take_job) does.
    fn take_job_remote(&self, group: usize, waits: bool) -> Option<Task>;

    /// Returns whether that thread has a published part.
    fn has_job(&self, from: &Self::Reach) -> bool;

    /// Returns whether that thread has a task that another one could take, or a published part.
    fn has_any(&self, from: &Self::Reach) -> bool;

    /// Returns whether there is a task or a part from outside.
    fn has_remote(&self) -> bool;

    /// Takes tasks from an injector, oldest first: one to run, and perhaps more into the thread's own deque. It tries the
    /// injector of its own cluster first.
    fn take_injected(&self, own: &Self::Own, tally: Tally<'_>) -> Found;

    /// Steals from another thread, its oldest tasks first: one to run, and perhaps more into the thread's own deque.
    fn steal(&self, own: &Self::Own, from: &Self::Reach, tally: Tally<'_>) -> Found;

    /// Steals the oldest task of a thread, perhaps of the calling thread itself.
    fn steal_one(&self, from: &Self::Reach, tally: Tally<'_>) -> Found;

    /// Takes one task from the first injector that has one. The numbers of the injectors begin with `first`, which may be
    /// any number, and go around.
    fn take_one_injected(&self, first: usize, tally: Tally<'_>) -> Option<Task>;

    /// Moves the tasks that are left in a thread's own deque to an injector, because the thread ends. Parts stay in its
    /// lane: a thread that waits for one looks into each lane once, and must not miss a part that is on its way to another.
    fn leave(&self, own: &Self::Own, tally: Tally<'_>);

    /// May drop the stale entries of all injectors, and returns whether it did. A thread calls this when it has claimed a
    /// task, with the number of its claims since this last returned `true`. Not needed where stale entries are dropped
    /// when tasks are pushed.
    fn drop_stale(&self, _claims: usize, _tally: Tally<'_>) -> bool {
        false
    }

    /// Returns the lengths of that thread's queues.
    fn lengths(&self, from: &Self::Reach) -> Lengths;

    /// Returns the lengths of the queues for what comes from outside.
    fn remote_lengths(&self) -> RemoteLengths;

    /// Pushes one task to each worker's broadcast queue, in the order of their numbers. If there are several
    /// broadcasts, all workers get them in the same order. `sent` is called with the number of the worker before that
    /// worker can take its task. Tasks for workers that were abandoned are returned.
    fn broadcast(&self, _tasks: impl Iterator<Item = Task>, _sent: impl Fn(usize)) -> Vec<Task> {
        unreachable!("only an engine broadcasts")
    }

    /// Returns the broadcast queues of a pool. An engine has queues of another kind.
    fn broadcasts(&self) -> Option<&Broadcasts> {
        None
    }

    /// Pushes a task to that worker's broadcast queue, in a pool.
    fn push_broadcast(&self, to: usize, task: Task) {
        let broadcasts = self.broadcasts().expect("an engine broadcasts to all workers at once");
        broadcasts.push(to, task);
    }

    /// Notes that no thread will ever be this worker, and returns the tasks in its broadcast queue.
    fn abandon_worker(&self, _of: usize, _tally: Tally<'_>) -> Vec<Task> {
        Vec::new()
    }

    /// Takes the oldest task from that worker's broadcast queue. Only the worker itself calls this.
    #[inline]
    fn pop_broadcast(&self, of: usize, _tally: Tally<'_>) -> Option<Task> {
        self.broadcasts()?.pop(of)
    }

    /// Returns whether that worker's broadcast queue has a task.
    fn has_broadcast(&self, of: usize) -> bool {
        self.broadcasts().is_some_and(|broadcasts| broadcasts.any(of))
    }
}

/// Steals the oldest part of a lane.
fn steal_from_lane(lane: &Lane, tally: Tally<'_>) -> Found {
    match lane.steal() {
        Ok(Some(job)) => Found::Task(job, 0),
        Ok(None) => Found::Nothing,
        Err(()) => {
            tally.one(|block| &block.lock_contention);
            Found::Contended
        }
    }
}

/// Steals the oldest part of a lane, and perhaps moves more to the thread's own lane.
fn steal_between_lanes(own: &Lane, from: &Lane, tally: Tally<'_>) -> Found {
    match from.steal_into(own) {
        Ok(Some((job, more))) => Found::Task(job, more),
        Ok(None) => Found::Nothing,
        Err(()) => {
            tally.one(|block| &block.lock_contention);
            Found::Contended
        }
    }
}

/// A thread that must have an answer yields its processor once in this many steals in vain.
const RETRIES: u32 = 8;

/// Steals until it is certain whether there is a task.
fn steal_until_decided(steal: impl Fn() -> Steal<Task>, tally: Tally<'_>) -> Option<Task> {
    let mut looks = 0;
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => tally.one(|block| &block.failed_cas),
        }
        // Another thread may have been interrupted in the middle of a steal, and may need this processor.
        looks = (looks + 1) % RETRIES;
        if looks == 0 { yield_now() } else { pause() }
    }
}

fn to_found(stolen: Steal<Task>, more: usize, tally: Tally<'_>) -> Found {
    match stolen {
        Steal::Success(task) => Found::Task(task, more),
        Steal::Empty => Found::Nothing,
        Steal::Retry => {
            tally.one(|block| &block.failed_cas);
            Found::Contended
        }
    }
}
