//! The loop: find, run, else idle; and what surrounds it in the life of a thread.

use crate::core::Core;
use crate::idle::Rise;
use crate::member::{Member, enter};
use crate::panic::contain;
use crate::queues::Queues;
use crate::relief::{Shift, Taken};
use crate::sync::{Arc, Mutex, ThreadBuilder, lock, pause, yield_now};
use crate::task::Task;

/// A searcher looks everywhere this often before it sleeps, with a rest after each look that
/// doubles from one pause on: about ... in all.
const SPINS: u32 = 6;
/// And then this often, with a yield of the core after each.
const YIELDS: u32 = 2;

/// What comes next.
enum Next {
    Run(Task),
    /// The pool has come to its end.
    Ended,
    /// The seat has gone to another thread while a task of this one was waiting.
    Unseated,
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
    let thread = ThreadBuilder::new()
        .name((core.config.thread_name)(number))
        .stack_size(core.config.stack_size)
        .spawn(move || {
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
    contain(|| (core.config.on_thread_start)(number));
    let member = Member::new(core);
    enter(member.core.id(), &member, || {
        while let Some(next) = shift.take() {
            shift = member.serve(next);
        }
    });
    contain(|| (member.core.config.on_thread_stop)(number));
}

impl<Q: Queues> Member<Q> {
    /// Works until the pool ends or the seat is lost; then waits for another.
    fn serve(&self, shift: Shift<Q>) -> Option<Shift<Q>> {
        *self.seat.borrow_mut() = Some(shift.seat);
        if let Some(first) = shift.first {
            self.run(first);
        }
        loop {
            match self.next() {
                Next::Run(task) => self.run(task),
                Next::Ended => return None,
                Next::Unseated => break,
            }
        }
        let core = &self.core;
        if core.idle.retire(|| core.queues.any()) {
            core.wind_up();
        }
        core.relief.wait(&self.listener, core.config.workers)
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
    fn idle(&self, seat: &crate::seat::Seat<Q>) -> Next {
        let core = &*self.core;
        let tally = seat.tally();
        let mut searching = core.idle.start_search();
        let mut called = false;
        loop {
            if let Some(task) = self.search(seat, searching) {
                if searching && core.idle.leave_search(|| core.queues.any()) {
                    tally.one(|block| &block.wake_ups_sent);
                }
                return Next::Run(task);
            }
            if called {
                tally.one(|block| &block.futile_wake_ups);
            }
            let rise = core.idle.sleep(
                &self.listener,
                searching,
                || core.queues.any(),
                || false,
                || tally.one(|block| &block.parks),
            );
            called = rise == Rise::Called;
            match rise {
                Rise::Early | Rise::Called => searching = true,
                Rise::Ended => return Next::Ended,
                Rise::EndedHere => {
                    core.wind_up();
                    return Next::Ended;
                }
            }
        }
    }

    /// Looks everywhere: a searcher again and again, others once.
    fn search(&self, seat: &crate::seat::Seat<Q>, searching: bool) -> Option<Task> {
        let core = &*self.core;
        let rounds = if searching && Q::PATIENT { SPINS + YIELDS } else { 1 };
        for round in 0..rounds {
            if let Some(task) = seat.hunt(core) {
                return Some(task);
            }
            seat.tally().one(|block| &block.idle_spins);
            if round < SPINS {
                (0..1_u32 << round).for_each(|_| pause());
            } else {
                yield_now();
            }
        }
        None
    }

    /// Gives the seat away, with a task to run first. If nobody can take it, it stays, and the task
    /// comes back.
    pub(crate) fn give_seat(&self, first: Task) -> Result<(), Task> {
        let seat = self.seat.borrow_mut().take().expect("called with a seat");
        let refused = match self.core.relief.hand_over(Shift { seat, first: Some(first) }) {
            Taken::Waiting => return Ok(()),
            Taken::Start(shift, born) => {
                let number = self.core.config.workers + born - 1;
                match start(&self.core, number, shift) {
                    Ok(()) => return Ok(()),
                    Err((shift, _)) => {
                        self.core.relief.not_started();
                        shift
                    }
                }
            }
            Taken::Refused(shift) => shift,
        };
        *self.seat.borrow_mut() = Some(refused.seat);
        Err(refused.first.expect("given along"))
    }
}
