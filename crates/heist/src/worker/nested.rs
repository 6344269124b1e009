//! What a thread of an engine (`crate::engine`) does while it waits: it runs any other task on top of the one that
//! waits.
//!
//! It keeps its core, so that there are never more threads than cores. The price is that a task that waits can be
//! buried under a long task, or under a task that waits for it.

use std::cell::Cell;

use crate::fork::{job, purse};
use crate::idle::WakeReason;
use crate::sync::{Arc, AtomicUsize, pause, per_thread, yield_now};
use crate::task::{Awaited, End, Ended, Started, Task};
use crate::trace::{self, EventKind, record, record_start};
use crate::worker::core::Core;
use crate::worker::find::Heed;
use crate::worker::policy::{PoolQueues, RunNested, WaitPolicy};
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{PAUSES, YIELDS};

/// How often a waiting thread looks for something to do before it sleeps: some fifty microseconds, which is as long
/// as it can take to sleep and to be woken. While a thread of an engine sleeps, no other thread replaces it.
const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 256 };
/// After this many looks in vain the thread first yields its processor: what it waits for may need it. The system may
/// have placed the awaited thread there, or there may be only one processor.
const FIRST_YIELD: u32 = 4;
/// After every this many looks it yields again. On a processor that no other thread wants, a yield takes about as long as
/// two looks.
const YIELD_INTERVAL: u32 = 8;
/// After this many looks in vain the thread raids private jobs: one of their owners has the task that it waits for.
const FIRST_RAID: u32 = if cfg!(shuttle) { 1 } else { 8 };
/// After every this many looks it raids again.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };
/// One in this many searches in vain raises the demand of the other workers.
const DEMAND_INTERVAL: u32 = 8;
/// One in this many tasks from other threads or from outside is followed by a raid, and so is one in this many
/// calls of `yield_now` that find nothing. A raid on a thread without private jobs takes some ten nanoseconds; one that
/// finds a job takes about a microsecond, of its owner's time as well.
const TURNS_PER_RAID: u32 = if cfg!(shuttle) { 2 } else { 8 };

per_thread! {
    /// Counts towards the next raid of a thread that does not wait.
    static TURNS: Cell<u32> = Cell::new(0);
}

/// Returns `true` once in [`TURNS_PER_RAID`] calls on this thread.
fn is_turn_to_raid() -> bool {
    TURNS.with(|turns| {
        turns.set((turns.get() + 1) % TURNS_PER_RAID);
        turns.get() == 0
    })
}

impl<Q: PoolQueues> WaitPolicy<Q> for RunNested {
    const RAIDS: bool = true;
    const OFFERS: bool = true;
    const ALL_SEARCH: bool = true;
    const TURNS: bool = false;
    const NEAR: bool = false;

    fn wait(thread: &WorkerThread<Q>, awaited: &dyn Awaited, _: usize) {
        thread.wait_nested(awaited);
    }

    fn wait_for_job(thread: &WorkerThread<Q>, awaited: &dyn Awaited, _: Option<&AtomicUsize>) {
        thread.wait_nested(awaited);
    }

    fn before_push(thread: &WorkerThread<Q>) {
        thread.publish_private_jobs();
    }

    fn before_answer() {
        job::forget_raid();
    }

    /// Raises the demand after the first search in vain, and after that only once in [`DEMAND_INTERVAL`] searches. An
    /// owner that answers and has no job left pays as much as for ten joins.
    ///
    /// A thread that always finds tasks elsewhere, such as a flow of them from outside, raids as well: second halves of
    /// joins have started work behind them, which may wait for them.
    fn after_search(thread: &WorkerThread<Q>, core: &Core, found: bool) {
        if found {
            core.make_turn(DEMAND_INTERVAL);
            if is_turn_to_raid() {
                thread.look_for_private(core);
            }
        } else if core.is_turn(DEMAND_INTERVAL) {
            thread.raise_demand(core);
        }
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Takes a private job of another thread, if there is one, and keeps it for the thread's next turn or for a thief.
    /// Its deque is empty.
    #[cold]
    fn look_for_private(&self, core: &Core) {
        let shared = &*self.shared;
        self.raise_demand(core);
        let Some(job) = self.raid_others(core, Heed::Nothing) else { return };
        shared.queues.push_local(&self.place.own, job, core.tally());
        shared.announce(core.tally(), self.place.index);
    }

    /// Runs one task: one of this thread's own, or else one of another thread's or from outside. Returns whether there
    /// was one. Calls that find nothing raid now and then, so that a loop of them misses nothing.
    pub(crate) fn run_one(&self) -> bool {
        let Some(started) = self.start_one() else { return false };
        self.run_on_top(started);
        true
    }

    /// Runs one of this thread's own tasks. Returns whether there was one.
    pub(crate) fn run_one_local(&self) -> bool {
        let Some(started) = self.start_one_local() else { return false };
        self.run_on_top(started);
        true
    }

    #[inline(never)]
    fn start_one(&self) -> Option<Started> {
        let raid = || if is_turn_to_raid() { self.raid() } else { None };
        start_first(|| self.next_local().or_else(|| self.next_from_others()).or_else(raid))
    }

    #[inline(never)]
    fn start_one_local(&self) -> Option<Started> {
        start_first(|| self.next_local())
    }

    /// Runs other tasks until the awaited task is done.
    ///
    /// Waits nest as deep as the program's recursion. So the frame of this function is small: what it needs only
    /// before or after a task runs is in the frames of other functions.
    fn wait_nested(&self, awaited: &dyn Awaited) {
        let mut listening = false;
        while let Some(started) = self.start_before(awaited, &mut listening) {
            self.run_on_top(started);
        }
        self.continue_shutdown();
    }

    /// Starts the next task, or returns `None` when the awaited one is done. `listening` says whether the thread is
    /// registered to be notified then.
    #[inline(never)]
    fn start_before(&self, awaited: &dyn Awaited, listening: &mut bool) -> Option<Started> {
        let mut wait = NestedWait { awaited, looks: 0, searching: false, listening };
        while !awaited.is_done() {
            let next = self.next_local().or_else(|| self.next_from_others());
            let Some(task) = next.or_else(|| wait.raid(self)) else {
                wait.rest(self);
                continue;
            };
            wait.leave_search(self);
            wait.looks = 0;
            if let Some(started) = start(task) {
                return Some(started);
            }
        }
        wait.leave_search(self);
        None
    }

    /// Runs a task on top of one that waits. Its root does not matter: a thread that waits runs everything. But if one of the two
    /// has a control, the other one must not find it.
    #[inline(always)]
    fn run_on_top(&self, started: Started) {
        if job::is_controlled() || job::has_flag(started.root()) {
            return self.run_in_own_root(started);
        }
        self.run_in_any_root(started);
    }

    #[cold]
    #[inline(never)]
    fn run_in_own_root(&self, started: Started) {
        job::in_root(started.root(), || self.run_in_any_root(started));
    }

    #[inline(always)]
    fn run_in_any_root(&self, started: Started) {
        let execute = |started: Started| started.execute(&self.shared.config.on_panic);
        // Without the feature, the events are recorded elsewhere, for the sake of the frame.
        let (end, ended) = if cfg!(feature = "tracing") {
            trace::task_named(started, Started::name, execute)
        } else {
            execute(started)
        };
        self.after_task(end, ended);
    }

    #[inline(never)]
    fn after_task(&self, end: End, ended: Ended) {
        if !cfg!(feature = "tracing") {
            record(EventKind::End);
        }
        self.count(end);
        ended.deliver(Some(&self.shared.config.on_panic));
        purse::flush();
    }

    /// Lets the shutdown continue after an attached thread has waited. It does not sleep as a worker would; if it was
    /// the last thread with something to do, the others may end now (step E5).
    #[inline(never)]
    fn continue_shutdown(&self) {
        let shared = &*self.shared;
        let is_attached = |worker| shared.is_attached(worker);
        if shared.idle.is_stopping() && self.worker().is_some_and(is_attached) {
            shared.close();
        }
    }

    /// Returns this thread's own newest task.
    pub(crate) fn next_local(&self) -> Option<Task> {
        // Private jobs are newer than what is in the deque: see `publish_private_jobs`.
        self.publish_private_jobs();
        let core = self.core.borrow();
        let core = core.as_ref()?;
        let task = self.next_own(core)?;
        self.taken_back();
        Some(task)
    }

    /// Adjusts the demand after this thread took back a task of its own, which no other worker wanted soon enough.
    fn taken_back(&self) {
        let shared = &*self.shared;
        let demand = &shared.table.entry(self.place.index).demand;
        if shared.keeps_one_published() && shared.config.workers > 1 {
            // It may have been the published one.
            demand.restore();
        } else {
            demand.keep_for_sleepers(&shared.idle);
        }
    }

    /// Returns a task of another thread, or one from the injector.
    pub(crate) fn next_from_others(&self) -> Option<Task> {
        self.search_others(self.core.borrow().as_ref()?)
    }

    /// Takes a private job of another thread.
    pub(crate) fn raid(&self) -> Option<Task> {
        self.raid_others(self.core.borrow().as_ref()?, Heed::Nothing)
    }

    /// Publishes all private jobs. Called before a task is pushed, so that private jobs are always newer than what is
    /// in the deque.
    pub(crate) fn publish_private_jobs(&self) {
        if job::any() {
            self.push_jobs(std::iter::from_fn(job::publish_oldest));
        }
    }

    /// Returns whether this thread has a task or a job of its own.
    pub(crate) fn has_pending(&self) -> bool {
        job::any() || self.shared.queues.has_job(&self.shared.table.entry(self.place.index).queues)
    }

    /// Publishes as many jobs as are wanted, and at least one if none is published (step D7).
    pub(crate) fn answer_with_offer(&self) {
        let thread = self.shared.table.entry(self.place.index);
        let demand = &thread.demand;
        let wanted = demand.take();
        let count = wanted.max(usize::from(!self.shared.queues.has_job(&thread.queues)));
        let mut left = count;
        let jobs = std::iter::from_fn(job::publish_oldest).take(count).inspect(|_| left -= 1);
        self.push_jobs(jobs);
        if left > 0 {
            demand.put_back(left);
        }
    }
}

/// Starts the first task that `next` returns and that is not a stale entry.
#[inline(always)]
fn start_first(mut next: impl FnMut() -> Option<Task>) -> Option<Started> {
    loop {
        if let Some(started) = start(next()?) {
            return Some(started);
        }
    }
}

/// Starts a task, unless it is a stale entry. [`WorkerThread::run_on_top`] must run it.
#[inline(always)]
fn start(task: Task) -> Option<Started> {
    let started = task.start()?;
    if !cfg!(feature = "tracing") {
        record_start(|| started.name());
    }
    Some(started)
}

/// The state of one wait, since the thread has last run something.
struct NestedWait<'a> {
    awaited: &'a dyn Awaited,
    /// The number of looks.
    looks: u32,
    searching: bool,
    /// Is the thread registered to be notified when the awaited task is done?
    listening: &'a mut bool,
}

impl NestedWait<'_> {
    /// Raids, if it is time for that.
    fn raid<Q: PoolQueues>(&self, thread: &WorkerThread<Q>) -> Option<Task> {
        let is_time = self.looks == FIRST_RAID
            || self.looks % RAID_INTERVAL == RAID_INTERVAL - 1
            || self.looks >= LOOKS + YIELDS;
        if is_time { thread.raid() } else { None }
    }

    fn leave_search<Q: PoolQueues>(&mut self, thread: &WorkerThread<Q>) {
        thread.leave_search(&mut self.searching);
    }

    /// Pauses, yields or sleeps, because there is nothing to do.
    fn rest<Q: PoolQueues>(&mut self, thread: &WorkerThread<Q>) {
        self.looks += 1;
        if self.looks <= LOOKS && self.looks != FIRST_YIELD && self.looks % YIELD_INTERVAL != 0 {
            return (0..PAUSES).for_each(|_| pause());
        }
        if self.looks <= LOOKS + YIELDS {
            return yield_now();
        }
        let listener = &thread.listener;
        if !*self.listening && !self.awaited.listen(Arc::clone(listener)) {
            return;
        }
        *self.listening = true;
        let (shared, awaited) = (&*thread.shared, self.awaited);
        let Some(index) = thread.worker() else {
            return thread.sleep_until(awaited);
        };
        let place = thread.place.index;
        shared.idle.enter_away(place);
        let reason =
            thread.sleep(self.searching, index, awaited.end(), false, || awaited.is_done());
        shared.idle.leave_away(place);
        match reason {
            WakeReason::Early | WakeReason::Called => self.searching = true,
            WakeReason::Done => self.searching = false,
            // The other threads have ended. This one is an attached thread, or is about to end.
            WakeReason::Ended | WakeReason::EndedHere => {
                self.searching = false;
                thread.sleep_until(awaited);
            }
        }
    }
}
