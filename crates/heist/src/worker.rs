//! The loop: find, run, else idle; and what surrounds it in the life of a thread.

use std::cell::Cell;

use crate::core::{Core, count_wake_up};
use crate::idle::Rise;
use crate::job;
use crate::member::{Member, enter};
use crate::panic::{AbortOnUnwind, contain, contained};
use crate::queues::Queues;
use crate::relief::{Shift, Taken};
use crate::seat::Seat;
use crate::sync::{Arc, Mutex, ThreadBuilder, lock, pause, yield_now};
use crate::task::Task;
use crate::trace::{EventKind, record};

/// After the first look, and after every so many, it lets others have the core: the thread that waits for
/// what this one has just finished may have been put on it, and would wait until this one sleeps.
const YIELD_AFTER: u32 = 8;
/// After so many looks it sees what others keep to themselves: some microseconds, in which their owner has not looked. A raid
/// takes about one, of the owner's time as well.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };
/// Pauses after each of the other looks.
const REST: u32 = if cfg!(shuttle) { 1 } else { 8 };

/// Threads that have lost their seat are kept, one for each worker and so many more; others end. A
/// guess: to start a thread takes three times as long as to wake one.
const SPARES: usize = 8;

/// What comes next.
enum Next {
    Run(Task),
    /// The pool has come to its end.
    Ended,
    /// The pool has come to its end, and this is the worker to sweep.
    EndedHere,
    /// The seat has gone to another thread while a task of this one was waiting.
    Unseated,
}

/// Nobody can take a seat, and the task is still to be run.
pub(crate) enum Refused {
    /// The seat is kept, until `Relief::resume`: others are in use.
    Kept(Task),
    /// No other is in use.
    Last(Task),
}

/// Starts a thread, number `number` of the pool, for a shift. If the system refuses, the shift
/// comes back.
pub(crate) fn start<Q: Queues>(
    core: &Arc<Core<Q>>,
    number: usize,
    shift: Shift<Q>,
) -> Result<(), (Shift<Q>, std::io::Error)> {
    let shift = Arc::new(Mutex::new(Some(shift)));
    let (theirs, members_core) = (Arc::clone(&shift), Arc::clone(core));
    let mut builder = ThreadBuilder::new().stack_size(core.config.stack_size);
    // A name that cannot be is none: nothing here may panic, and the thread is needed.
    let name = contained(|| (core.config.thread_name)(number));
    if let Some(name) = name.filter(|name| !name.contains('\0')) {
        builder = builder.name(name);
    }
    let thread = builder.spawn(move || {
        let shift = lock(&theirs).take();
        live(members_core, number, shift);
    });
    match thread {
        Ok(thread) => {
            core.keep(thread);
            Ok(())
        }
        Err(error) => {
            let shift = lock(&shift).take().expect("no thread has taken it");
            Err((shift, error))
        }
    }
}

/// A thread's life: one shift after another.
fn live<Q: Queues>(core: Arc<Core<Q>>, number: usize, mut shift: Option<Shift<Q>>) {
    // Not on the stack, where its address can be one that the processor takes for that of a slot: tasks
    // then take half as long again (measured, on a Zen 4).
    let member = Box::new(Member::new(core));
    let config = &member.core.config;
    // A worker that is lost keeps the pool from ending, and tasks from running.
    let guard = AbortOnUnwind;
    let work = || {
        contain(|| (config.on_thread_start)(number));
        while let Some(next) = shift.take() {
            shift = member.serve(next);
        }
        contain(|| (config.on_thread_stop)(number));
    };
    // SAFETY: the member is of that pool, and so is the demand.
    unsafe { enter(member.core.id(), &*member, &member.core.of_idle, work) };
    std::mem::forget(guard);
}

impl<Q: Queues> Member<Q> {
    /// Works until the pool ends or the seat is lost; then waits for another.
    fn serve(&self, shift: Shift<Q>) -> Option<Shift<Q>> {
        self.sit_down(shift.seat);
        self.serving.set(true);
        let mut next = shift.first.map_or_else(|| self.next(), Next::Run);
        // Nothing else is in this loop, for the sake of its code.
        while let Next::Run(task) = next {
            self.run_first(task);
            next = self.next();
        }
        self.after_shift(next)
    }

    /// Works until the pool ends, on a seat that is kept.
    pub(crate) fn serve_to_the_end(&self) {
        let mut next = self.next();
        while let Next::Run(task) = next {
            self.run_first(task);
            next = self.next();
        }
        if matches!(next, Next::EndedHere) {
            self.core.wind_up();
        }
    }

    pub(crate) fn sit_down(&self, seat: Box<Seat<Q>>) {
        // SAFETY: the member keeps the core.
        unsafe { job::turn_to(&self.core.demands[seat.index]) };
        record(EventKind::WorkerBegin { worker: seat.index });
        *self.seat.borrow_mut() = Some(seat);
    }

    pub(crate) fn stand_up(&self) -> Option<Box<Seat<Q>>> {
        // SAFETY: the member keeps the core.
        unsafe { job::turn_to(&self.core.of_seatless) };
        let seat = self.seat.borrow_mut().take();
        if seat.is_some() {
            record(EventKind::WorkerEnd);
        }
        seat
    }

    #[cold]
    #[inline(never)]
    fn after_shift(&self, next: Next) -> Option<Shift<Q>> {
        let core = &self.core;
        // First the seat: what a sweep drops may spawn, and so may the hook at the end of the thread, and
        // nobody would look there.
        drop(self.stand_up());
        self.serving.set(false);
        // SAFETY: the member keeps the core.
        unsafe { job::turn_to(&core.of_idle) };
        if !matches!(next, Next::Unseated) {
            if matches!(next, Next::EndedHere) {
                core.wind_up();
            }
            return None;
        }
        if core.idle.retire(|| core.queues.any()) {
            core.wind_up();
        }
        core.relief.wait(&self.listener, core.config.workers + SPARES)
    }

    #[inline]
    fn next(&self) -> Next {
        let seat = self.seat.borrow();
        let Some(seat) = &*seat else { return Next::Unseated };
        match seat.next(&self.core).or_else(|| seat.hunt(&self.core)) {
            Some(task) => Next::Run(task),
            None => self.idle(seat),
        }
    }

    /// Nothing to do: searches, sleeps, searches again when called.
    #[cold]
    #[inline(never)]
    fn idle(&self, seat: &Seat<Q>) -> Next {
        let core = &*self.core;
        let tally = seat.tally();
        let mut searching = core.idle.start_search();
        let mut called = false;
        loop {
            if let Some(task) = self.search(seat, searching) {
                if searching && core.idle.leave_search(|| core.queues.any()) {
                    count_wake_up(tally);
                }
                return Next::Run(task);
            }
            if called {
                tally.one(|block| &block.futile_wake_ups);
            }
            let rise = self.sleep(searching, seat.index, || false);
            called = rise == Rise::Called;
            match rise {
                Rise::Early | Rise::Called => searching = true,
                Rise::Ended => return Next::Ended,
                Rise::EndedHere => return Next::EndedHere,
            }
        }
    }

    /// Sleeps as a worker does, on that seat, until it is called, or until `done`.
    pub(crate) fn sleep(&self, searching: bool, seat: usize, done: impl Fn() -> bool) -> Rise {
        let parked = Cell::new(false);
        let parking = || {
            self.with_tally(|tally| tally.one(|block| &block.parks));
            parked.set(true);
            record(EventKind::Park);
        };
        let core = &*self.core;
        let any = || core.last_look(seat);
        let rise = core.idle.sleep(&self.listener, searching, any, done, parking);
        if parked.get() {
            record(EventKind::Unpark);
        }
        rise
    }

    /// Looks everywhere: a searcher again and again, others once.
    fn search(&self, seat: &Seat<Q>, searching: bool) -> Option<Task> {
        let core = &*self.core;
        let rounds = if searching && Q::PATIENT { Q::LOOKS } else { 1 };
        for round in 0..rounds {
            if let Some(task) = seat.hunt_outside_first(core) {
                return Some(task);
            }
            if round % RAID_INTERVAL == RAID_INTERVAL - 1
                && let Some(task) = seat.raid(core)
            {
                return Some(task);
            }
            seat.tally().one(|block| &block.idle_spins);
            if round.is_multiple_of(YIELD_AFTER) {
                yield_now();
            } else {
                (0..REST).for_each(|_| pause());
            }
        }
        // One that does not search has looked once.
        if searching { None } else { seat.raid(core) }
    }

    /// Gives the seat away, with a task to run first. If nobody can take it, the task comes back.
    pub(crate) fn give_seat(&self, first: Task) -> Result<(), Refused> {
        let (relief, workers) = (&self.core.relief, self.core.config.workers);
        let seat = self.stand_up().expect("called with a seat");
        let shift = Shift { seat, first: Some(first) };
        let (shift, is_kept) = match relief.hand_over(shift, workers) {
            Taken::Waiting => return Ok(()),
            Taken::Start(shift, born) => match start(&self.core, workers + born - 1, shift) {
                Ok(()) => return Ok(()),
                Err((shift, _)) => (shift, relief.not_started(workers)),
            },
            Taken::Refused(shift) => (shift, true),
        };
        self.sit_down(shift.seat);
        let task = shift.first.expect("given along");
        Err(if is_kept { Refused::Kept(task) } else { Refused::Last(task) })
    }
}
