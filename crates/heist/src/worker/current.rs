//! How code that runs on a thread finds the pool and the worker thread that it runs on.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::cancel::Follower;
use crate::fork::demand::Demand;
use crate::fork::job;
use crate::priority::Priority;
use crate::queues::NO_GROUP;
use crate::stats::Stats;
use crate::sync::{Arc, AtomicUsize, per_thread};
use crate::task::{Awaited, End, Task};
use crate::worker::admission::Admission;
use crate::worker::dump::PoolDump;
use crate::worker::inbox::Affinity;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;

/// A worker thread, for code that does not know the strategy of its pool.
pub(crate) trait AnyWorker {
    /// Pushes a task that this thread has spawned to its own deque. It stands for `count` new tasks.
    fn push_local(&self, task: Task, count: u64);

    /// Pushes a published job.
    fn push_job(&self, job: Task);

    /// Pushes a part of a scope that this thread has opened.
    fn push_part(&self, part: Task);

    /// Pushes parts of a batch that has started, whose group that is, to where whoever waits for the batch can reach
    /// them.
    fn push_pieces(&self, pieces: &mut dyn Iterator<Item = Task>, group: usize);

    /// Returns whether what runs now may keep that many closures of a batch private, as joins keep their second halves. Other
    /// threads can raid; and it runs on top of a task that waits, so that no turn is due in between, or tasks are so short
    /// that the closures can be counted towards the next turn.
    fn may_keep_private(&self, closures: u32) -> bool;

    /// Returns whether tasks that have not started are to be refused.
    fn is_cancelling(&self) -> bool;

    /// Counts the end of a task.
    fn count(&self, end: End);

    /// Returns the pool, for jobs that come from threads outside of it. Valid while this worker thread exists, which
    /// keeps the pool's [`Shared`] alive.
    fn any_pool(&self) -> NonNull<dyn AnyPool>;

    /// Returns the pool, for code that may outlive this thread.
    fn owned_pool(&self) -> Arc<dyn AnyPool>;

    /// Returns the number of workers of the pool.
    fn workers(&self) -> usize;

    /// Returns the number of the worker that this thread is at the moment, `None` if it has no core. Takes a core that
    /// this thread was given.
    fn worker_index(&self) -> Option<usize>;

    /// Returns whether a worker is looking for work.
    fn has_searcher(&self) -> bool;

    /// Lets queued tasks start, and returns afterwards. Returns `false` at once if there are none, or if what runs on
    /// this thread is no task.
    fn yield_to_queued(&self) -> bool {
        false
    }

    /// Makes this thread look, after its task, in which process it is.
    fn note_copy(&self) {}

    /// Counts what runs on this thread and is near that worker.
    fn count_near(&self, _worker: usize) {}

    /// Publishes the oldest private jobs, because another worker wants them.
    fn answer_demand(&self);

    /// Publishes the oldest private jobs if a worker sleeps, and with `is_late` also if a worker that searches has come by
    /// since this was last called.
    fn answer_sleepers(&self, is_late: bool);

    /// Publishes what is wanted of this thread's older jobs, and raises the demand for them if a worker sleeps, before it runs
    /// closures of a batch by joins.
    fn answer_before_batch(&self);

    /// Returns when `awaited`, which was spawned on `pool`, is done.
    fn wait(&self, awaited: &dyn Awaited, pool: usize);

    /// Returns when a published job of this thread is done, or all parts of a scope. The thread that runs the job
    /// stores its number in `thief`; a scope has none.
    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>);

    /// Returns what the pool does at a spawn, if anything.
    fn admission(&self) -> Option<&Admission> {
        None
    }

    /// Returns whether what runs now may wait until there is room for what it spawns. A task may, if another thread can take
    /// over its core at once; a hook of a thread may not.
    fn may_wait_for_room(&self) -> bool {
        true
    }
}

/// A pool, for threads outside of it and for code that does not know its strategy.
pub(crate) trait AnyPool: Send + Sync {
    /// Pushes a job, one new task. The fork that it belongs to is still running, so the pool has not shut down.
    fn push_job(&self, job: Task);

    /// Pushes a new task to the injector, unless the pool is stopping and the caller is not one of its tasks.
    fn push_remote_if_open(&self, task: Task);

    /// Calls [`submit_with`].
    fn submit(&self, priority: Priority, task: Task, count: u64);

    /// Returns [`Shared::near_worker`].
    fn near_worker(&self, affinity: Affinity) -> Option<usize>;

    /// Pushes a new task that is near that worker, unless the pool is stopping and the calling thread is none of its threads.
    fn submit_near(&self, worker: usize, task: Task);

    /// Pushes a part of a scope that is near that worker. The scope is still running, so the pool has not shut down. Returns the
    /// part if the calling thread is in a hook, where nobody else may be there to run it.
    fn push_part_near(&self, worker: usize, part: Task) -> Result<(), Task>;

    /// Pushes a new task to the inbox of the worker that it is near, or to the injector, from whatever thread. The task
    /// continues something that the pool has accepted before, so it is refused only when the pool has ended.
    #[cfg(feature = "futures")]
    fn push_continued(
        &self,
        priority: Priority,
        near: Option<usize>,
        task: Task,
    ) -> Result<(), Task>;

    /// Returns the pool for code that may outlive it.
    #[cfg(feature = "futures")]
    fn owned(&self) -> Arc<dyn AnyPool>;

    /// Notifies the follower when the pool has ended, or at once if it has.
    #[cfg(feature = "futures")]
    fn follow_end(&self, follower: &Arc<dyn Follower>);

    /// Returns the counters of the pool.
    fn stats(&self) -> Stats;

    /// Returns what the pool does at the moment.
    fn dump(&self) -> PoolDump;

    /// Returns the number of workers.
    fn workers(&self) -> usize;

    /// Returns the largest number of workers.
    fn max_workers(&self) -> usize;

    /// Calls [`Shared::ask_for_workers`].
    fn ask_for_workers(&self, workers: usize);

    /// Returns [`Shared::id`].
    fn id(&self) -> usize;

    /// Calls [`Shared::must_be_here`].
    fn must_be_here(&self) {}

    /// Notifies the follower when the pool is stopped, or at once if it was.
    fn follow(&self, follower: &Arc<dyn Follower>);

    /// Returns what the pool does at a spawn, if anything.
    fn admission(&self) -> Option<&Admission> {
        None
    }
}

impl<Q: PoolQueues> AnyPool for Shared<Q> {
    fn push_job(&self, job: Task) {
        self.must_be_here();
        let tally = self.ledger.of_non_workers();
        tally.one(|block| &block.tasks_submitted);
        tally.one(|block| &block.publications);
        // SAFETY: just made, and its handle, if it has one, is with this thread.
        let group = unsafe { job.group() };
        self.queues.push_job_remote(job, group, tally);
        let cluster = self.near.of_outsider(self.id());
        self.announce(tally, self.clusters.first_place(cluster));
    }

    fn push_remote_if_open(&self, task: Task) {
        let near = with_worker_thread(self, |thread| self.queues.cluster(&thread.place.own));
        match near {
            // A task of the pool may spawn during shutdown, which waits for that task.
            Some(cluster) if job::is_open() => self.push_remote(cluster, task, 1),
            _ => self.push_remote_unless_stopping(task, 1),
        }
    }

    fn submit(&self, priority: Priority, task: Task, count: u64) {
        submit_with(self, priority, task, count);
    }

    fn near_worker(&self, affinity: Affinity) -> Option<usize> {
        Self::near_worker(self, affinity)
    }

    fn submit_near(&self, worker: usize, task: Task) {
        let mut task = Some(task);
        with_worker_thread(self, |thread| {
            thread.push_near(worker, task.take().expect("once"), NO_GROUP);
        });
        if let Some(task) = task {
            self.push_near_unless_stopping(worker, task);
        }
    }

    fn push_part_near(&self, worker: usize, part: Task) -> Result<(), Task> {
        // SAFETY: just made, and its handle is with this thread.
        let group = unsafe { part.group() };
        let mut part = Some(part);
        let mut next = || part.take().expect("once");
        let push = |thread: &WorkerThread<Q>| {
            if thread.in_service.get() {
                thread.push_near(worker, next(), group);
            }
        };
        if with_worker_thread(self, push).is_none() {
            let tally = self.ledger.of_outsiders(self.clusters.of(worker));
            self.push_near(worker, next(), group, tally);
        }
        part.map_or(Ok(()), Err)
    }

    #[cfg(feature = "futures")]
    fn push_continued(
        &self,
        priority: Priority,
        near: Option<usize>,
        task: Task,
    ) -> Result<(), Task> {
        self.must_be_here();
        if self.idle.has_ended() {
            // It is not counted.
            return Err(task);
        }
        // If the pool ends now, this thread sees that after the push, and sweeps (step E4).
        if let Some(worker) = near {
            self.push_near_from_outside(worker, task);
            return Ok(());
        }
        let near = with_worker_thread(self, |thread| self.queues.cluster(&thread.place.own));
        let cluster = near.unwrap_or_else(|| self.near.of_outsider(self.id()));
        match priority.rank() {
            None => self.push_remote(cluster, task, 1),
            Some(rank) => self.push_ranked(cluster, rank, task, 1),
        }
        Ok(())
    }

    #[cfg(feature = "futures")]
    fn owned(&self) -> Arc<dyn AnyPool> {
        crate::sync::unsize_arc!(self.me())
    }

    #[cfg(feature = "futures")]
    fn follow_end(&self, follower: &Arc<dyn Follower>) {
        self.ended.follow(follower);
    }

    fn stats(&self) -> Stats {
        self.stats()
    }

    fn dump(&self) -> PoolDump {
        self.dump()
    }

    fn workers(&self) -> usize {
        self.workers_in_use()
    }

    fn max_workers(&self) -> usize {
        self.config.workers
    }

    fn ask_for_workers(&self, workers: usize) {
        Self::ask_for_workers(self, workers);
    }

    fn id(&self) -> usize {
        self.id()
    }

    fn must_be_here(&self) {
        self.must_be_here();
    }

    fn follow(&self, follower: &Arc<dyn Follower>) {
        self.stopped.follow(follower);
    }

    fn admission(&self) -> Option<&Admission> {
        self.config.admission.as_deref()
    }
}

/// The pool and the worker thread that a thread is part of.
#[derive(Clone, Copy)]
struct Current {
    /// [`Shared::id`], zero for none. It stays set while the thread ends, so that a destructor of a thread-local
    /// that stops the pool is recognised as running on one of the pool's threads.
    pool: usize,
    /// Points to the [`WorkerThread`] of this thread.
    worker: Option<NonNull<dyn AnyWorker>>,
    /// Has the pool an [`Admission`]? A copy, because a spawn asks for it every time.
    admits: bool,
}

impl Current {
    /// Returns a part in no pool, of a thread that belonged to that one before.
    const fn after(pool: usize) -> Self {
        Self { pool, worker: None, admits: false }
    }
}

per_thread! {
    static CURRENT: Cell<Current> = Cell::new(Current::after(0));
}

/// Returns whether the pool that this thread belongs to has an [`Admission`].
#[inline]
pub(crate) fn has_admission() -> bool {
    CURRENT.with(|current| current.get().admits)
}

/// Returns the id of the pool that this thread belongs to, zero for none.
#[inline]
pub(crate) fn current_pool() -> usize {
    CURRENT.with(|current| current.get().pool)
}

/// Calls `f` with the worker thread that this thread is, if it belongs to a pool.
pub(crate) fn with_worker<R>(f: impl FnOnce(&dyn AnyWorker) -> R) -> Option<R> {
    let worker = CURRENT.with(|current| current.get().worker)?;
    // SAFETY: by the promise made to `set_current`, the worker is valid as long as it is current on this thread: until
    // `enter` has returned, or until the end of an attached thread.
    Some(f(unsafe { worker.as_ref() }))
}

/// Calls `f` with the worker thread that this thread is, if it belongs to that pool.
#[inline]
pub(crate) fn with_worker_thread<Q: PoolQueues, R>(
    shared: &Shared<Q>,
    f: impl FnOnce(&WorkerThread<Q>) -> R,
) -> Option<R> {
    let current = CURRENT.with(Cell::get);
    if current.pool != shared.id() {
        return None;
    }
    let thread = current.worker?.cast::<WorkerThread<Q>>();
    // SAFETY: alive, as in `with_worker`. It is a `WorkerThread` of this pool, as the caller of `enter` has promised:
    // no two pools that are alive have the same id, and a worker thread keeps its pool's `Shared` alive.
    Some(f(unsafe { thread.as_ref() }))
}

/// Pushes a task, which stands for `count` new ones, to the thread's own deque, or to the injector if the calling thread is
/// not the pool's. After a stop, a task from elsewhere is refused.
#[inline(always)]
pub(crate) fn submit<Q: PoolQueues>(shared: &Shared<Q>, task: Task, count: u64) {
    let mut task = Some(task);
    with_worker_thread(shared, |thread| thread.push_local(task.take().expect("once"), count));
    if let Some(task) = task {
        shared.push_remote_unless_stopping(task, count);
    }
}

/// Like [`submit`], for a task of that priority.
pub(crate) fn submit_with<Q: PoolQueues>(
    shared: &Shared<Q>,
    priority: Priority,
    task: Task,
    count: u64,
) {
    let Some(rank) = priority.rank() else { return submit(shared, task, count) };
    let mut task = Some(task);
    with_worker_thread(shared, |thread| {
        thread.push_ranked(rank, task.take().expect("once"), count);
    });
    if let Some(task) = task {
        shared.push_ranked_unless_stopping(rank, task, count);
    }
}

/// Makes the calling thread that worker thread while `f` runs.
///
/// # Safety
///
/// If `pool` is the id of a pool, then `worker` is a [`WorkerThread`] of that pool, and `demand` is one of its
/// demands.
pub(crate) unsafe fn enter(pool: usize, worker: &dyn AnyWorker, demand: &Demand, f: impl FnOnce()) {
    /// Ends this thread's part in the pool, on return and on unwinding. The pool's id stays: a thread that has left
    /// its pool must still not wait for the end of that pool.
    struct LeaveOnDrop(usize);
    impl Drop for LeaveOnDrop {
        fn drop(&mut self) {
            job::close();
            CURRENT.with(|current| current.set(Current::after(self.0)));
        }
    }
    // SAFETY: the worker and the demand belong to that pool, by the caller's promise. Both references are valid until
    // this function returns or unwinds; before that, the guard ends the thread's part in the pool.
    unsafe { set_current(pool, worker, demand) };
    let _leave = LeaveOnDrop(pool);
    f();
}

/// Makes the calling thread that worker thread, as a guest of the pool, until [`end_visit`]. Returns the id of the pool that it
/// belonged to before, zero for none: that of a thread which has left its pool, and is about to end.
///
/// # Safety
///
/// As for [`enter`]; both references stay valid until then, and the demand until `job::leave_place`, which is called before
/// the thread ends.
pub(crate) unsafe fn begin_visit(pool: usize, worker: &dyn AnyWorker, demand: &Demand) -> usize {
    // SAFETY: the caller's promise.
    unsafe { job::begin_visit(demand) };
    let admits = worker.admission().is_some();
    // SAFETY: only the lifetime changes, and it is current for no longer than it is valid, by the caller's promise.
    let worker = unsafe { std::mem::transmute::<&dyn AnyWorker, &'static dyn AnyWorker>(worker) };
    let worker = Some(NonNull::from(worker));
    CURRENT.with(|current| current.replace(Current { pool, worker, admits })).pool
}

/// Ends a visit of the calling thread, which belonged to that pool before.
pub(crate) fn end_visit(before: usize) {
    job::end_visit();
    CURRENT.with(|current| current.set(Current::after(before)));
}

/// Makes the calling thread that worker thread from now on.
///
/// # Safety
///
/// As for [`enter`]; and both references stay valid until the thread has ended or is made something else.
pub(crate) unsafe fn set_current(pool: usize, worker: &dyn AnyWorker, demand: &Demand) {
    // SAFETY: the demand is valid until the thread has ended or is made something else, by the caller's promise.
    unsafe { job::open(demand) };
    let admits = worker.admission().is_some();
    // SAFETY: only the lifetime changes, and it is current for no longer than it is valid, by the caller's promise.
    let worker = unsafe { std::mem::transmute::<&dyn AnyWorker, &'static dyn AnyWorker>(worker) };
    let worker = Some(NonNull::from(worker));
    CURRENT.with(|current| current.set(Current { pool, worker, admits }));
}

/// Forgets the pool that the calling thread belonged to.
pub(crate) fn clear_current() {
    CURRENT.with(|current| current.set(Current::after(0)));
}
