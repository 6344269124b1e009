//! What a thread does while it waits for a part of a fork: it runs other parts of the same task.
//!
//! Only jobs of the same root (`job::root`) are run on top of a join that waits. Then a stack is a chain of roots
//! each of which waits for the one above it, as in `wait`, and no wait is buried under one that waits for it. All
//! other work is left to another thread, which gets this thread's core.

use std::iter;

use crate::fork::demand::NO_WORKER;
use crate::fork::job;
use crate::sync::{Arc, AtomicUsize, Ordering, panicking, pause, yield_now};
use crate::task::{Awaited, Started, Task};
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{LOOKS, PAUSES, YIELDS};

/// The largest number of queued tasks that a waiting thread examines in search of a job of its own root. A guess.
const LOOK_THROUGH: usize = 1024;

/// The answer to the question whether a task may run on top of the join that waits.
pub(crate) enum Classified {
    /// Its handle has claimed it: there is nothing to run.
    Stale,
    /// It is a job of the same root, and this thread has started it.
    Ours(Started),
    NotOurs(Task),
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Waits for a published job, or for all parts of a scope, and runs other jobs of the same root meanwhile. The
    /// thread that runs the job stores its number in `thief`; a scope has none.
    pub(crate) fn help_and_wait(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
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

    /// Waits in the middle of a panic. Nothing else is run on this thread meanwhile: guards in that code would see
    /// `std::thread::panicking` and take it for the code that panics.
    #[cold]
    fn wait_unwinding(&self, awaited: &dyn Awaited) {
        self.publish_before_sleep();
        if self.shared.handoff.is_crowded() && self.run_claimed_job(awaited) {
            // The job ran here although guards in it may be misled: that is better than to have no thread left.
            return;
        }
        if !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        // SAFETY: `awaited` borrows the handle until this call returns, which is not before the job is done.
        match awaited.claim().map(|claimed| unsafe { claimed.delegate() }) {
            None => self.wait_long(awaited, false),
            Some(task) => self.wait_for_delegate(awaited, task),
        }
    }

    /// Runs the job on this thread, if it is the newest that this worker has published. Returns whether it did.
    fn take_back(&self, awaited: &dyn Awaited) -> bool {
        let newest = self.core.borrow().as_ref().and_then(|core| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.shared.queues.take_back_job(&core.own, is_it, core.tally())
        });
        let Some(job) = newest else { return false };
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

    /// Raises this worker's demand again, after it ran a job that it had published. An idle worker that the job was
    /// published for still wants one (step D4).
    pub(crate) fn restore_demand(&self) {
        if let Some(core) = &*self.core.borrow() {
            if !self.shared.idle.all_busy() {
                self.shared.demands[core.index].restore();
            }
        }
    }

    /// Runs other jobs of the same root for a while. Returns whether the awaited one is done.
    fn help_until(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) -> bool {
        let mut looks = 0;
        while looks < LOOKS {
            if awaited.is_done() {
                return true;
            }
            if job::is_demanded() {
                self.answer_demand();
            }
            // Ordering: relaxed. It is a hint.
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
                    // This worker may have published it itself.
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

    /// Looks for a job of this thread's root behind tasks that must not run here. If this thread holds a lock that all
    /// other threads want, none of them will get to such a job.
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

    /// Decides whether a task may run on top of the join that waits. Without `may_help`, no task may.
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
        Q::Waiting::before_answer();
        let worker = self.core.borrow().as_ref().map(|core| core.index);
        match worker {
            Some(worker) if self.shared.keeps_one_published() => self.answer_with_offer(worker),
            Some(worker) => {
                let demand = &self.shared.demands[worker];
                let next = || (demand.count() > 0).then(job::publish_oldest).flatten();
                // The demand is lowered before others can see the job, and only for jobs that they will see.
                self.push_jobs(iter::from_fn(next).inspect(|_| demand.lower()));
            }
            None if self.shared.idle.all_busy() => {}
            None => self.push_jobs(job::publish_oldest().into_iter()),
        }
    }
}
