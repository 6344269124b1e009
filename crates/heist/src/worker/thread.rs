//! A thread of a pool: what it holds, and how it pushes and runs tasks.

use std::cell::{Cell, RefCell};
use std::{iter, ptr};

use crate::cluster::NO_PLACE;
use crate::fork::{job, purse};
use crate::priority::Rank;
use crate::stats::{Block, Tally};
use crate::sync::{Arc, end_of_stack};
use crate::task::listener::Listener;
use crate::task::{End, Refusal, Started, Task};
use crate::trace::{self, EventKind, Recorder, record};
use crate::worker::core::Core;
use crate::worker::guest::Offers;
use crate::worker::handoff::Mailbox;
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::private::{Kind, Wanted};
use crate::worker::shared::{Shared, count_end};
use crate::worker::table::Place;

/// How many private jobs, the oldest ones, a thread publishes before it sleeps. A guess: more than the others can
/// run while it sleeps.
const PUBLISHED_BEFORE_SLEEP: usize = 64;

/// A thread of the pool, from its start to its end. Aligned, because it is written to for every task, and its neighbours
/// in memory may be what other threads read.
#[repr(align(128))]
pub(crate) struct WorkerThread<Q: PoolQueues> {
    pub(crate) shared: Arc<Shared<Q>>,
    /// The core that makes this thread a worker. `None` after the thread has handed it to another one. Never borrowed
    /// while a task runs.
    pub(crate) core: RefCell<Option<Box<Core>>>,
    /// The number of that core, [`NO_PLACE`] for none.
    core_index: Cell<usize>,
    /// The counters of that core, null for none. A copy, because they are written to several times per task.
    block: Cell<*const Block>,
    /// The thread's place in the table, and its own queues.
    pub(crate) place: Place<Q>,
    /// Where this thread receives a core.
    pub(crate) mailbox: Arc<Mailbox>,
    /// Has this thread spawned or stolen, or taken a near task, since its queues were last empty? If not, what is in there came from the
    /// injector, in its order, and is to be run in that order: there is nothing to be fair to. If there are several
    /// injectors, this is also set when it has taken something from one of them.
    pub(crate) has_spawned: Cell<bool>,
    /// The place of the thread from which this one has last stolen.
    pub(crate) last_victim: Cell<usize>,
    /// Counts the looks into other clusters, and says into which one the next look is.
    pub(crate) turn: Cell<usize>,
    /// The number of looks in a row in which this thread has found nothing on its own NUMA node.
    pub(crate) near_looks: Cell<u32>,
    /// Counts the raids, and says in which other cluster the next one looks for jobs.
    pub(crate) raids: Cell<usize>,
    /// The place of a thread that has private jobs, where the next raid looks first, or [`NO_PLACE`].
    pub(crate) seen_private: Cell<usize>,
    /// Has a raid found a thread that keeps a few private tasks, and goes on to look at its demand?
    pub(crate) seen: Cell<bool>,
    /// When this thread went on with its task without a core, if it has none and wants one: [`Shared::now`].
    pub(crate) resumed: Cell<Option<u64>>,
    /// The processor to which this thread is pinned, if it is.
    pub(crate) pinned: Cell<Option<usize>>,
    /// Where this thread sleeps, and how it is woken.
    pub(crate) listener: Arc<Listener>,
    /// An address near the beginning of the thread's stack.
    stack: usize,
    /// The end of the stack of a guest, if the system tells.
    end_of_stack: Option<usize>,
    /// Is this a guest, which never has a core (`guest`)?
    pub(crate) is_guest: bool,
    /// The number of tasks claimed since stale entries were last dropped.
    pub(crate) claims: Cell<usize>,
    /// Is the thread between its start hook and its stop hook, where it can run tasks and wait for them?
    pub(crate) in_service: Cell<bool>,
    /// Does what runs now run on top of a task that waits?
    pub(crate) on_top: Cell<bool>,
    /// Records this thread's events while it exists, if the pool keeps a trace.
    recorder: Option<Recorder>,
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Returns the state of the calling thread, which has no core yet.
    pub(crate) fn new(shared: Arc<Shared<Q>>, place: Place<Q>) -> Self {
        let listener = Arc::new(Listener::thread());
        Self {
            recorder: shared.config.trace.as_ref().map(|log| Recorder::new(log, place.index)),
            shared,
            core: RefCell::new(None),
            core_index: Cell::new(NO_PLACE),
            block: Cell::new(ptr::null()),
            mailbox: Arc::new(Mailbox::new(Arc::clone(&listener), place.index)),
            place,
            resumed: Cell::new(None),
            has_spawned: Cell::new(false),
            last_victim: Cell::new(0),
            turn: Cell::new(0),
            near_looks: Cell::new(0),
            raids: Cell::new(0),
            seen_private: Cell::new(NO_PLACE),
            seen: Cell::new(false),
            pinned: Cell::new(None),
            listener,
            stack: address_of_frame(),
            end_of_stack: None,
            is_guest: false,
            claims: Cell::new(0),
            in_service: Cell::new(false),
            on_top: Cell::new(false),
        }
    }

    /// Returns the state of the calling thread, which is a guest.
    pub(crate) fn guest(shared: Arc<Shared<Q>>, place: Place<Q>) -> Self {
        let in_service = Cell::new(true);
        Self {
            is_guest: true,
            in_service,
            end_of_stack: end_of_stack(),
            ..Self::new(shared, place)
        }
    }

    /// Begins a visit of a guest.
    pub(crate) fn begin_visit(&self, offers: Offers) {
        let demand = &self.shared.table.entry(self.place.index).demand;
        demand.begin_visit(offers == Offers::Later);
        self.restore_own_demand();
        self.recorder.iter().for_each(Recorder::resume);
    }

    /// Ends a visit of a guest.
    pub(crate) fn end_visit(&self) {
        self.recorder.iter().for_each(Recorder::pause);
        self.shared.table.entry(self.place.index).demand.end_visit();
    }

    /// Calls `f` with the counters that this thread writes at the moment.
    #[inline]
    pub(crate) fn with_tally<R>(&self, f: impl FnOnce(Tally<'_>) -> R) -> R {
        f(self.own_tally().unwrap_or_else(|| self.shared.ledger.of_non_workers()))
    }

    /// Returns the counters of the worker that this thread is at the moment, `None` if it has no core.
    #[inline(always)]
    fn own_tally(&self) -> Option<Tally<'_>> {
        // SAFETY: a block of the pool's ledger, which lives as long as `shared`.
        let block = unsafe { self.block.get().as_ref() }?;
        Some(Tally::own(block))
    }

    /// Notes which core this thread has from now on, if any, and returns the one that it had.
    pub(crate) fn set_core(&self, core: Option<Box<Core>>) -> Option<Box<Core>> {
        let index = core.as_ref().map_or(NO_PLACE, |core| core.index);
        let ledger = &self.shared.ledger;
        self.core_index.set(index);
        self.block.set(if index == NO_PLACE { ptr::null() } else { ledger.block_of_worker(index) });
        self.core.replace(core)
    }

    /// Returns the number of the worker that this thread is at the moment, `None` if it has no core.
    #[inline(always)]
    pub(crate) fn worker(&self) -> Option<usize> {
        let index = self.core_index.get();
        (index != NO_PLACE).then_some(index)
    }

    /// Pushes a task that this thread has spawned to its own deque. It stands for `count` new tasks.
    #[inline(always)]
    pub(crate) fn push_local(&self, task: Task, count: u64) {
        Q::Waiting::before_push(self);
        let shared = &*self.shared;
        let Some(tally) = self.own_tally() else { return self.push_without_core(task, count) };
        tally.add(|block| &block.tasks_submitted, count);
        self.has_spawned.set(true);
        let Err(task) = self.push_private(Kind::Task, task) else { return };
        shared.queues.push_local(&self.place.own, task, tally);
        // A single worker will find the task by itself.
        if shared.config.workers > 1 {
            shared.announce(tally, self.place.index);
        }
    }

    /// Pushes a task that this thread has spawned, and that is not of normal priority. It stands for `count` new tasks.
    pub(crate) fn push_ranked(&self, rank: Rank, task: Task, count: u64) {
        self.pick_up_core();
        self.with_tally(|tally| {
            tally.add(|block| &block.tasks_submitted, count);
            self.shared.queues.push_ranked(rank, task, tally);
            self.shared.announce(tally, self.place.index);
        });
    }

    #[cold]
    #[inline(never)]
    fn push_without_core(&self, task: Task, count: u64) {
        self.pick_up_core();
        if self.is_guest {
            // It soon leaves the pool, and would not come to run it.
            let cluster = self.shared.clusters.of(self.place.index);
            return self.shared.push_remote(cluster, task, count);
        }
        self.has_spawned.set(true);
        self.with_tally(|tally| {
            tally.add(|block| &block.tasks_submitted, count);
            self.shared.queues.push_local(&self.place.own, task, tally);
            self.shared.announce(tally, self.place.index);
        });
    }

    /// Pushes published jobs to where other workers can take them.
    pub(crate) fn push_jobs(&self, jobs: impl Iterator<Item = Task>) {
        let shared = &*self.shared;
        if !self.in_service.get() {
            return jobs.for_each(|job| self.run_in_hook(job));
        }
        self.has_spawned.set(true);
        self.with_tally(|tally| {
            let mut count = 0;
            for job in jobs {
                count += 1;
                tally.add(|block| &block.tasks_submitted, u64::from(job.counts()));
                // SAFETY: just made, and its handle is in a frame of this thread.
                let group = unsafe { job.group() };
                shared.queues.push_job(&self.place.own, job, group);
            }
            if count > 0 {
                tally.add(|block| &block.publications, count);
                record(EventKind::Publish { tasks: count as usize });
                shared.announce(tally, self.place.index);
            }
        });
    }

    /// Pushes parts of a batch that has started, whose group that is. They are no new tasks.
    pub(crate) fn push_pieces(&self, pieces: &mut dyn Iterator<Item = Task>, group: usize) {
        let shared = &*self.shared;
        self.has_spawned.set(true);
        shared.queues.push_jobs(&self.place.own, pieces, group);
        self.with_tally(|tally| shared.announce(tally, self.place.index));
    }

    /// Runs a job that was published in a hook at the start or the end of this thread. There may be no other thread
    /// that could run it.
    #[cold]
    fn run_in_hook(&self, job: Task) {
        let tally = self.shared.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, u64::from(job.counts()));
        tally.one(|block| &block.publications);
        self.run(job);
    }

    /// Publishes private jobs and all private tasks, because this thread is about to sleep.
    pub(crate) fn publish_before_sleep(&self) {
        self.push_jobs(iter::from_fn(job::publish_oldest).take(PUBLISHED_BEFORE_SLEEP));
        self.publish_tasks(Wanted::All);
    }

    /// Runs a task from a queue while no other task is on this thread's stack. Afterwards there may be credit in the purse
    /// of this thread. The caller calls this again next, or calls [`purse::flush`].
    #[inline(always)]
    pub(crate) fn run_first(&self, task: Task) {
        if let Some(started) = task.start() {
            let root = started.root();
            job::begin(root);
            self.execute(started);
            job::end(root);
        }
    }

    /// Runs a task from a queue on top of a task that waits.
    pub(crate) fn run(&self, task: Task) {
        if let Some(started) = task.start() {
            self.run_started(started);
        }
    }

    /// Runs a task that was started, on top of a task that waits.
    pub(crate) fn run_started(&self, started: Started) {
        self.run_among_others(started);
        purse::flush();
    }

    /// Like [`run_started`](Self::run_started), but keeps credit for the next part of the same scope. The caller calls this
    /// again next, or calls [`purse::flush`].
    pub(crate) fn run_among_others(&self, started: Started) {
        self.on_top(|| job::in_root(started.root(), || self.execute(started)));
    }

    /// Calls `f`, which runs a task on top of one that waits. `f` does not panic.
    #[inline(always)]
    pub(crate) fn on_top<R>(&self, f: impl FnOnce() -> R) -> R {
        let outer = self.on_top.replace(true);
        let result = f();
        self.on_top.set(outer);
        result
    }

    /// Runs a task. If that was a part of a scope, there may be credit in the purse of this thread.
    #[inline(always)]
    fn execute(&self, started: Started) {
        let shared = &*self.shared;
        // A part of a scope does this itself, if the credit is not its scope's (C4).
        if purse::any() && !started.is_credited() {
            purse::flush();
        }
        let hook = &shared.config.on_panic;
        if (shared.is_cancelling() || started.is_revoked()) && !started.is_job() {
            let (count, ended) = started.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.add(|block| &block.cancellations, count));
            return ended.deliver(Some(hook));
        }
        let (end, ended) =
            trace::task_named(started, Started::name, |started| started.execute(hook));
        self.count(end);
        ended.deliver(Some(hook));
    }

    /// Counts the end of a task. Called before the outcome is delivered, so that a thread that has the outcome
    /// also sees it counted.
    #[inline]
    pub(crate) fn count(&self, end: End) {
        self.with_tally(|tally| count_end(tally, end));
    }

    /// Returns how many bytes of its stack the thread has used.
    pub(crate) fn stack_used(&self) -> usize {
        address_of_frame().abs_diff(self.stack)
    }

    /// Returns how many bytes of its stack a guest has left, if that is known.
    pub(crate) fn stack_left(&self) -> Option<usize> {
        Some(address_of_frame().saturating_sub(self.end_of_stack?))
    }
}

/// Returns an address near the end of the stack in use.
#[inline(never)]
fn address_of_frame() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}
