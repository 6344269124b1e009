//! A thread of a pool: how code that runs on it finds its pool, and what it spawns and runs.

use std::cell::{Cell, RefCell};
use std::iter;

use crate::fork::job;
use crate::queues::Queues;
use crate::stats::Tally;
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::{End, Refusal, Started, Task};
use crate::trace::{self, EventKind, Recorder, record};
use crate::worker::core::Core;
use crate::worker::current::AnyPool;
use crate::worker::shared::{Shared, count_end};

/// So many private jobs, the oldest, a thread publishes before it sleeps. A guess: more than others can
/// run while it does.
const SHARED: usize = 64;

/// A thread of the pool, from its start to its end.
pub(crate) struct WorkerThread<Q: Queues> {
    pub(crate) shared: Arc<Shared<Q>>,
    /// `None` after the thread has given it away. Never borrowed while a task runs.
    pub(crate) core: RefCell<Option<Box<Core<Q>>>>,
    /// Where this thread sleeps.
    pub(crate) listener: Arc<Listener>,
    /// An address near the beginning of the thread's stack.
    stack: usize,
    /// Claimed tasks since stale entries were last looked for.
    pub(crate) stale_entries: Cell<usize>,
    /// Is the thread between its start and its end, with tasks to run or to wait for?
    pub(crate) in_service: Cell<bool>,
    /// Has what the thread does written down, if anybody wants to know.
    _recorder: Option<Recorder>,
}

impl<Q: Queues> WorkerThread<Q> {
    /// For the thread that calls.
    pub(crate) fn new(shared: Arc<Shared<Q>>) -> Self {
        let here = 0_u8;
        let stack = (&raw const here).addr();
        Self {
            _recorder: shared.config.trace.as_ref().map(Recorder::new),
            shared,
            core: RefCell::new(None),
            listener: Arc::new(Listener::thread()),
            stack,
            stale_entries: Cell::new(0),
            in_service: Cell::new(false),
        }
    }

    /// Where this thread counts just now.
    #[inline]
    pub(crate) fn with_tally<R>(&self, f: impl FnOnce(Tally<'_>) -> R) -> R {
        match &*self.core.borrow() {
            Some(core) => f(core.tally()),
            None => f(self.shared.ledger.of_non_workers()),
        }
    }

    /// What this thread has spawned: `count` new tasks.
    #[inline(always)]
    pub(crate) fn push_local(&self, task: Task, count: u64) {
        let shared = &*self.shared;
        let core = self.core.borrow();
        let Some(core) = &*core else {
            return shared.push_remote(task, count);
        };
        let tally = core.tally();
        tally.add(|block| &block.tasks_submitted, count);
        shared.queues.push_local(&core.own, task, tally);
        // Alone, it will come to it itself.
        if shared.config.workers > 1 {
            shared.announce(tally);
        }
    }

    /// Parts of a fork: new tasks, where others can take them.
    pub(crate) fn push_jobs(&self, jobs: impl Iterator<Item = Task>) {
        let shared = &*self.shared;
        if !self.in_service.get() {
            return jobs.for_each(|job| self.run_new(job));
        }
        let core = self.core.borrow();
        let Some(core) = &*core else {
            return jobs.for_each(|job| shared.push_job(job));
        };
        let tally = core.tally();
        let mut count = 0;
        for job in jobs {
            count += 1;
            tally.one(|block| &block.tasks_submitted);
            if let Err(job) = shared.queues.push_job(&core.own, job, tally) {
                shared.queues.push_remote(job, tally);
            }
        }
        tally.add(|block| &block.publications, count);
        if count > 0 {
            record(EventKind::Publish { tasks: count as usize });
        }
        if shared.config.workers > 1 && count > 0 {
            shared.announce(tally);
        }
    }

    /// A part of a fork in a hook at the beginning or the end of the thread: nobody else may be there.
    #[cold]
    fn run_new(&self, job: Task) {
        let tally = self.shared.ledger.of_non_workers();
        tally.one(|block| &block.tasks_submitted);
        tally.one(|block| &block.publications);
        self.run(job);
    }

    /// Publishes what is private, because this thread is going to sleep.
    pub(crate) fn publish_before_sleep(&self) {
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
        let shared = &*self.shared;
        let hook = &shared.config.on_panic;
        if shared.is_cancelling() && !started.is_job() {
            let (count, ended) = started.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.add(|block| &block.cancellations, count));
            return ended.deliver(Some(hook));
        }
        let (end, ended) = trace::task(|| started.execute(hook));
        self.count(end);
        ended.deliver(Some(hook));
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
