//! A thread of a pool: how code that runs on it finds its pool, and what it spawns and runs.

use std::cell::{Cell, RefCell};
use std::iter;
use std::ptr::NonNull;

use crate::cancel::Follower;
use crate::core::{Core, count_end};
use crate::demand::Demand;
use crate::job;
use crate::listener::Listener;
use crate::queues::Queues;
use crate::seat::Seat;
use crate::stats::Tally;
use crate::sync::{Arc, AtomicUsize, per_thread};
use crate::task::{Awaited, End, Refusal, Started, Task};
use crate::trace::{self, EventKind, Recorder, record};

/// So many private jobs, the oldest, a thread publishes before it sleeps. A guess: more than others can
/// run while it does.
const SHARED: usize = 64;

/// A thread of the pool, from its start to its end.
pub(crate) struct Member<Q: Queues> {
    pub(crate) core: Arc<Core<Q>>,
    /// `None` after the thread has given it away. Never borrowed while a task runs.
    pub(crate) seat: RefCell<Option<Box<Seat<Q>>>>,
    /// Where this thread sleeps.
    pub(crate) listener: Arc<Listener>,
    /// An address near the beginning of the thread's stack.
    stack: usize,
    /// Claimed tasks since husks were last looked for.
    pub(crate) husks: Cell<usize>,
    /// Is the thread between its start and its end, with tasks to run or to wait for?
    pub(crate) serving: Cell<bool>,
    /// Has what the thread does written down, if anybody wants to know.
    _recorder: Option<Recorder>,
}

/// What a thread is, as seen by code that does not know the strategy.
pub(crate) trait Host {
    /// Takes in what this thread has spawned: `count` new tasks.
    fn submit(&self, task: Task, count: u64);

    /// Takes in a part of a fork, one new task.
    fn submit_job(&self, job: Task);

    /// For parts of a fork that come from threads of no pool or of another one.
    fn intake(&self) -> NonNull<dyn Intake>;

    /// Likewise, for those who may outlive this thread.
    fn pool(&self) -> Arc<dyn Intake>;

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
pub(crate) trait Intake: Send + Sync {
    /// Takes in a part of a fork, one new task. Something of the fork is running, so the pool has not
    /// come to its end.
    fn inject_job(&self, job: Task);

    /// Takes in a new task: after what is there already, and not if the pool has stopped.
    fn take_in(&self, task: Task);

    fn workers(&self) -> usize;

    /// `Core::id`.
    fn id(&self) -> usize;

    /// Has the follower told when the pool stops, or at once if it has.
    fn follow(&self, follower: &Arc<dyn Follower>);
}

impl<Q: Queues> Intake for Core<Q> {
    fn inject_job(&self, job: Task) {
        self.ledger.of_others().one(|block| &block.publications);
        self.inject(job, 1);
    }

    fn take_in(&self, task: Task) {
        // What runs on the pool may spawn after a stop, which waits for it.
        if current_pool() == self.id() && job::is_open() {
            self.inject(task, 1);
        } else {
            self.submit(task, 1);
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

/// The member that a thread is.
#[derive(Clone, Copy)]
struct Current {
    /// `Core::id`, zero for none. It stays when the thread comes to its end.
    pool: usize,
    /// Points to the `Member` on the stack of this thread.
    host: Option<NonNull<dyn Host>>,
}

per_thread! {
    static CURRENT: Cell<Current> = Cell::new(Current { pool: 0, host: None });
}

/// The pool that this thread belongs to, zero for none.
#[inline]
pub(crate) fn current_pool() -> usize {
    CURRENT.with(|current| current.get().pool)
}

/// Calls `f` with what this thread is to its pool, if it belongs to one.
pub(crate) fn with_host<R>(f: impl FnOnce(&dyn Host) -> R) -> Option<R> {
    let host = CURRENT.with(|current| current.get().host)?;
    // SAFETY: `enter` borrows the host for as long as it is current, on this thread.
    Some(f(unsafe { host.as_ref() }))
}

/// Calls `f` with the member that this thread is, if it belongs to that pool.
#[inline]
pub(crate) fn with_member<Q: Queues, R>(
    core: &Core<Q>,
    f: impl FnOnce(&Member<Q>) -> R,
) -> Option<R> {
    let current = CURRENT.with(Cell::get);
    if current.pool != core.id() {
        return None;
    }
    let member = current.host?.cast::<Member<Q>>();
    // SAFETY: alive, as in `with_host`; a member of this pool, as whoever called `enter` has said. No two
    // cores that are alive have the same id, and a member keeps its core alive.
    Some(f(unsafe { member.as_ref() }))
}

/// Makes that what the thread is, while `f` runs.
///
/// # Safety
///
/// If `pool` is the id of a pool, the host is a `Member` of it, and the demand one of its.
pub(crate) unsafe fn enter(pool: usize, host: &dyn Host, demand: &Demand, f: impl FnOnce()) {
    /// A thread that has left its pool is still one that must not wait for the pool's end.
    struct Leave(usize);
    impl Drop for Leave {
        fn drop(&mut self) {
            job::close();
            CURRENT.with(|current| current.set(Current { pool: self.0, host: None }));
        }
    }
    // SAFETY: there until the thread has left.
    unsafe { become_member(pool, host, demand) };
    let _leave = Leave(pool);
    f();
}

/// Makes that what the thread is.
///
/// # Safety
///
/// As for [`enter`]; and they are there until the thread has ended, or is something else.
pub(crate) unsafe fn become_member(pool: usize, host: &dyn Host, demand: &Demand) {
    // SAFETY: as the caller says.
    unsafe { job::open(demand) };
    // SAFETY: only the lifetime changes, and it is current for no longer than it is there.
    let host = unsafe { std::mem::transmute::<&dyn Host, &'static dyn Host>(host) };
    CURRENT.with(|current| current.set(Current { pool, host: Some(NonNull::from(host)) }));
}

/// A thread that has left its pool has nothing to do with it any more.
pub(crate) fn forget_pool() {
    CURRENT.with(|current| current.set(Current { pool: 0, host: None }));
}

impl<Q: Queues> Member<Q> {
    /// For the thread that calls.
    pub(crate) fn new(core: Arc<Core<Q>>) -> Self {
        let here = 0_u8;
        let stack = (&raw const here).addr();
        Self {
            _recorder: core.config.trace.as_ref().map(Recorder::new),
            core,
            seat: RefCell::new(None),
            listener: Arc::new(Listener::thread()),
            stack,
            husks: Cell::new(0),
            serving: Cell::new(false),
        }
    }

    /// Where this thread counts just now.
    #[inline]
    pub(crate) fn with_tally<R>(&self, f: impl FnOnce(Tally<'_>) -> R) -> R {
        match &*self.seat.borrow() {
            Some(seat) => f(seat.tally()),
            None => f(self.core.ledger.of_others()),
        }
    }

    /// What this thread has spawned: `count` new tasks.
    #[inline(always)]
    pub(crate) fn push(&self, task: Task, count: u64) {
        let core = &*self.core;
        let seat = self.seat.borrow();
        let Some(seat) = &*seat else {
            return core.inject(task, count);
        };
        let tally = seat.tally();
        tally.add(|block| &block.tasks_submitted, count);
        core.queues.push(&seat.own, task, tally);
        // Alone, it will come to it itself.
        if core.config.workers > 1 {
            core.announce(tally);
        }
    }

    /// Parts of a fork: new tasks, where others can take them.
    pub(crate) fn push_jobs(&self, jobs: impl Iterator<Item = Task>) {
        let core = &*self.core;
        if !self.serving.get() {
            return jobs.for_each(|job| self.run_new(job));
        }
        let seat = self.seat.borrow();
        let Some(seat) = &*seat else {
            return jobs.for_each(|job| core.inject_job(job));
        };
        let tally = seat.tally();
        let mut count = 0;
        for job in jobs {
            count += 1;
            tally.one(|block| &block.tasks_submitted);
            if let Err(job) = core.queues.push_job(&seat.own, job, tally) {
                core.queues.inject(job, tally);
            }
        }
        tally.add(|block| &block.publications, count);
        if count > 0 {
            record(EventKind::Publish { tasks: count as usize });
        }
        if core.config.workers > 1 && count > 0 {
            core.announce(tally);
        }
    }

    /// A part of a fork in a hook at the beginning or the end of the thread: nobody else may be there.
    #[cold]
    fn run_new(&self, job: Task) {
        let tally = self.core.ledger.of_others();
        tally.one(|block| &block.tasks_submitted);
        tally.one(|block| &block.publications);
        self.run(job);
    }

    /// Publishes what is private, because this thread is going to sleep.
    pub(crate) fn publish_all(&self) {
        self.push_jobs(iter::from_fn(job::publish_oldest).take(SHARED));
    }

    /// Runs a task that came out of a queue, with nothing beneath it on the stack.
    #[inline(always)]
    pub(crate) fn run_first(&self, task: Task) {
        if let Some(started) = task.start() {
            job::begin(started.root());
            self.execute(started);
        }
    }

    /// Likewise, on top of something that waits.
    pub(crate) fn run(&self, task: Task) {
        if let Some(started) = task.start() {
            self.run_started(started);
        }
    }

    /// Likewise, one that was started.
    pub(crate) fn run_started(&self, started: Started) {
        job::in_root(started.root(), || self.execute(started));
    }

    #[inline(always)]
    fn execute(&self, started: Started) {
        let core = &*self.core;
        let hook = &core.config.on_panic;
        if core.is_cancelling() && !started.is_job() {
            let (count, ended) = started.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.add(|block| &block.cancellations, count));
            return ended.publish(Some(hook));
        }
        let (end, ended) = trace::task(|| started.execute(hook));
        self.count(end);
        ended.publish(Some(hook));
    }

    /// Before the outcome is published, so that whoever has seen it sees it counted.
    #[inline]
    pub(crate) fn count(&self, end: End) {
        self.with_tally(|tally| count_end(tally, end));
    }

    /// How much of its stack the thread has used.
    pub(crate) fn stack_used(&self) -> usize {
        let here = 0_u8;
        (&raw const here).addr().abs_diff(self.stack)
    }
}
