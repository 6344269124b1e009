//! What a thread does while it waits for a part of a fork: other parts of the same task.
//!
//! Only those that descend from the same root (`job::root`) are run on top of what waits: then a stack is a
//! chain of roots each of which waits for the one above it, as in `wait`, and no wait is buried
//! under one that waits for it. What else there is to do is left to another thread, with this one's core.

use std::iter;

use crate::fork::demand::NO_WORKER;
use crate::fork::job;
use crate::queues::Queues;
use crate::sync::{Arc, AtomicUsize, Ordering, panicking, pause, yield_now};
use crate::task::{Awaited, Started, Task};
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{LOOKS, PAUSES, YIELDS};

/// So many tasks are looked at, at most, in search of one's own. A guess.
const LOOK_THROUGH: usize = 1024;

/// May a task be run on top of what waits?
pub(crate) enum Classified {
    /// It has been run.
    Stale,
    Ours(Started),
    NotOurs(Task),
}

impl<Q: Queues> WorkerThread<Q> {
    /// Waits for a part of a fork that was published; `thief` is where whoever runs it leaves its number. Or
    /// for all parts of a scope, without one.
    pub(crate) fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        if Q::NESTS {
            return self.wait_nested(awaited);
        }
        if panicking() {
            return self.wait_unwinding(awaited);
        }
        if thief.is_some() && (self.take_back(awaited) || self.run_claimed_job(awaited)) {
            return;
        }
        if !self.help_until(awaited, thief) && awaited.listen(Arc::clone(&self.listener)) {
            self.publish_before_sleep();
            self.wait_long(awaited, true);
        }
    }

    /// In the middle of a panic nothing else is run here: guards would take it for what panics.
    #[cold]
    fn wait_unwinding(&self, awaited: &dyn Awaited) {
        self.publish_before_sleep();
        if self.shared.handoff.is_crowded() && self.run_claimed_job(awaited) {
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
        let at_hand = self.core.borrow().as_ref().and_then(|core| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.shared.queues.take_back_job(&core.own, is_it, core.tally())
        });
        let Some(job) = at_hand else { return false };
        self.restore_demand();
        self.run(job);
        true
    }

    fn run_claimed_job(&self, awaited: &dyn Awaited) -> bool {
        let claimed = self.run_claimed(awaited);
        if claimed {
            self.restore_demand();
        }
        claimed
    }

    /// This worker has kept for itself what it had published. If somebody has nothing to do, that one still
    /// wants something (step D4).
    pub(crate) fn restore_demand(&self) {
        if let Some(core) = &*self.core.borrow()
            && !self.shared.idle.all_busy()
        {
            self.shared.demands[core.index].restore();
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
            let thief = thief.map_or(NO_WORKER, |thief| thief.load(Ordering::Relaxed));
            let found = {
                let core = self.core.borrow();
                let Some(core) = &*core else { break };
                core.find_job(&self.shared, thief)
            };
            let Some(task) = found else {
                looks += 1;
                (0..PAUSES).for_each(|_| pause());
                continue;
            };
            match self.classify(task, self.is_shallow()) {
                Classified::Stale => {}
                Classified::Ours(job) => {
                    // It may have been this worker's own.
                    self.restore_demand();
                    self.run_started(job);
                    looks = 0;
                }
                Classified::NotOurs(task) => {
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
    pub(crate) fn find_own_part(&self) -> Option<Started> {
        let core = self.core.borrow();
        let core = core.as_ref()?;
        let (queues, tally) = (&self.shared.queues, core.tally());
        let next = || queues.pop_job(&core.own, tally).or_else(|| queues.take_one_injected(tally));
        let (mut ours, mut others) = (None, Vec::new());
        for task in iter::from_fn(next).take(LOOK_THROUGH) {
            match self.classify(task, true) {
                Classified::Stale => {}
                Classified::Ours(job) => {
                    ours = Some(job);
                    break;
                }
                Classified::NotOurs(task) => others.push(task),
            }
        }
        let any = !others.is_empty();
        others.into_iter().for_each(|task| queues.push_remote(task, tally));
        if any {
            self.shared.announce(tally);
        }
        ours
    }

    /// May it be run on top of what waits, if anything may?
    pub(crate) fn classify(&self, task: Task, may_help: bool) -> Classified {
        if !may_help {
            return Classified::NotOurs(task);
        }
        match task.start() {
            None => Classified::Stale,
            Some(started) if started.is_job() && started.root() == job::root() => {
                Classified::Ours(started)
            }
            Some(started) => Classified::NotOurs(started.postpone()),
        }
    }

    /// Publishes the oldest private jobs, as many as are wanted (steps D2 and D3).
    #[cold]
    pub(crate) fn answer_demand(&self) {
        if Q::NESTS {
            job::forget_raid();
        }
        let core = self.core.borrow().as_ref().map(|core| core.index);
        match core {
            Some(core) if self.shared.keeps_one_published() => self.answer_with_offer(core),
            Some(core) => {
                let demand = &self.shared.demands[core];
                let next = || (demand.count() > 0).then(job::publish_oldest).flatten();
                // Lowered before others can see it, and only for what they will see.
                self.push_jobs(iter::from_fn(next).inspect(|_| demand.lower()));
            }
            None if self.shared.idle.all_busy() => {}
            None => self.push_jobs(job::publish_oldest().into_iter()),
        }
    }
}
