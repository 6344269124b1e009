//! What a thread does while it waits for a task.
//!
//! A thread outside of any pool sleeps (`outside`). A worker first tries to run the task itself: it needs that task anyway, so
//! no unrelated task ends up beneath another on its stack. If the task is running elsewhere, the worker hands its core
//! to another thread as soon as there is something to do, and sleeps. So every stack is a chain of tasks each of which
//! waits for the one above it, and the topmost one waits for a task that is running: waiting adds no deadlock
//! beyond those of one thread per task.
//!
//! The exception is a system that refuses threads. There, the last worker that is awake runs any other task on top
//! of the task that waits. A task may then wait for one beneath it, but otherwise nothing would run at all.
//!
//! The same mechanism bounds the stack: a thread that has used a good part of its stack does not run the awaited
//! task itself, but has the next thread run it on a stack of its own.

use std::iter;
use std::ptr::NonNull;
use std::time::Duration;

use crate::fork::job;
use crate::idle::WakeReason;
use crate::sync::{Arc, AtomicUsize, pause, yield_now};
use crate::task::{Awaited, Refusal, Started, Task};
use crate::trace::{self, EventKind, record};
use crate::worker::core::Core;
use crate::worker::current::{AnyPool, AnyWorker, with_worker};
use crate::worker::help::Classified;
use crate::worker::outside::wait_outside;
use crate::worker::policy::{HandOffCore, PoolQueues, WaitPolicy};
use crate::worker::run::Refused;
use crate::worker::shared::{Shared, count_wake_up};
use crate::worker::thread::WorkerThread;

/// A worker whose deque is not empty still takes one in this many tasks from the injector, so that workers which feed
/// themselves do not starve work from outside. A prime, so that it does not fall into step with other periods.
const INJECTOR_INTERVAL: u32 = 61;

/// A task is run on top of the one that waits for it while at most one part in this many of the stack is used. The
/// rest is for the task.
const STACK_SHARE: usize = 4;

/// How often a thread looks at a task that is running elsewhere before it considers sleeping. To sleep and to be
/// woken takes some ten microseconds at best. Few under a checker, so that it explores what comes after the looks.
pub(crate) const LOOKS: u32 = if cfg!(shuttle) { 1 } else { 64 };
/// The number of pauses between two looks.
pub(crate) const PAUSES: u32 = if cfg!(shuttle) { 1 } else { 8 };
/// How often the thread then yields its processor, which the task may need.
pub(crate) const YIELDS: u32 = if cfg!(shuttle) { 1 } else { 4 };

/// How long a thread waits until it asks the system for another thread again. A guess.
const THREAD_RETRY: Duration = Duration::from_millis(10);

/// After this many claimed tasks, stale entries are looked for. A guess.
const STALE_ENTRIES: usize = 64;

/// Returns when the task, which was spawned on `pool`, is done. Works on any thread.
pub(crate) fn wait(awaited: &dyn Awaited, pool: usize) {
    if awaited.is_done() {
        return;
    }
    if with_worker(|worker| worker.wait(awaited, pool)).is_none() {
        wait_outside(awaited);
    }
}

/// Looks for a moment whether the task is done, and returns the answer.
pub(crate) fn watch(awaited: &dyn Awaited) -> bool {
    for _ in 0..LOOKS {
        if awaited.is_done() {
            return true;
        }
        (0..PAUSES).for_each(|_| pause());
    }
    for _ in 0..YIELDS {
        yield_now();
        if awaited.is_done() {
            return true;
        }
    }
    false
}

impl<Q: PoolQueues> AnyWorker for WorkerThread<Q> {
    fn push_local(&self, task: Task, count: u64) {
        Self::push_local(self, task, count);
    }

    fn push_job(&self, job: Task) {
        Q::Waiting::before_push(self);
        self.push_jobs(iter::once(job));
    }

    fn any_pool(&self) -> NonNull<dyn AnyPool> {
        NonNull::from(&*self.shared as &dyn AnyPool)
    }

    fn owned_pool(&self) -> Arc<dyn AnyPool> {
        Arc::clone(&self.shared) as _
    }

    fn workers(&self) -> usize {
        self.shared.config.workers
    }

    fn has_searcher(&self) -> bool {
        self.shared.idle.has_searcher()
    }

    fn answer_demand(&self) {
        Self::answer_demand(self);
    }

    fn wait(&self, awaited: &dyn Awaited, pool: usize) {
        Q::Waiting::wait(self, awaited, pool);
    }

    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        Q::Waiting::wait_for_job(self, awaited, thief);
    }
}

impl<Q: PoolQueues> WaitPolicy<Q> for HandOffCore {
    const RAIDS: bool = false;
    const ALL_SEARCH: bool = false;
    const INJECTOR_INTERVAL: Option<u32> = Some(INJECTOR_INTERVAL);

    fn wait(thread: &WorkerThread<Q>, awaited: &dyn Awaited, pool: usize) {
        let ours = pool == thread.shared.id();
        if ours && thread.is_shallow() && thread.run_awaited(awaited) {
            return;
        }
        if watch(awaited) || !awaited.listen(Arc::clone(&thread.listener)) {
            return;
        }
        // Either the stack is too deep, or the task has started. In the first case another thread must run it, and
        // before anything else: the other tasks may wait for something that this thread holds.
        let claimed = if ours { awaited.claim() } else { None };
        // SAFETY: `awaited` borrows the handle until this call returns, which is not before the task is done.
        let delegate = claimed.map(|claimed| unsafe { claimed.delegate() });
        thread.publish_before_sleep();
        match delegate {
            None => thread.wait_long(awaited, false),
            Some(task) => thread.wait_for_delegate(awaited, task),
        }
    }

    fn wait_for_job(thread: &WorkerThread<Q>, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        thread.help_and_wait(awaited, thief);
    }

    #[inline(always)]
    fn before_push(_: &WorkerThread<Q>) {}

    fn before_answer() {}

    fn after_search(core: &Core<Q>, shared: &Shared<Q>, found: bool) {
        if !found {
            shared.raise_demand(core.index);
        }
    }
}

/// How a wait with a core has ended.
enum Waited {
    Done,
    /// The core went to another thread.
    CoreGone,
    /// There is a job of the same root, which may run here.
    Found(Started),
    /// There is a task that only this thread can run.
    NobodyElse(Task),
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Runs the awaited task on this thread, unless it has started. Returns whether it did.
    fn run_awaited(&self, awaited: &dyn Awaited) -> bool {
        let newest = self.core.borrow().as_ref().and_then(|core| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.shared.queues.take_back(&core.own, is_it, core.tally())
        });
        if let Some(task) = newest {
            self.run(task);
            return true;
        }
        self.run_claimed(awaited)
    }

    /// Claims the awaited task by its handle and runs it on this thread. Returns `false` if it has started already.
    pub(crate) fn run_claimed(&self, awaited: &dyn Awaited) -> bool {
        let Some(claimed) = awaited.claim() else { return false };
        if self.shared.is_cancelling() && !claimed.is_job() {
            claimed.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.one(|block| &block.cancellations));
        } else {
            let execute = || trace::task(|| claimed.execute(&self.shared.config.on_panic));
            let root = if claimed.is_job() { job::root() } else { awaited.id() };
            self.count(job::in_root(root, execute));
        }
        claimed.done();
        self.drop_stale_entries();
        true
    }

    /// Returns whether enough of the stack is left to run something on top of a task that waits.
    pub(crate) fn is_shallow(&self) -> bool {
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE
    }

    /// Like [`is_shallow`](Self::is_shallow), for something that no other thread could run.
    fn has_room(&self) -> bool {
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE * (STACK_SHARE - 1)
    }

    /// Waits until the task is done, asleep most of the time. With `helps`, it runs jobs of the same root meanwhile.
    pub(crate) fn wait_long(&self, awaited: &dyn Awaited, helps: bool) {
        while !awaited.is_done() {
            if self.core.borrow().is_none() {
                // The thread has counted as away since it handed off its core, and does so until it retires.
                return self.sleep_until(awaited);
            }
            self.shared.idle.enter_away();
            match self.wait_with_core(awaited, helps) {
                Waited::Done => self.shared.idle.leave_away(),
                Waited::CoreGone => {}
                Waited::Found(job) => {
                    self.shared.idle.leave_away();
                    self.restore_demand();
                    self.run_started(job);
                }
                Waited::NobodyElse(task) => {
                    self.shared.idle.leave_away();
                    self.run(task);
                }
            }
        }
    }

    /// Waits until the awaited task is done, which another thread is to run as `task`.
    pub(crate) fn wait_for_delegate(&self, awaited: &dyn Awaited, task: Task) {
        if self.core.borrow().is_none() {
            self.shared.push_remote(task, 0);
            return self.sleep_until(awaited);
        }
        self.shared.idle.enter_away();
        match self.hand_off_core(task) {
            Ok(()) => self.sleep_until(awaited),
            Err(refused) => {
                // There is no thread with more stack, so the task runs here.
                let task = match refused {
                    Refused::Kept(task) => {
                        self.shared.handoff.core_in_use_again();
                        task
                    }
                    Refused::Last(task) => task,
                };
                self.shared.idle.leave_away();
                self.run(task);
            }
        }
    }

    /// Drops stale entries from the queues at times, after this thread has claimed a task by its handle.
    ///
    /// A claimed task leaves a stale entry in a queue, which is dropped by the thread that takes it out. But a task
    /// that goes on spawning and waiting might keep its worker from ever taking that entry out. So after every
    /// [`STALE_ENTRIES`] claims this takes tasks out of the queues that hold the stale entries, drops the stale ones
    /// and puts back the rest: as many of its own newest tasks as it has left stale entries, and twice as many from
    /// the injector. Then there are never many more stale entries than tasks.
    fn drop_stale_entries(&self) {
        let stale = self.stale_entries.get() + 1;
        self.stale_entries.set(stale % STALE_ENTRIES);
        let core = self.core.borrow();
        let Some(core) = &*core else { return };
        if stale < STALE_ENTRIES {
            return;
        }
        let (queues, tally) = (&self.shared.queues, core.tally());
        let newest = iter::from_fn(|| queues.pop(&core.own, tally)).take(STALE_ENTRIES);
        let injected = iter::from_fn(|| queues.take_one_injected(tally)).take(2 * STALE_ENTRIES);
        let mut rest = [const { None }; 3 * STALE_ENTRIES];
        let live = newest.chain(injected).filter_map(Task::unless_stale);
        let count = rest.iter_mut().zip(live).map(|(place, task)| *place = Some(task)).count();
        for task in rest.into_iter().take(count).rev().flatten() {
            queues.push_local(&core.own, task, tally);
        }
        if count > 0 {
            self.shared.announce(tally);
        }
    }

    /// Waits as an idle worker does until the awaited task is done, or until there is work. Then the core goes to
    /// another thread with that work, unless the work may run here.
    fn wait_with_core(&self, awaited: &dyn Awaited, helps: bool) -> Waited {
        let shared = &*self.shared;
        let mut searching = false;
        while !awaited.is_done() {
            let (found, index) = {
                let core = self.core.borrow();
                let core = core.as_ref().expect("it is handed on only below");
                (core.next(shared).or_else(|| core.search_others(shared)), core.index)
            };
            if let Some(task) = found {
                self.leave_search(&mut searching);
                if awaited.is_done() {
                    self.put_back(task);
                    return Waited::Done;
                }
                let may_help = helps && self.is_shallow();
                let task = match self.classify(task, may_help) {
                    Classified::Stale => continue,
                    Classified::Ours(job) => return Waited::Found(job),
                    Classified::NotOurs(task) => task,
                };
                if may_help {
                    if let Some(job) = self.find_own_part() {
                        self.put_back(task);
                        return Waited::Found(job);
                    }
                }
                match self.hand_off_core(task) {
                    Ok(()) => return Waited::CoreGone,
                    Err(Refused::Kept(task)) => return self.keep_core(task, awaited, helps),
                    Err(Refused::Last(task)) => match self.run_as_last_worker(task, helps) {
                        Some(found) => return found,
                        None => continue,
                    },
                }
            }
            let reason = self.sleep(searching, index, || awaited.is_done());
            debug_assert!(
                matches!(reason, WakeReason::Early | WakeReason::Called),
                "the pool does not shut down while a thread is away"
            );
            searching = true;
        }
        self.leave_search(&mut searching);
        Waited::Done
    }

    /// Ends this thread's search, if it searches.
    pub(crate) fn leave_search(&self, searching: &mut bool) {
        let shared = &*self.shared;
        if std::mem::take(searching) && shared.idle.leave_search(|| shared.queues.any()) {
            self.with_tally(count_wake_up);
        }
    }

    /// Sleeps with the core, because there are too many threads. The task that was found goes to the other workers.
    #[cold]
    fn keep_core(&self, found: Task, awaited: &dyn Awaited, helps: bool) -> Waited {
        // A job of the same root runs here even on a deep stack: no thread has more stack.
        let found = match self.classify(found, helps) {
            Classified::Stale => None,
            Classified::Ours(job) => {
                self.shared.handoff.core_in_use_again();
                return Waited::Found(job);
            }
            Classified::NotOurs(task) => Some(task),
        };
        found.into_iter().for_each(|task| self.put_back(task));
        self.sleep_until(awaited);
        self.shared.handoff.core_in_use_again();
        Waited::Done
    }

    /// Decides what to do when no thread can take over the core and it is the last one in use. The task that was found
    /// runs here, if enough of the stack is left. If not, this thread waits for a while: another thread of the system
    /// may end and make room for a new thread of this pool.
    #[cold]
    fn run_as_last_worker(&self, found: Task, helps: bool) -> Option<Waited> {
        let task = match self.classify(found, helps) {
            Classified::Stale => return None,
            Classified::Ours(job) => return Some(Waited::Found(job)),
            Classified::NotOurs(task) => task,
        };
        if helps {
            if let Some(job) = self.find_own_part() {
                self.put_back(task);
                return Some(Waited::Found(job));
            }
        }
        if self.has_room() {
            return Some(Waited::NobodyElse(task));
        }
        self.put_back(task);
        self.listener.sleeper().park_for(THREAD_RETRY);
        None
    }

    /// Sleeps until the task is done, whatever else there is to do.
    pub(crate) fn sleep_until(&self, awaited: &dyn Awaited) {
        record(EventKind::Park);
        while !awaited.is_done() {
            self.listener.sleeper().park();
        }
        record(EventKind::Unpark);
    }

    /// Puts a task that was taken out of a queue, and cannot run here, into the injector.
    pub(crate) fn put_back(&self, task: Task) {
        let shared = &*self.shared;
        self.with_tally(|tally| {
            shared.queues.push_remote(task, tally);
            shared.announce(tally);
        });
    }
}
