//! What a thread of an engine (`crate::engine`) does while it waits: whatever there is to do, on top of what waits.
//!
//! It keeps its seat, so there are never more threads than seats; the price is that what waits can be buried under
//! something long, or under something that waits for it.

use crate::idle::Rise;
use crate::job;
use crate::member::Member;
use crate::queues::Queues;
use crate::seat::Seat;
use crate::sync::{Arc, pause, yield_now};
use crate::task::{Awaited, Task};
use crate::wait::{PAUSES, YIELDS};

/// Looks for something to do before it sleeps: some fifty microseconds, as long as it takes to sleep and to be woken on a
/// bad day. A thread of an engine that sleeps helps nobody.
const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 256 };
/// After so many looks in vain it sees what others keep to themselves: what it waits for is with one of them.
const FIRST_RAID: u32 = if cfg!(shuttle) { 1 } else { 8 };
/// And again after so many.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };

impl<Q: Queues> Member<Q> {
    /// Returns when it is done.
    pub(crate) fn nest(&self, awaited: &dyn Awaited) {
        let mut wait = Wait { awaited, looks: 0, searching: false, listening: false };
        while !awaited.is_done() {
            if let Some(task) =
                self.at_hand().or_else(|| self.elsewhere()).or_else(|| wait.raid(self))
            {
                wait.leave_search(self);
                wait.looks = 0;
                self.run(task);
            } else {
                wait.rest(self);
            }
        }
        wait.leave_search(self);
        self.leave_to_others();
    }

    /// A guest goes on with its own life, and does not lie down as a worker would: if it was the last to do something,
    /// the others may end (step E5).
    fn leave_to_others(&self) {
        let core = &*self.core;
        let is_guest = |seat: &Seat<Q>| core.is_guest(seat.index);
        if core.idle.is_stopping() && self.seat.borrow().as_deref().is_some_and(is_guest) {
            core.close();
        }
    }

    /// What this thread does next by itself: its own newest.
    pub(crate) fn at_hand(&self) -> Option<Task> {
        // Private jobs are newer than what is in the deque: see `publish_each`.
        self.publish_each();
        let seat = self.seat.borrow();
        let seat = seat.as_ref()?;
        let task = seat.next(&self.core)?;
        self.taken_back(seat.index);
        Some(task)
    }

    /// What this thread does itself, nobody else has wanted soon enough.
    fn taken_back(&self, seat: usize) {
        let core = &*self.core;
        if core.offers() && core.config.workers > 1 {
            // It may have been what was on offer.
            core.demands[seat].restore();
        } else {
            core.demands[seat].settle(&core.idle);
        }
    }

    /// What another thread has, or what came from elsewhere.
    pub(crate) fn elsewhere(&self) -> Option<Task> {
        self.seat.borrow().as_ref()?.hunt(&self.core)
    }

    /// What another thread has kept to itself.
    pub(crate) fn raid(&self) -> Option<Task> {
        self.seat.borrow().as_ref()?.raid(&self.core)
    }

    /// Publishes what is private, before something is pushed: so what is private is newer than what is in the deque.
    pub(crate) fn publish_each(&self) {
        if job::any() {
            self.push_jobs(std::iter::from_fn(job::publish_oldest));
        }
    }

    /// Has this thread something to do next?
    pub(crate) fn has_pending(&self) -> bool {
        let in_reach = |index| self.core.queues.has_job(index);
        job::any() || self.seat.borrow().as_ref().is_some_and(|seat| in_reach(seat.index))
    }

    /// Publishes as many jobs as are wanted, and one in any case (step D7).
    pub(crate) fn answer_with_offer(&self, seat: usize) {
        let demand = &self.core.demands[seat];
        let wanted = demand.take();
        let count = wanted.max(usize::from(!self.core.queues.has_job(seat)));
        let mut left = count;
        let jobs = std::iter::from_fn(job::publish_oldest).take(count).inspect(|_| left -= 1);
        self.push_jobs(jobs);
        if left > 0 {
            demand.put_back(left);
        }
    }
}

/// A thread that waits.
struct Wait<'a> {
    awaited: &'a dyn Awaited,
    /// Since it has last run something.
    looks: u32,
    searching: bool,
    /// Will it be told?
    listening: bool,
}

impl Wait<'_> {
    /// Now and then.
    fn raid<Q: Queues>(&self, member: &Member<Q>) -> Option<Task> {
        let is_time = self.looks == FIRST_RAID
            || self.looks % RAID_INTERVAL == RAID_INTERVAL - 1
            || self.looks >= LOOKS + YIELDS;
        if is_time { member.raid() } else { None }
    }

    fn leave_search<Q: Queues>(&mut self, member: &Member<Q>) {
        member.leave_search(&mut self.searching);
    }

    /// There is nothing to do: looks again soon, or sleeps.
    fn rest<Q: Queues>(&mut self, member: &Member<Q>) {
        self.looks += 1;
        if self.looks <= LOOKS {
            return (0..PAUSES).for_each(|_| pause());
        }
        if self.looks <= LOOKS + YIELDS {
            return yield_now();
        }
        let listener = &member.listener;
        if !self.listening && !self.awaited.listen(Arc::clone(listener)) {
            return;
        }
        self.listening = true;
        let (core, awaited) = (&*member.core, self.awaited);
        let Some(index) = member.seat.borrow().as_ref().map(|seat| seat.index) else {
            return member.sleep_until(awaited);
        };
        core.idle.step_aside();
        let rise = member.sleep(self.searching, index, || awaited.is_done());
        core.idle.step_back();
        match rise {
            Rise::Early | Rise::Called => self.searching = true,
            // Of the others; this one has a life of its own, or is at its end.
            Rise::Ended | Rise::EndedHere => {
                self.searching = false;
                member.sleep_until(awaited);
            }
        }
    }
}
