//! How code that runs on a thread finds the pool and the worker that the thread belongs to.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::cancel::Follower;
use crate::fork::demand::Demand;
use crate::fork::job;
use crate::queues::Queues;
use crate::sync::{Arc, AtomicUsize, per_thread};
use crate::task::{Awaited, Task};
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;

/// What a thread is, as seen by code that does not know the strategy.
pub(crate) trait AnyWorker {
    /// Takes in what this thread has spawned: `count` new tasks.
    fn push_local(&self, task: Task, count: u64);

    /// Takes in a part of a fork, one new task.
    fn push_job(&self, job: Task);

    /// For parts of a fork that come from threads of no pool or of another one.
    fn any_pool(&self) -> NonNull<dyn AnyPool>;

    /// Likewise, for those who may outlive this thread.
    fn pool(&self) -> Arc<dyn AnyPool>;

    /// Of the pool.
    fn workers(&self) -> usize;

    /// Is there a worker that is looking for work?
    fn has_searcher(&self) -> bool;

    /// Makes tasks of the oldest private jobs, because somebody wants them.
    fn answer_demand(&self);

    /// Returns when it is done; `pool` is where it was spawned.
    fn wait(&self, awaited: &dyn Awaited, pool: usize);

    /// Likewise, for a part of a fork of this thread's, and for all parts of a scope.
    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>);
}

/// A pool, as seen by a thread that is none of its.
pub(crate) trait AnyPool: Send + Sync {
    /// Takes in a part of a fork, one new task. Something of the fork is running, so the pool has not
    /// come to its end.
    fn push_job(&self, job: Task);

    /// Takes in a new task: after what is there already, and not if the pool has stopped.
    fn push_remote(&self, task: Task);

    fn workers(&self) -> usize;

    /// `Shared::id`.
    fn id(&self) -> usize;

    /// Has the follower told when the pool stops, or at once if it has.
    fn follow(&self, follower: &Arc<dyn Follower>);
}

impl<Q: Queues> AnyPool for Shared<Q> {
    fn push_job(&self, job: Task) {
        self.ledger.of_non_workers().one(|block| &block.publications);
        self.push_remote(job, 1);
    }

    fn push_remote(&self, task: Task) {
        // What runs on the pool may spawn after a stop, which waits for it.
        if current_pool() == self.id() && job::is_open() {
            self.push_remote(task, 1);
        } else {
            self.push_remote_unless_stopping(task, 1);
        }
    }

    fn workers(&self) -> usize {
        self.config.workers
    }

    fn id(&self) -> usize {
        self.id()
    }

    fn follow(&self, follower: &Arc<dyn Follower>) {
        self.stopped.follow(follower);
    }
}

/// The worker thread that a thread is.
#[derive(Clone, Copy)]
struct Current {
    /// `Shared::id`, zero for none. It stays when the thread comes to its end.
    pool: usize,
    /// Points to the `WorkerThread` on the stack of this thread.
    worker: Option<NonNull<dyn AnyWorker>>,
}

per_thread! {
    static CURRENT: Cell<Current> = Cell::new(Current { pool: 0, worker: None });
}

/// The pool that this thread belongs to, zero for none.
#[inline]
pub(crate) fn current_pool() -> usize {
    CURRENT.with(|current| current.get().pool)
}

/// Calls `f` with what this thread is to its pool, if it belongs to one.
pub(crate) fn with_worker<R>(f: impl FnOnce(&dyn AnyWorker) -> R) -> Option<R> {
    let worker = CURRENT.with(|current| current.get().worker)?;
    // SAFETY: `enter` borrows the host for as long as it is current, on this thread.
    Some(f(unsafe { worker.as_ref() }))
}

/// Calls `f` with the worker thread that this thread is, if it belongs to that pool.
#[inline]
pub(crate) fn with_worker_thread<Q: Queues, R>(
    shared: &Shared<Q>,
    f: impl FnOnce(&WorkerThread<Q>) -> R,
) -> Option<R> {
    let current = CURRENT.with(Cell::get);
    if current.pool != shared.id() {
        return None;
    }
    let thread = current.worker?.cast::<WorkerThread<Q>>();
    // SAFETY: alive, as in `with_worker`; a worker thread of this pool, as whoever called `enter` has said. No two
    // cores that are alive have the same id, and a worker thread keeps its core alive.
    Some(f(unsafe { thread.as_ref() }))
}

/// Makes that what the thread is, while `f` runs.
///
/// # Safety
///
/// If `pool` is the id of a pool, the host is a `WorkerThread` of it, and the demand one of its.
pub(crate) unsafe fn enter(pool: usize, worker: &dyn AnyWorker, demand: &Demand, f: impl FnOnce()) {
    /// A thread that has left its pool is still one that must not wait for the pool's end.
    struct Leave(usize);
    impl Drop for Leave {
        fn drop(&mut self) {
            job::close();
            CURRENT.with(|current| current.set(Current { pool: self.0, worker: None }));
        }
    }
    // SAFETY: there until the thread has left.
    unsafe { set_current(pool, worker, demand) };
    let _leave = Leave(pool);
    f();
}

/// Makes that what the thread is.
///
/// # Safety
///
/// As for [`enter`]; and they are there until the thread has ended, or is something else.
pub(crate) unsafe fn set_current(pool: usize, worker: &dyn AnyWorker, demand: &Demand) {
    // SAFETY: as the caller says.
    unsafe { job::open(demand) };
    // SAFETY: only the lifetime changes, and it is current for no longer than it is there.
    let worker = unsafe { std::mem::transmute::<&dyn AnyWorker, &'static dyn AnyWorker>(worker) };
    CURRENT.with(|current| current.set(Current { pool, worker: Some(NonNull::from(worker)) }));
}

/// A thread that has left its pool has nothing to do with it any more.
pub(crate) fn clear_current() {
    CURRENT.with(|current| current.set(Current { pool: 0, worker: None }));
}
