//! The loop: find, run, else idle; and what surrounds it in the life of a thread.

use std::cell::Cell;

use crate::fork::job;
use crate::idle::WakeReason;
use crate::panic::{AbortOnUnwind, contain, contained};
use crate::queues::Queues;
use crate::sync::{Arc, Mutex, ThreadBuilder, lock, pause, yield_now};
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::current::enter;
use crate::worker::handoff::{Accepted, HandedCore};
use crate::worker::shared::{Shared, count_wake_up};
use crate::worker::thread::WorkerThread;

/// After the first look, and after every so many, it lets others have the core: the thread that waits for
/// what this one has just finished may have been put on it, and would wait until this one sleeps.
const YIELD_AFTER: u32 = 8;
/// After so many looks it sees what others keep to themselves: some microseconds, in which their owner has not looked. A raid
/// takes about one, of the owner's time as well.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };
/// Pauses after each of the other looks.
const REST: u32 = if cfg!(shuttle) { 1 } else { 8 };

/// Threads that have lost their core are kept, one for each worker and so many more; others end. A
/// guess: to start a thread takes three times as long as to wake one.
const EXTRA_STANDBY: usize = 8;

/// What comes next.
enum Next {
    Run(Task),
    /// The pool has come to its end.
    Ended,
    /// The pool has come to its end, and this is the worker to sweep.
    EndedHere,
    /// The core has gone to another thread while a task of this one was waiting.
    CoreGone,
}

/// Nobody can take a core, and the task is still to be run.
pub(crate) enum Refused {
    /// The core is kept, until `HandOff::resume`: others are in use.
    Kept(Task),
    /// No other is in use.
    Last(Task),
}

/// Starts a thread, number `number` of the pool, for a shift. If the system refuses, the shift
/// comes back.
pub(crate) fn start<Q: Queues>(
    shared: &Arc<Shared<Q>>,
    number: usize,
    handed: HandedCore<Q>,
) -> Result<(), (HandedCore<Q>, std::io::Error)> {
    let handed = Arc::new(Mutex::new(Some(handed)));
    let (theirs, threads_shared) = (Arc::clone(&handed), Arc::clone(shared));
    let mut builder = ThreadBuilder::new().stack_size(shared.config.stack_size);
    // A name that cannot be is none: nothing here may panic, and the thread is needed.
    let name = contained(|| (shared.config.thread_name)(number));
    if let Some(name) = name.filter(|name| !name.contains('\0')) {
        builder = builder.name(name);
    }
    let thread = builder.spawn(move || {
        let handed = lock(&theirs).take();
        live(threads_shared, number, handed);
    });
    match thread {
        Ok(thread) => {
            shared.keep(thread);
            Ok(())
        }
        Err(error) => {
            let handed = lock(&handed).take().expect("no thread has taken it");
            Err((handed, error))
        }
    }
}

/// A thread's life: one shift after another.
fn live<Q: Queues>(shared: Arc<Shared<Q>>, number: usize, mut handed: Option<HandedCore<Q>>) {
    // Not on the stack, where its address can be one that the processor takes for that of a slot: tasks
    // then take half as long again (measured, on a Zen 4).
    let thread = Box::new(WorkerThread::new(shared));
    let config = &thread.shared.config;
    // A worker that is lost keeps the pool from ending, and tasks from running.
    let guard = AbortOnUnwind;
    let work = || {
        contain(|| (config.on_thread_start)(number));
        while let Some(next) = handed.take() {
            handed = thread.run_with_core(next);
        }
        contain(|| (config.on_thread_stop)(number));
    };
    // SAFETY: the worker thread is of that pool, and so is the demand.
    unsafe { enter(thread.shared.id(), &*thread, &thread.shared.demand_when_idle, work) };
    std::mem::forget(guard);
}

impl<Q: Queues> WorkerThread<Q> {
    /// Works until the pool ends or the core is lost; then waits for another.
    fn run_with_core(&self, handed: HandedCore<Q>) -> Option<HandedCore<Q>> {
        self.acquire_core(handed.core);
        self.in_service.set(true);
        let mut next = handed.first.map_or_else(|| self.next(), Next::Run);
        // Nothing else is in this loop, for the sake of its code.
        while let Next::Run(task) = next {
            self.run_first(task);
            next = self.next();
        }
        self.after_core_lost(next)
    }

    /// Works until the pool ends, on a core that is kept.
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

    pub(crate) fn acquire_core(&self, core: Box<Core<Q>>) {
        // SAFETY: the worker thread keeps the core.
        unsafe { job::use_demand_of(&self.shared.demands[core.index]) };
        record(EventKind::WorkerBegin { worker: core.index });
        *self.core.borrow_mut() = Some(core);
    }

    pub(crate) fn release_core(&self) -> Option<Box<Core<Q>>> {
        // SAFETY: the worker thread keeps the core.
        unsafe { job::use_demand_of(&self.shared.demand_without_core) };
        let core = self.core.borrow_mut().take();
        if core.is_some() {
            record(EventKind::WorkerEnd);
        }
        core
    }

    #[cold]
    #[inline(never)]
    fn after_core_lost(&self, next: Next) -> Option<HandedCore<Q>> {
        let shared = &self.shared;
        // First the core: what a sweep drops may spawn, and so may the hook at the end of the thread, and
        // nobody would look there.
        drop(self.release_core());
        self.in_service.set(false);
        // SAFETY: the worker thread keeps the core.
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

    /// Nothing to do: searches, sleeps, searches again when called.
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
            let wake_reason = self.sleep(searching, core.index, || false);
            called = wake_reason == WakeReason::Called;
            match wake_reason {
                WakeReason::Early | WakeReason::Called => searching = true,
                WakeReason::Ended => return Next::Ended,
                WakeReason::EndedHere => return Next::EndedHere,
            }
        }
    }

    /// Sleeps as a worker does, on that core, until it is called, or until `done`.
    pub(crate) fn sleep(
        &self,
        searching: bool,
        core: usize,
        done: impl Fn() -> bool,
    ) -> WakeReason {
        let parked = Cell::new(false);
        let parking = || {
            self.with_tally(|tally| tally.one(|block| &block.parks));
            parked.set(true);
            record(EventKind::Park);
        };
        let shared = &*self.shared;
        let any = || shared.last_look(core);
        let wake_reason = shared.idle.sleep(&self.listener, searching, any, done, parking);
        if parked.get() {
            record(EventKind::Unpark);
        }
        wake_reason
    }

    /// Looks everywhere: a searcher again and again, others once.
    fn search(&self, core: &Core<Q>, searching: bool) -> Option<Task> {
        let shared = &*self.shared;
        let rounds = if searching && Q::PATIENT { Q::LOOKS } else { 1 };
        for round in 0..rounds {
            if let Some(task) = core.search_injector_first(shared) {
                return Some(task);
            }
            if round % RAID_INTERVAL == RAID_INTERVAL - 1
                && let Some(task) = core.raid(shared)
            {
                return Some(task);
            }
            core.tally().one(|block| &block.idle_spins);
            if round.is_multiple_of(YIELD_AFTER) {
                yield_now();
            } else {
                (0..REST).for_each(|_| pause());
            }
        }
        // One that does not search has looked once.
        if searching { None } else { core.raid(shared) }
    }

    /// Gives the core away, with a task to run first. If nobody can take it, the task comes back.
    pub(crate) fn hand_off_core(&self, first: Task) -> Result<(), Refused> {
        let (handoff, workers) = (&self.shared.handoff, self.shared.config.workers);
        let core = self.release_core().expect("called with a core");
        let handed = HandedCore { core, first: Some(first) };
        let (handed, is_kept) = match handoff.hand_over(handed, workers) {
            Accepted::Waiting => return Ok(()),
            Accepted::Start(handed, born) => {
                match start(&self.shared, workers + born - 1, handed) {
                    Ok(()) => return Ok(()),
                    Err((handed, _)) => (handed, handoff.not_started(workers)),
                }
            }
            Accepted::Refused(handed) => (handed, true),
        };
        self.acquire_core(handed.core);
        let task = handed.first.expect("given along");
        Err(if is_kept { Refused::Kept(task) } else { Refused::Last(task) })
    }
}
