//! The worker loop (find a task, run it, else idle), and the life of a thread around it.

use std::cell::Cell;

use crate::cluster::NO_PLACE;
use crate::fork::{job, purse};
use crate::idle::{IdleWorker, WakeReason};
use crate::panic::{AbortOnUnwind, contain, contained};
use crate::sync::{
    Arc, HeavyFence, Instant, Mutex, Ordering, ThreadBuilder, heavy_fence_state, lock,
    must_not_be_copied, pause, yield_now,
};
use crate::task::{Task, settle};
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::current::enter;
use crate::worker::find::Heed;
use crate::worker::handoff::{Grant, HandedCore};
use crate::worker::inbox::Patience;
use crate::worker::policy::PoolQueues;
use crate::worker::private::Wanted;
use crate::worker::shared::{Shared, count_wake_ups};
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

/// A searching worker yields its processor after its first look and then once in this many looks. The system may
/// have placed there the thread that waits for what this worker has just finished, and that thread would otherwise
/// wait until this worker sleeps.
const YIELD_AFTER: u32 = 8;
/// A searching worker raids private jobs once in this many looks. That is after some microseconds in which their owner
/// has not looked at its demand. A raid takes about a microsecond, of the owner's time as well.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };
/// A searching worker looks into all lanes of the pool once in this many looks, otherwise into those of its own cluster and
/// of another one.
const LOOK_EVERYWHERE: u32 = 8;
/// The number of pauses after each look that does not end with a yield.
const PAUSES_PER_LOOK: u32 = if cfg!(shuttle) { 1 } else { 8 };

/// What a worker thread does next.
enum Next {
    Run(Task),
    /// Ends, because the pool has shut down.
    Ended,
    /// Ends, because the pool has shut down, and finishes the shutdown.
    EndedHere,
    /// Waits for a core: its own went to another thread while a task of this thread waited.
    CoreGone,
    /// Gives its core to a thread that goes on with its task after a wait.
    CoreWanted,
}

/// Starts thread `number` of the pool with that core. If the system refuses the thread, the core comes back.
pub(crate) fn start<Q: PoolQueues>(
    shared: &Arc<Shared<Q>>,
    number: usize,
    handed: HandedCore,
) -> Result<(), (HandedCore, std::io::Error)> {
    let Some(place) = shared.enter() else {
        return Err((handed, std::io::ErrorKind::OutOfMemory.into()));
    };
    shared.count_thread();
    let handed = Arc::new(Mutex::new(Some((handed, place))));
    let (of_thread, threads_shared) = (Arc::clone(&handed), Arc::clone(shared));
    let mut builder = ThreadBuilder::new().stack_size(shared.config.stack_size);
    // A thread name that panics or contains a zero byte is left out: the thread is needed, and nothing may panic here.
    let name = contained(|| (shared.config.thread_name)(number));
    if let Some(name) = name.filter(|name| !name.contains('\0')) {
        builder = builder.name(name);
    }
    let thread = builder.spawn(move || {
        let handed = lock(&of_thread).take();
        if let Some((handed, place)) = handed {
            thread_main(threads_shared, number, handed, place);
        }
    });
    match thread {
        Ok(thread) => {
            shared.keep_thread(thread);
            Ok(())
        }
        Err(error) => {
            shared.uncount_thread();
            let (handed, place) = lock(&handed).take().expect("no thread has taken it");
            shared.leave(place);
            Err((handed, error))
        }
    }
}

/// Runs a thread of the pool: with one core after another, until it gets no more.
fn thread_main<Q: PoolQueues>(
    shared: Arc<Shared<Q>>,
    number: usize,
    first: HandedCore,
    place: Place<Q>,
) {
    if number >= shared.config.workers {
        // Its core comes from a thread that waits.
        shared.count_hand_off();
    }
    // In a box: on the stack its address can be one that the processor mistakes for that of a slot, and tasks
    // then take half as long again (measured, on a Zen 4).
    let thread = Box::new(WorkerThread::new(shared, place));
    let mut handed = Some(first);
    let config = &thread.shared.config;
    // A panic here would lose a worker, which would keep the pool from shutting down and tasks from running.
    let guard = AbortOnUnwind;
    let work = || {
        contain(|| (config.on_thread_start)(number));
        while let Some(next) = handed.take() {
            handed = thread.run_with_core(next);
        }
        contain(|| (config.on_thread_stop)(number));
    };
    // SAFETY: `thread` is a worker thread of the pool with that id, and the demand is one of that pool's demands.
    unsafe { enter(thread.shared.id(), &*thread, &thread.shared.demand_when_idle, work) };
    let WorkerThread { shared, place, .. } = *thread;
    // The place is left last: another thread that takes it is counted then.
    shared.uncount_thread();
    shared.leave(place);
    std::mem::forget(guard);
}

/// On several NUMA nodes, one in this many workers that are woken looks for parts on all nodes at once; the others look on their own
/// node first. If all of them did the former, up to a fifth of the steals of a tree of joins would be far ones; if none did, the
/// last of 256 workers would begin twice as late (simulated).
const FAR_WAKES: usize = 3;

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Works until the pool shuts down or the core is gone. Then waits for another core and returns it.
    fn run_with_core(&self, handed: HandedCore) -> Option<HandedCore> {
        self.acquire_core(handed.core);
        if !self.in_service.replace(true) {
            self.be_raided();
        }
        let mut next = handed.first.map_or_else(|| self.next(), Next::Run);
        // Nothing else is in this loop, for the sake of its machine code.
        while let Next::Run(task) = next {
            self.run_first(task);
            next = self.next();
        }
        self.after_core(next)
    }

    /// Works until the pool shuts down, on a core that the thread keeps.
    pub(crate) fn run_until_shutdown(&self) {
        let mut next = self.next();
        while let Next::Run(task) = next {
            self.run_first(task);
            next = self.next();
        }
        if matches!(next, Next::EndedHere) {
            self.shared.finish_shutdown();
        }
    }

    /// Makes other threads reach this thread's jobs from now on, by its demand.
    pub(crate) fn be_raided(&self) {
        // SAFETY: this thread keeps `shared`, which owns the demand, until after `job::close`.
        unsafe { job::use_demand_of(&self.shared.table.entry(self.place.index).demand) };
    }

    /// Makes this thread the worker whose core it is.
    pub(crate) fn acquire_core(&self, core: Box<Core>) {
        record(EventKind::WorkerBegin { worker: core.index });
        self.shared.queues.set_worker(&self.place.own, core.index);
        self.shared.inboxes.note_holder(core.index, self.place.index);
        self.pin_to(core.index);
        self.shared.clusters.note(core.index);
        settle(self.shared.clusters.of(core.index));
        self.show_worker(core.index);
        self.set_core(Some(core));
    }

    /// Gives up the core. The thread is no worker from then on.
    pub(crate) fn release_core(&self) -> Option<Box<Core>> {
        let core = self.set_core(None);
        if core.is_some() {
            record(EventKind::WorkerEnd);
            self.show_worker(NO_PLACE);
        }
        core
    }

    /// Shows to others which worker this thread is.
    fn show_worker(&self, worker: usize) {
        self.shared.table.entry(self.place.index).worker.store(worker, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn after_core(&self, next: Next) -> Option<HandedCore> {
        let shared = &self.shared;
        purse::flush();
        match &next {
            Next::CoreWanted => {
                self.publish_tasks(Wanted::All);
                let core = self.release_core().expect("a worker gives its own core");
                if let Err(core) = self.give_back(core) {
                    return Some(HandedCore { core, first: None });
                }
            }
            Next::CoreGone => {
                // A core may have come since this thread last looked.
                if let Some(handed) = self.want_no_more() {
                    shared.idle.leave_away(self.place.index);
                    return Some(handed);
                }
            }
            // The core is released first. A task that a sweep drops may spawn, and so may the stop hook of the thread.
            _ => drop(self.release_core()),
        }
        self.in_service.set(false);
        // SAFETY: this thread keeps `shared`, which owns the demand, until after `job::close`.
        unsafe { job::use_demand_of(&shared.demand_when_idle) };
        match next {
            Next::CoreGone => {
                if shared.idle.retire(self.place.index, || shared.any()) {
                    shared.finish_shutdown();
                }
            }
            Next::CoreWanted => {}
            Next::EndedHere => {
                shared.finish_shutdown();
                return None;
            }
            Next::Ended | Next::Run(_) => return None,
        }
        shared.join_ended_threads();
        shared.handoff.stand_by(&self.mailbox)
    }

    #[inline]
    fn next(&self) -> Next {
        let core = self.core.borrow();
        let Some(core) = &*core else { return Next::CoreGone };
        if self.shared.handoff.calls() && self.gives_core(core) {
            return Next::CoreWanted;
        }
        let ranked = self.next_ranked(core);
        match ranked.or_else(|| self.next_own(core)).or_else(|| self.search_others(core)) {
            Some(task) => Next::Run(task),
            None => self.idle(core),
        }
    }

    /// Returns whether the worker is to give its core to another thread. Before that it waits as long as its core is retired.
    #[cold]
    #[inline(never)]
    fn gives_core(&self, core: &Core) -> bool {
        must_not_be_copied(self.shared.copy);
        self.retire(core);
        self.shared.handoff.is_wanted()
    }

    /// Searches, sleeps, and searches again when woken, until there is a task or the pool shuts down.
    #[cold]
    #[inline(never)]
    fn idle(&self, core: &Core) -> Next {
        let shared = &*self.shared;
        let tally = core.tally();
        self.shrink_private();
        let mut searching = shared.idle.start_search(self.place.index);
        let mut called = false;
        loop {
            searching = self.retire_from_search(core, searching);
            if let Some(task) = self.search(core, searching) {
                if searching {
                    let woken = shared.idle.leave_search(self.place.index, || self.is_work_left());
                    count_wake_ups(tally, woken);
                }
                return Next::Run(task);
            }
            if called {
                tally.one(|block| &block.futile_wake_ups);
            }
            let retires = || shared.handoff.can_retire(core.index);
            let reason = self.sleep(searching, core.index, None, false, retires);
            called = reason == WakeReason::Called;
            if called {
                self.look_far_soon(core.random_below(FAR_WAKES) == 0);
            }
            match reason {
                WakeReason::Early | WakeReason::Called => searching = true,
                // It retires.
                WakeReason::Done => searching = false,
                WakeReason::Ended => return Next::Ended,
                WakeReason::EndedHere => return Next::EndedHere,
            }
        }
    }

    /// Sleeps as that worker until it is called, or until `done`. It looks whether that is so when it is notified, and at `end`.
    /// If the thread is to linger, it looks for a while longer before it parks.
    pub(crate) fn sleep(
        &self,
        searching: bool,
        worker: usize,
        end: Option<Instant>,
        lingers: bool,
        done: impl Fn() -> bool,
    ) -> WakeReason {
        let parked = Cell::new(false);
        let parking = || {
            if lingers && self.linger(&done) {
                return;
            }
            self.with_tally(|tally| tally.one(|block| &block.parks));
            parked.set(true);
            record(EventKind::Park);
        };
        let shared = &*self.shared;
        let place = self.place.index;
        let last_look = || shared.last_look(Some(worker), place, &done);
        // While there is no fence yet, the worker looks again and again.
        let second_look = || heavy_fence_state() == HeavyFence::Pending || self.sees_private();
        let me = IdleWorker { listener: &self.listener, place, searching, end };
        let reason = shared.idle.sleep(me, last_look, second_look, &done, parking);
        if parked.get() {
            record(EventKind::Unpark);
        }
        self.restore_own_demand();
        reason
    }

    /// Looks for work: many times if this worker counts as a searcher, else once. The first look is everywhere. In a pool that
    /// stops, and in which nobody is busy, it soon gives up.
    fn search(&self, core: &Core, searching: bool) -> Option<Task> {
        let rounds = if searching && Q::PATIENT { Q::LOOKS } else { 1 };
        self.seen.set(false);
        let mut round = 0;
        let mut patience = Patience::default();
        while round < rounds || patience.goes_on() {
            if let Some(task) = self.search_injector_first(core, round % LOOK_EVERYWHERE == 0) {
                return Some(task);
            }
            if searching {
                if let Some(task) = self.take_near_in_time(core, &mut patience) {
                    return Some(task);
                }
            }
            if round % RAID_INTERVAL == RAID_INTERVAL / 2 - 1 {
                self.forget_seen();
            }
            if round % RAID_INTERVAL == RAID_INTERVAL - 1 {
                if let Some(task) = self.raid_others(core, Heed::Looks) {
                    return Some(task);
                }
            }
            core.tally().one(|block| &block.idle_spins);
            if round % YIELD_AFTER == 0 {
                // What is in an inbox keeps the pool from ending, and its own worker may never come for it.
                if !patience.goes_on() && self.is_about_to_end() {
                    break;
                }
                yield_now();
            } else {
                (0..PAUSES_PER_LOOK).for_each(|_| pause());
            }
            round += 1;
            if round == rounds && rounds > 1 && self.seen.take() {
                // A worker that spawns one task at a time will spawn another one soon.
                round = 0;
            }
        }
        // A worker that has made few looks has made no raid.
        if round >= RAID_INTERVAL { None } else { self.raid_others(core, Heed::Looks) }
    }

    /// Returns whether the pool stops, and no worker seems to have anything to do.
    fn is_about_to_end(&self) -> bool {
        let (idle, workers) = (&self.shared.idle, self.shared.config.workers);
        idle.is_stopping() && !idle.is_anybody_busy(workers)
    }

    /// Hands the core, and perhaps a task to run first, to the thread that was granted. If the system refuses to start a
    /// thread, the task comes back and this thread keeps the core.
    pub(crate) fn hand_off_core(
        &self,
        grant: Grant,
        first: Option<Task>,
    ) -> Result<(), Option<Task>> {
        let shared = &self.shared;
        let core = self.release_core().expect("called with a core");
        let handed = HandedCore { core, first };
        let number = match grant {
            Grant::Standby(standby) => {
                shared.count_hand_off();
                shared.handoff.hand_over(&standby, handed);
                self.unpin();
                return Ok(());
            }
            Grant::Start(born) => shared.config.workers + born - 1,
            Grant::NotYet(_) | Grant::Full => unreachable!("no thread was granted"),
        };
        start(shared, number, handed).map(|()| self.unpin()).map_err(|(handed, _)| {
            shared.handoff.decline(grant);
            self.acquire_core(handed.core);
            handed.first
        })
    }

    /// Gives a core to a thread that goes on with its task after a wait, if there is one.
    pub(crate) fn give_back(&self, core: Box<Core>) -> Result<(), Box<Core>> {
        let place = self.shared.handoff.give_back(core)?;
        self.shared.ledger.of_non_workers().one(|block| &block.cores_returned);
        // That thread takes it at its next fork, at the latest.
        self.shared.table.entry(place).demand.raise();
        self.unpin();
        Ok(())
    }

    /// Notes that this thread goes on with its task after a wait, and wants a core if it has none.
    pub(crate) fn want_core(&self) {
        // A hook at the start or the end of the thread waits without a core, and must not get one.
        let may_want = self.in_service.get() && !self.is_guest && self.worker().is_none();
        if may_want && self.resumed.get().is_none() {
            self.resumed.set(Some(self.shared.now()));
            self.shared.handoff.want(&self.mailbox);
        }
    }

    /// Ends what [`want_core`](Self::want_core) began, and returns the core that this thread got meanwhile.
    fn want_no_more(&self) -> Option<HandedCore> {
        let since = self.resumed.take()?;
        let without = self.shared.now().saturating_sub(since);
        let tally = self.shared.ledger.of_non_workers();
        tally.add(|block| &block.nanoseconds_without_core, without);
        self.shared.handoff.want_no_more(&self.mailbox)
    }

    /// Takes the core that this thread was given after a wait, if there is one.
    #[inline(always)]
    pub(crate) fn pick_up_core(&self) {
        if self.resumed.get().is_some() {
            self.look_into_mailbox();
        }
    }

    /// Takes the core that this thread wants, if it is there.
    #[cold]
    #[inline(never)]
    fn look_into_mailbox(&self) {
        debug_assert!(self.worker().is_none(), "a thread with a core wants none");
        let Some(handed) = self.mailbox.take() else { return };
        self.want_no_more();
        self.shared.idle.leave_away(self.place.index);
        self.acquire_core(handed.core);
    }

    /// Takes the core that this thread was given after a wait, if there is one; else wants none any more, because it
    /// waits again.
    pub(crate) fn pick_up_core_or_wait(&self) {
        if self.worker().is_none() {
            if let Some(handed) = self.want_no_more() {
                self.shared.idle.leave_away(self.place.index);
                self.acquire_core(handed.core);
            }
        }
    }
}
