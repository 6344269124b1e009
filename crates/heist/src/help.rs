//! What a thread does while it waits for a part of a fork: other parts of the same task.
//!
//! Only those that descend from the same root (`job::root`) are run on top of what waits: then a stack is a
//! chain of roots each of which waits for the one above it, as in `wait`, and no wait is buried
//! under one that waits for it. What else there is to do is left to another thread, with this one's seat.

use std::iter;

use crate::demand::NO_SEAT;
use crate::job;
use crate::member::Member;
use crate::queues::Queues;
use crate::sync::{Arc, AtomicUsize, Ordering, panicking, pause, yield_now};
use crate::task::{Awaited, Started, Task};
use crate::wait::{LOOKS, PAUSES, YIELDS};

/// So many tasks are looked at, at most, in search of one's own. A guess.
const SOUGHT: usize = 1024;

/// May a task be run on top of what waits?
pub(crate) enum Verdict {
    /// It has been run.
    Husk,
    Ours(Started),
    NotOurs(Task),
}

impl<Q: Queues> Member<Q> {
    /// Waits for a part of a fork that was published; `thief` is where whoever runs it leaves its number. Or
    /// for all parts of a scope, without one.
    pub(crate) fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        if Q::NESTS {
            return self.nest(awaited);
        }
        if panicking() {
            return self.wait_unwinding(awaited);
        }
        if thief.is_some() && (self.take_back(awaited) || self.run_claimed_job(awaited)) {
            return;
        }
        if !self.help_until(awaited, thief) && awaited.listen(Arc::clone(&self.listener)) {
            self.publish_all();
            self.wait_long(awaited, true);
        }
    }

    /// In the middle of a panic nothing else is run here: guards would take it for what panics.
    #[cold]
    fn wait_unwinding(&self, awaited: &dyn Awaited) {
        self.publish_all();
        if self.core.relief.is_crowded() && self.run_claimed_job(awaited) {
            // Guards that are wrong are better than no thread left.
            return;
        }
        if !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        // SAFETY: this thread waits until it is done.
        match awaited.claim().map(|claimed| unsafe { claimed.delegate() }) {
            None => self.wait_long(awaited, false),
            Some(task) => self.wait_for_delegate(awaited, task),
        }
    }

    /// Runs the job right here, if it is the newest that this worker has published.
    fn take_back(&self, awaited: &dyn Awaited) -> bool {
        let at_hand = self.seat.borrow().as_ref().and_then(|seat| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.core.queues.take_back_job(&seat.own, is_it, seat.tally())
        });
        let Some(job) = at_hand else { return false };
        self.restock();
        self.run(job);
        true
    }

    fn run_claimed_job(&self, awaited: &dyn Awaited) -> bool {
        let claimed = self.run_claimed(awaited);
        if claimed {
            self.restock();
        }
        claimed
    }

    /// This worker has kept for itself what it had published. If somebody has nothing to do, that one still
    /// wants something (step D4).
    pub(crate) fn restock(&self) {
        if let Some(seat) = &*self.seat.borrow()
            && !self.core.idle.all_busy()
        {
            self.core.demands[seat.index].restore();
        }
    }

    /// Runs other parts for a while. Is it done?
    fn help_until(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) -> bool {
        let mut looks = 0;
        while looks < LOOKS {
            if awaited.is_done() {
                return true;
            }
            if job::is_demanded() {
                self.answer_demand();
            }
            // Ordering: relaxed. A hint.
            let thief = thief.map_or(NO_SEAT, |thief| thief.load(Ordering::Relaxed));
            let found = {
                let seat = self.seat.borrow();
                let Some(seat) = &*seat else { break };
                seat.find_job(&self.core, thief)
            };
            let Some(task) = found else {
                looks += 1;
                (0..PAUSES).for_each(|_| pause());
                continue;
            };
            match self.judge(task, self.is_shallow()) {
                Verdict::Husk => {}
                Verdict::Ours(job) => {
                    // It may have been this worker's own.
                    self.restock();
                    self.run_started(job);
                    looks = 0;
                }
                Verdict::NotOurs(task) => {
                    self.put_back(task);
                    break;
                }
            }
        }
        for _ in 0..YIELDS {
            if awaited.is_done() {
                return true;
            }
            yield_now();
        }
        awaited.is_done()
    }

    /// There is something to do, and it must not be done here; but what may be done here can lie behind it,
    /// and if this thread holds a lock that all others want, nobody else will come to it.
    pub(crate) fn seek_ours(&self) -> Option<Started> {
        let seat = self.seat.borrow();
        let seat = seat.as_ref()?;
        let (queues, tally) = (&self.core.queues, seat.tally());
        let next = || queues.pop_job(&seat.own, tally).or_else(|| queues.withdraw(tally));
        let (mut ours, mut others) = (None, Vec::new());
        for task in iter::from_fn(next).take(SOUGHT) {
            match self.judge(task, true) {
                Verdict::Husk => {}
                Verdict::Ours(job) => {
                    ours = Some(job);
                    break;
                }
                Verdict::NotOurs(task) => others.push(task),
            }
        }
        let any = !others.is_empty();
        others.into_iter().for_each(|task| queues.inject(task, tally));
        if any {
            self.core.announce(tally);
        }
        ours
    }

    /// May it be run on top of what waits, if anything may?
    pub(crate) fn judge(&self, task: Task, may_help: bool) -> Verdict {
        if !may_help {
            return Verdict::NotOurs(task);
        }
        match task.start() {
            None => Verdict::Husk,
            Some(started) if started.is_job() && started.root() == job::root() => {
                Verdict::Ours(started)
            }
            Some(started) => Verdict::NotOurs(started.postpone()),
        }
    }

    /// Publishes the oldest private jobs, as many as are wanted (steps D2 and D3).
    #[cold]
    pub(crate) fn answer_demand(&self) {
        if Q::NESTS {
            job::forget_raid();
        }
        let seat = self.seat.borrow().as_ref().map(|seat| seat.index);
        match seat {
            Some(seat) if self.core.offers() => self.answer_with_offer(seat),
            Some(seat) => {
                let demand = &self.core.demands[seat];
                let next = || (demand.count() > 0).then(job::publish_oldest).flatten();
                // Lowered before others can see it, and only for what they will see.
                self.push_jobs(iter::from_fn(next).inspect(|_| demand.lower()));
            }
            None if self.core.idle.all_busy() => {}
            None => self.push_jobs(job::publish_oldest().into_iter()),
        }
    }
}
