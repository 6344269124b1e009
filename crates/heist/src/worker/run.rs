//! The worker loop (find a task, run it, else idle), and the life of a thread around it.

use std::cell::Cell;

use crate::fork::job;
use crate::idle::WakeReason;
use crate::panic::{AbortOnUnwind, contain, contained};
use crate::sync::{Arc, Mutex, ThreadBuilder, lock, pause, yield_now};
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::current::enter;
use crate::worker::handoff::{HandOffResult, HandedCore};
use crate::worker::policy::PoolQueues;
use crate::worker::shared::{Shared, count_wake_up};
use crate::worker::thread::WorkerThread;

/// A searching worker yields its processor after its first look and then once in this many looks. The system may
/// have placed there the thread that waits for what this worker has just finished, and that thread would otherwise
/// wait until this worker sleeps.
const YIELD_AFTER: u32 = 8;
/// A searching worker raids private jobs once in this many looks. That is after some microseconds in which their owner
/// has not looked at its demand. A raid takes about a microsecond, of the owner's time as well.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };
/// The number of pauses after each look that does not end with a yield.
const PAUSES_PER_LOOK: u32 = if cfg!(shuttle) { 1 } else { 8 };

/// Threads that have lost their core are kept on standby, one for each worker and this many more; others end. A
/// guess: to start a thread takes three times as long as to wake one.
const EXTRA_STANDBY: usize = 8;

/// What a worker thread does next.
enum Next {
    Run(Task),
    /// Ends, because the pool has shut down.
    Ended,
    /// Ends, because the pool has shut down, and finishes the shutdown.
    EndedHere,
    /// Waits for a core: its own went to another thread while a task of this thread waited.
    CoreGone,
}

/// The error of a hand-off: no thread can take over the core, and the task is still to be run.
pub(crate) enum Refused {
    /// The caller keeps the core until `HandOff::core_in_use_again`. Other cores are in use.
    Kept(Task),
    /// No other core is in use.
    Last(Task),
}

/// Starts thread `number` of the pool with that core. If the system refuses the thread, the core comes back.
pub(crate) fn start<Q: PoolQueues>(
    shared: &Arc<Shared<Q>>,
    number: usize,
    handed: HandedCore<Q>,
) -> Result<(), (HandedCore<Q>, std::io::Error)> {
    let handed = Arc::new(Mutex::new(Some(handed)));
    let (of_thread, threads_shared) = (Arc::clone(&handed), Arc::clone(shared));
    let mut builder = ThreadBuilder::new().stack_size(shared.config.stack_size);
    // A thread name that panics or contains a zero byte is left out: the thread is needed, and nothing may panic here.
    let name = contained(|| (shared.config.thread_name)(number));
    if let Some(name) = name.filter(|name| !name.contains('\0')) {
        builder = builder.name(name);
    }
    let thread = builder.spawn(move || {
        let handed = lock(&of_thread).take();
        thread_main(threads_shared, number, handed);
    });
    match thread {
        Ok(thread) => {
            shared.keep_thread(thread);
            Ok(())
        }
        Err(error) => {
            let handed = lock(&handed).take().expect("no thread has taken it");
            Err((handed, error))
        }
    }
}

/// Runs a thread of the pool: with one core after another, until it gets no more.
fn thread_main<Q: PoolQueues>(
    shared: Arc<Shared<Q>>,
    number: usize,
    mut handed: Option<HandedCore<Q>>,
) {
    // In a box: on the stack its address can be one that the processor mistakes for that of a slot, and tasks
    // then take half as long again (measured, on a Zen 4).
    let thread = Box::new(WorkerThread::new(shared));
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
    std::mem::forget(guard);
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Works until the pool shuts down or the core is gone. Then waits for another core and returns it.
    fn run_with_core(&self, handed: HandedCore<Q>) -> Option<HandedCore<Q>> {
        self.acquire_core(handed.core);
        self.in_service.set(true);
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

    /// Makes this thread the worker whose core it is.
    pub(crate) fn acquire_core(&self, core: Box<Core<Q>>) {
        // SAFETY: this thread keeps `shared`, which owns the demand, until after `job::close`.
        unsafe { job::use_demand_of(&self.shared.demands[core.index]) };
        record(EventKind::WorkerBegin { worker: core.index });
        *self.core.borrow_mut() = Some(core);
    }

    /// Gives up the core. The thread is no worker from then on.
    pub(crate) fn release_core(&self) -> Option<Box<Core<Q>>> {
        // SAFETY: this thread keeps `shared`, which owns the demand, until after `job::close`.
        unsafe { job::use_demand_of(&self.shared.demand_without_core) };
        let core = self.core.borrow_mut().take();
        if core.is_some() {
            record(EventKind::WorkerEnd);
        }
        core
    }

    #[cold]
    #[inline(never)]
    fn after_core(&self, next: Next) -> Option<HandedCore<Q>> {
        let shared = &self.shared;
        // The core is released first. A task that a sweep drops may spawn, and so may the stop hook of the thread,
        // and no worker would look into this core's deque any more.
        drop(self.release_core());
        self.in_service.set(false);
        // SAFETY: this thread keeps `shared`, which owns the demand, until after `job::close`.
        unsafe { job::use_demand_of(&shared.demand_when_idle) };
        if !matches!(next, Next::CoreGone) {
            if matches!(next, Next::EndedHere) {
                shared.finish_shutdown();
            }
            return None;
        }
        if shared.idle.retire(|| shared.queues.any()) {
            shared.finish_shutdown();
        }
        shared.handoff.wait(&self.listener, shared.config.workers + EXTRA_STANDBY)
    }

    #[inline]
    fn next(&self) -> Next {
        let core = self.core.borrow();
        let Some(core) = &*core else { return Next::CoreGone };
        match core.next(&self.shared).or_else(|| core.search_others(&self.shared)) {
            Some(task) => Next::Run(task),
            None => self.idle(core),
        }
    }

    /// Searches, sleeps, and searches again when woken, until there is a task or the pool shuts down.
    #[cold]
    #[inline(never)]
    fn idle(&self, core: &Core<Q>) -> Next {
        let shared = &*self.shared;
        let tally = core.tally();
        let mut searching = shared.idle.start_search();
        let mut called = false;
        loop {
            if let Some(task) = self.search(core, searching) {
                if searching && shared.idle.leave_search(|| shared.queues.any()) {
                    count_wake_up(tally);
                }
                return Next::Run(task);
            }
            if called {
                tally.one(|block| &block.futile_wake_ups);
            }
            let reason = self.sleep(searching, core.index, || false);
            called = reason == WakeReason::Called;
            match reason {
                WakeReason::Early | WakeReason::Called => searching = true,
                WakeReason::Ended => return Next::Ended,
                WakeReason::EndedHere => return Next::EndedHere,
            }
        }
    }

    /// Sleeps as that worker until it is called, or until `done`.
    pub(crate) fn sleep(
        &self,
        searching: bool,
        worker: usize,
        done: impl Fn() -> bool,
    ) -> WakeReason {
        let parked = Cell::new(false);
        let parking = || {
            self.with_tally(|tally| tally.one(|block| &block.parks));
            parked.set(true);
            record(EventKind::Park);
        };
        let shared = &*self.shared;
        let any = || shared.last_look(worker);
        let reason = shared.idle.sleep(&self.listener, searching, any, done, parking);
        if parked.get() {
            record(EventKind::Unpark);
        }
        reason
    }

    /// Looks everywhere: many times if this worker counts as a searcher, else once.
    fn search(&self, core: &Core<Q>, searching: bool) -> Option<Task> {
        let shared = &*self.shared;
        let rounds = if searching && Q::PATIENT { Q::LOOKS } else { 1 };
        for round in 0..rounds {
            if let Some(task) = core.search_injector_first(shared) {
                return Some(task);
            }
            if round % RAID_INTERVAL == RAID_INTERVAL - 1 {
                if let Some(task) = core.raid(shared) {
                    return Some(task);
                }
            }
            core.tally().one(|block| &block.idle_spins);
            if round % YIELD_AFTER == 0 {
                yield_now();
            } else {
                (0..PAUSES_PER_LOOK).for_each(|_| pause());
            }
        }
        // A worker that does not count as a searcher has made one look, and no raid.
        if searching { None } else { core.raid(shared) }
    }

    /// Hands the core to another thread, together with the task to run first. If no thread can take it, the task
    /// comes back and this thread keeps the core.
    pub(crate) fn hand_off_core(&self, first: Task) -> Result<(), Refused> {
        let (handoff, workers) = (&self.shared.handoff, self.shared.config.workers);
        let core = self.release_core().expect("called with a core");
        let handed = HandedCore { core, first: Some(first) };
        let (handed, is_kept) = match handoff.hand_over(handed, workers) {
            HandOffResult::Accepted => return Ok(()),
            HandOffResult::Start(handed, born) => {
                match start(&self.shared, workers + born - 1, handed) {
                    Ok(()) => return Ok(()),
                    Err((handed, _)) => (handed, handoff.not_started(workers)),
                }
            }
            HandOffResult::Refused(handed) => (handed, true),
        };
        self.acquire_core(handed.core);
        let task = handed.first.expect("given along");
        Err(if is_kept { Refused::Kept(task) } else { Refused::Last(task) })
    }
}
