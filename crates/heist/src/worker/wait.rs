//! What a thread does while it waits for a task.
//!
//! A thread outside of any pool sleeps (`outside`). A thread of the pool first tries to run the task itself: it needs
//! that task anyway, so no unrelated task ends up beneath another on its stack. If the task is running elsewhere, the
//! thread runs parts of it, hands its core to another thread as soon as there is something else to do, and sleeps. So
//! every stack is a chain of tasks each of which waits for the one above it, and the topmost one waits for a task that
//! is running: waiting adds no deadlock beyond those of one thread per task. `README.md` has the argument.
//!
//! The exception is a pool that may have no more threads. There, the last worker that is awake runs any other task on
//! top of the task that waits. A task may then wait for one beneath it, but otherwise nothing would run at all.
//!
//! The same mechanism bounds the stack: a thread that has used a good part of its stack does not run the awaited
//! task itself, but has the next thread run it on a stack of its own.

use crate::cluster::NO_PLACE;
use crate::fork::{job, purse};
use crate::order;
use crate::sync::{
    Arc, AtomicUsize, full_fence, is_left_behind, panicking, pause, refuse_copy, yield_now,
};
use crate::task::{Awaited, Claimed, Refusal, Started, Task};
use crate::trace::{self, EventKind, record};
use crate::worker::core::Core;
use crate::worker::current::with_worker;
use crate::worker::handoff::{Grant, Need};
use crate::worker::keep::Waited;
use crate::worker::outside::wait_outside;
use crate::worker::policy::{HandOffCore, PoolQueues, WaitPolicy};
use crate::worker::private::Wanted;
use crate::worker::shared::count_wake_ups;
use crate::worker::thread::WorkerThread;

/// A task is run on top of the one that waits for it while at most one part in this many of the stack is used. The
/// rest is for the task.
const STACK_SHARE: usize = 4;

/// A guest runs something on top of a wait while so much of its stack is left. Its thread is not one of the pool's, and may have a
/// stack of any size.
const SHALLOW_GUEST: usize = 512 << 10;
/// A guest runs what only it can run, and begins a visit, while so much is left.
const ROOM_OF_GUEST: usize = 256 << 10;

/// How often a thread looks at a task that is running elsewhere before it considers sleeping. To sleep and to be
/// woken takes some ten microseconds at best. Few under a checker, so that it explores what comes after the looks.
pub(crate) const LOOKS: u32 = if cfg!(shuttle) { 1 } else { 64 };
/// The number of pauses between two looks.
pub(crate) const PAUSES: u32 = if cfg!(shuttle) { 1 } else { 8 };
/// One in this many looks ends with a yield of the processor instead of pauses.
const YIELD_AFTER: u32 = if cfg!(shuttle) { 1 } else { 16 };
/// How often the thread then yields its processor, which the task may need.
pub(crate) const YIELDS: u32 = if cfg!(shuttle) { 1 } else { 4 };

/// The id of no pool, for what no pool runs and no thread can claim.
pub(crate) const NO_POOL: usize = 0;

/// Returns when the task, which was spawned on `pool`, is done. Works on any thread. Panics if the threads of that pool are in another
/// process.
pub(crate) fn wait(awaited: &dyn Awaited, pool: usize) {
    if awaited.is_done() {
        return;
    }
    if is_left_behind(pool) {
        refuse_copy();
    }
    if with_worker(|worker| worker.wait(awaited, pool)).is_none() {
        wait_outside(awaited);
    }
}

/// A guest that sleeps, or looks for a part before it does.
struct PausedVisit<'g, Q: PoolQueues>(&'g WorkerThread<Q>);

impl<'g, Q: PoolQueues> PausedVisit<'g, Q> {
    fn new(guest: &'g WorkerThread<Q>) -> Self {
        let shared = &*guest.shared;
        if shared.idle.pause_guest(guest.place.index) {
            shared.look_for_sleeper(guest.place.index);
        }
        Self(guest)
    }
}

impl<Q: PoolQueues> Drop for PausedVisit<'_, Q> {
    fn drop(&mut self) {
        self.0.shared.idle.resume_guest(self.0.place.index);
        self.0.restore_own_demand();
    }
}

impl<Q: PoolQueues> WaitPolicy<Q> for HandOffCore {
    const RAIDS: bool = true;
    const OFFERS: bool = false;
    const ALL_SEARCH: bool = false;
    const TURNS: bool = true;
    const NEAR: bool = true;

    fn wait(thread: &WorkerThread<Q>, awaited: &dyn Awaited, pool: usize) {
        thread.pick_up_core();
        let ours = pool == thread.shared.id();
        // A batch that was started here may have parts elsewhere.
        if ours && thread.is_shallow() && thread.run_awaited(awaited) && awaited.is_done() {
            return;
        }
        // The parts of the awaited task, if it is one of this pool's.
        let group = if ours { Some(awaited.id()) } else { None };
        if thread.help_until(awaited, group, None) || !awaited.listen(Arc::clone(&thread.listener))
        {
            return;
        }
        // Either the stack is too deep, or the task has started. In the first case another thread must run it, and
        // before anything else: the other tasks may wait for something that this thread holds.
        let claimed = if ours { awaited.claim() } else { None };
        // SAFETY: `awaited` borrows the handle until this call returns, which is not before the task is done.
        let delegate = claimed.map(|claimed| unsafe { claimed.delegate() });
        if delegate.is_some() {
            thread.count_claim();
        }
        thread.publish_before_sleep();
        match delegate {
            None => thread.wait_long(awaited, group),
            Some(task) => thread.wait_for_delegate(awaited, task, group),
        }
    }

    fn wait_for_job(thread: &WorkerThread<Q>, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        thread.pick_up_core();
        thread.help_and_wait(awaited, thief);
    }

    #[inline(always)]
    fn before_push(_: &WorkerThread<Q>) {}

    fn before_answer() {
        job::forget_raid();
    }

    fn after_search(thread: &WorkerThread<Q>, core: &Core, found: bool) {
        if !found {
            thread.raise_demand(core);
        }
    }
}

/// Pauses after a look in vain, and yields the processor early and then at times: what is awaited may need it.
pub(crate) fn rest(look: u32) {
    if look % YIELD_AFTER == YIELD_AFTER - 1 {
        yield_now();
    } else {
        (0..PAUSES).for_each(|_| pause());
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Runs the awaited task on this thread, unless it has started. Returns whether it did.
    fn run_awaited(&self, awaited: &dyn Awaited) -> bool {
        let id = awaited.task_id();
        let is_it = |task: &Task| task.id() == id;
        let (queues, own) = (&self.shared.queues, &self.place.own);
        if self.has_private_tasks() {
            // The newest one is not in the deque. What is left may be wanted while this one runs.
            if let Some(task) = self.pop_private_if(id) {
                self.run(task);
                return true;
            }
            if job::is_demanded() {
                self.answer_demand();
            }
            return self.run_claimed(awaited);
        }
        let newest = self.with_tally(|tally| queues.take_back(own, is_it, tally));
        if let Some(task) = newest {
            self.run(task);
            return true;
        }
        let mine = &self.shared.table.entry(self.place.index).queues;
        let has_others = self.shared.config.workers > 1 || self.worker().is_none();
        if has_others && queues.has_any(mine) {
            // Another task was taken out and put back: a worker that fell asleep meanwhile has not seen it.
            self.with_tally(|tally| self.shared.announce(tally, self.place.index));
        }
        self.run_claimed(awaited)
    }

    /// Claims the awaited task by its handle and runs it on this thread. Returns `false` if it has started already.
    pub(crate) fn run_claimed(&self, awaited: &dyn Awaited) -> bool {
        let Some(claimed) = awaited.claim() else { return false };
        if self.shared.is_cancelling() && !claimed.is_job() {
            let count = claimed.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.add(|block| &block.cancellations, count));
        } else {
            let run = |claimed: &Claimed<'_>| claimed.execute(&self.shared.config.on_panic);
            let execute = || trace::task_named(&claimed, |claimed| claimed.name(), run);
            let root = if claimed.is_job() { job::root() } else { awaited.task_id() };
            self.count(self.on_top(|| job::in_root(root, execute)));
            purse::flush();
        }
        claimed.done();
        self.count_claim();
        true
    }

    /// Returns whether enough of the stack is left to run something on top of a task that waits.
    pub(crate) fn is_shallow(&self) -> bool {
        if self.is_guest {
            return self.stack_left().is_some_and(|left| left >= SHALLOW_GUEST);
        }
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE
    }

    /// Like [`is_shallow`](Self::is_shallow), for something that no other thread could run.
    pub(crate) fn has_room(&self) -> bool {
        if self.is_guest {
            return self.stack_left().is_some_and(|left| left >= ROOM_OF_GUEST);
        }
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE * (STACK_SHARE - 1)
    }

    /// Returns whether enough of a guest's stack is left for a visit. If that is not known, it is taken for granted, but nothing
    /// is run on top of a wait then.
    pub(crate) fn has_room_to_visit(&self) -> bool {
        self.stack_left().is_none_or(|left| left >= ROOM_OF_GUEST)
    }

    /// Waits until the task is done, asleep most of the time, and runs parts of that group meanwhile. The thread has
    /// registered itself as the listener.
    pub(crate) fn wait_long(&self, awaited: &dyn Awaited, group: Option<usize>) {
        // A part that is pushed before this fence is found below; one that is pushed after it wakes this thread.
        full_fence(order::LISTEN);
        while !awaited.is_done() {
            // What has run here meanwhile may have spawned.
            self.publish_tasks(Wanted::All);
            self.pick_up_core_or_wait();
            if self.worker().is_none() {
                // The thread has counted as away since it gave away its core.
                self.wait_without_core(awaited, group);
                continue;
            }
            self.shared.idle.enter_away(self.place.index);
            match self.wait_with_core(awaited, group) {
                Waited::Done => self.shared.idle.leave_away(self.place.index),
                Waited::CoreGone => {}
                Waited::Found(job) => {
                    self.shared.idle.leave_away(self.place.index);
                    self.restore_demand();
                    self.run_started(job);
                }
                Waited::NobodyElse(task) => {
                    self.shared.idle.leave_away(self.place.index);
                    self.run(task);
                }
            }
        }
        // From here on the thread runs its task, with a core or without.
        self.want_core();
    }

    /// Sleeps without a core until the task is done. Returns earlier if it has run a part of the group.
    fn wait_without_core(&self, awaited: &dyn Awaited, group: Option<usize>) {
        record(EventKind::Park);
        let paused = self.is_guest.then(|| PausedVisit::new(self));
        while !awaited.is_done() {
            let group = group.filter(|_| self.has_room());
            if let Some(job) = group.and_then(|group| self.find_part_before_sleep(group)) {
                record(EventKind::Unpark);
                drop(paused);
                self.want_core();
                return self.run_started(job);
            }
            self.listener.sleeper().park_until(awaited.end());
        }
        record(EventKind::Unpark);
    }

    /// Returns a part of the group, if enough of the stack is left to run it here.
    pub(crate) fn find_own_part(&self, group: Option<usize>) -> Option<Started> {
        if self.has_room() { self.find_part(group?, NO_PLACE, true) } else { None }
    }

    /// Waits until the awaited task is done. Another thread is to run `task`, which is the awaited one, or starts the
    /// awaited batch. Runs parts of that group meanwhile.
    pub(crate) fn wait_for_delegate(
        &self,
        awaited: &dyn Awaited,
        task: Task,
        group: Option<usize>,
    ) {
        let mut task = Some(task);
        if self.worker().is_some() {
            self.shared.idle.enter_away(self.place.index);
            let grant = self.shared.handoff.grant(Need::Stack, self.shared.now());
            let refused = match grant {
                Grant::Standby(_) | Grant::Start(_) => {
                    self.hand_off_core(grant, task.take()).err().flatten()
                }
                Grant::NotYet(_) | Grant::Full => task.take(),
            };
            if refused.is_some() {
                self.shared.idle.leave_away(self.place.index);
            }
            task = refused;
        }
        match task {
            // In the middle of a panic nothing else is run here, unless nobody else can.
            Some(task) if (self.has_room() && !panicking()) || self.worker().is_some() => {
                // There is no thread with more stack, so the task runs here.
                self.want_core();
                job::caught(|| self.run(task));
                if !awaited.is_done() {
                    // It has only started a batch.
                    self.wait_long(awaited, group);
                }
            }
            Some(task) => {
                self.push_local(task, 0);
                self.wait_long(awaited, group);
            }
            None => self.wait_long(awaited, group),
        }
    }

    /// Counts a task that this thread has claimed by its handle, to run it or to have another thread run it, which leaves a stale
    /// entry in a queue. At times, such entries are dropped.
    fn count_claim(&self) {
        let claims = self.claims.get() + 1;
        let swept = self.with_tally(|tally| {
            let swept = self.shared.queues.drop_stale(claims, tally);
            if swept && self.shared.queues.has_remote() {
                // The entries were not to be seen for a moment.
                self.shared.announce(tally, self.place.index);
            }
            swept
        });
        self.claims.set(if swept { 0 } else { claims });
    }

    /// Ends this thread's search, if it searches.
    pub(crate) fn leave_search(&self, searching: &mut bool) {
        let shared = &*self.shared;
        if std::mem::take(searching) {
            let woken = shared.idle.leave_search(self.place.index, || self.is_work_left());
            self.with_tally(|tally| count_wake_ups(tally, woken));
        }
    }

    /// Sleeps until the task is done, whatever else there is to do.
    pub(crate) fn sleep_until(&self, awaited: &dyn Awaited) {
        record(EventKind::Park);
        while !awaited.is_done() {
            self.listener.sleeper().park_until(awaited.end());
        }
        record(EventKind::Unpark);
    }
}
