//! What a thread does while it waits for a part of a fork: it runs other parts of the same task.
//!
//! Only jobs of the same root (`job::root`) are run on top of a join that waits. Then a stack is a chain of roots
//! each of which waits for the one above it, as in `wait`, and no wait is buried under one that waits for it. All
//! other work is left to another thread, which gets this thread's core.

use std::iter;

use crate::cluster::NO_PLACE;
use crate::fork::raid::{self, Raided};
use crate::fork::{job, purse};
use crate::sync::{Arc, AtomicUsize, Ordering, panicking, yield_now};
use crate::task::{Awaited, Started, Task};
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::private::Wanted;
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{LOOKS, YIELDS, rest};

/// How often a thread looks at a task that it waits for, and that runs elsewhere, before it considers that its core may
/// be of more use to others. A hand-off takes about as long as these looks.
const FIRST_LOOKS: u32 = if cfg!(shuttle) { 0 } else { 8 };

/// A thread that waits for a job raids the thread that runs it after this look, and then once in [`RAID_INTERVAL`] looks. That is
/// after a microsecond or two in which that thread has not looked at its demand. A guess.
const FIRST_RAID: u32 = if cfg!(shuttle) { 0 } else { 8 };
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 1 } else { 32 };

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
        let group = Some(job::root());
        if !self.help_until(awaited, group, thief) && awaited.listen(Arc::clone(&self.listener)) {
            self.publish_before_sleep();
            self.wait_long(awaited, group);
        }
    }

    /// Waits in the middle of a panic. Nothing else is run on this thread meanwhile: guards in that code would see
    /// `std::thread::panicking` and take it for the code that panics.
    #[cold]
    fn wait_unwinding(&self, awaited: &dyn Awaited) {
        self.publish_before_sleep();
        if !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        // SAFETY: `awaited` borrows the handle until this call returns, which is not before the job is done.
        match awaited.claim().map(|claimed| unsafe { claimed.delegate() }) {
            None => self.wait_long(awaited, None),
            Some(task) => self.wait_for_delegate(awaited, task, None),
        }
    }

    /// Runs the job on this thread, if it is the newest that this thread has published. Returns whether it did.
    fn take_back(&self, awaited: &dyn Awaited) -> bool {
        let is_it = |task: &Task| task.id() == awaited.id();
        let newest = self.shared.queues.take_back_job(&self.place.own, is_it);
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

    /// Adjusts this thread's demand, after it took back a job that it had published. An idle worker that the job was
    /// published for still wants one, if it does not ask again or raid by itself (step D4).
    pub(crate) fn restore_demand(&self) {
        let (idle, demand) = (&self.shared.idle, &self.shared.table.entry(self.place.index).demand);
        if self.shared.has_raids() {
            demand.taken_back(idle);
        } else if !idle.all_busy() {
            demand.restore();
        }
    }

    /// Raises this thread's own demand if a worker sleeps, before it goes on to work after a sleep or begins a visit. It may have
    /// forgotten what sleepers want while guests used their processors, and whoever has let them be woken since may have been
    /// this thread (step V6).
    pub(crate) fn restore_own_demand(&self) {
        if self.shared.config.guests > 0 {
            self.restore_for_sleepers();
        }
    }

    /// Runs parts of that group for a while. Returns whether the awaited task is done. A thread that waits for a task or
    /// for another pool returns sooner if other work is queued: such waits are long. A join waits for a thief that has
    /// started about when the join did.
    pub(crate) fn help_until(
        &self,
        awaited: &dyn Awaited,
        group: Option<usize>,
        thief: Option<&AtomicUsize>,
    ) -> bool {
        let (mut looks, of_task) = (0, thief.is_none());
        while looks < LOOKS {
            if awaited.is_done() {
                purse::flush();
                return true;
            }
            let group = group.filter(|_| self.is_shallow());
            if let Some(part) = group.and_then(|group| self.pop_part_of(group)) {
                self.run_next_part(part.start());
                looks = 0;
                continue;
            }
            if job::is_demanded() {
                self.answer_demand();
            }
            // Ordering: relaxed. It is a hint.
            let thief = thief.map_or(NO_PLACE, |thief| thief.load(Ordering::Relaxed));
            if let Some(job) = group.and_then(|group| self.find_part(group, thief, false)) {
                // This thread may have published it itself.
                self.restore_demand();
                self.run_next_part(Some(job));
                looks = 0;
                continue;
            }
            if let Some(job) = group.and_then(|group| self.ask_thief(group, thief, looks)) {
                self.run_next_part(Some(job));
                looks = 0;
                continue;
            }
            // There is no other part for now, so the credit goes back; what is awaited may be the end of that scope.
            purse::flush();
            if of_task && looks >= FIRST_LOOKS && self.shared.any() {
                // The core is of use to others meanwhile.
                return awaited.is_done();
            } else {
                rest(looks);
                looks += 1;
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

    /// Runs a part of the group on top of the wait, if it has not started elsewhere.
    fn run_next_part(&self, part: Option<Started>) {
        if let Some(part) = part {
            self.run_among_others(part);
        }
        if !self.has_part() {
            // As a rule there is no other part, so what is awaited may be done now.
            purse::flush();
        }
    }

    /// Requests jobs from the thread that runs the awaited one, which may keep some private that descend from it. If that thread
    /// goes on with something long, takes its oldest private job (step D5). Returns that if it belongs to the root of those that
    /// may run here. In a large pool there are as a rule other parts to run, and a raid would interrupt many processors.
    fn ask_thief(&self, root: usize, thief: usize, looks: u32) -> Option<Started> {
        let shared = &*self.shared;
        if shared.clusters.count() > 1 || thief >= shared.table.len() || thief == self.place.index {
            return None;
        }
        let demand = &shared.table.reach(thief)?.demand;
        if looks == 0 {
            demand.raise();
        }
        if looks % RAID_INTERVAL != FIRST_RAID {
            return None;
        }
        let (job, its_root) = raid::raid_job(demand, root)?;
        // There will be more of them.
        demand.raise();
        self.with_tally(|tally| {
            let job = self.count_raid(tally, thief, Raided::Job(job));
            if its_root == root {
                return job.start();
            }
            // Another worker may run it. Until then its owner reaches it by its handle.
            shared.queues.push_job(&self.place.own, job, its_root);
            shared.announce(tally, self.place.index);
            None
        })
    }

    /// Publishes the oldest private jobs if a worker sleeps, and with `is_late` also if a worker that searches has come by
    /// since this was last called. Otherwise it only says that it has seen the demand (step D9). For pools with raids.
    pub(crate) fn answer_sleepers(&self, is_late: bool) {
        self.pick_up_core();
        let demand = &self.shared.table.entry(self.place.index).demand;
        let is_wanted = is_late && !demand.was_seen();
        if is_wanted || !demand.may_keep(&self.shared.idle) {
            self.answer_demand();
            self.restore_for_sleepers();
        }
    }

    /// Publishes what is wanted of the older jobs and tasks of this thread, before it begins to keep closures of a batch; and
    /// raises its own demand if a worker sleeps.
    pub(crate) fn answer_before_batch(&self) {
        let has_older = || job::any() || self.has_private_tasks();
        if job::is_demanded() && has_older() {
            self.answer_demand();
        }
        self.restore_for_sleepers();
    }

    /// Raises this thread's own demand if a worker sleeps.
    pub(crate) fn restore_for_sleepers(&self) {
        if self.shared.idle.has_sleeper() {
            self.shared.table.entry(self.place.index).demand.restore();
        }
    }

    /// Publishes the oldest private jobs, as many as are wanted (steps D2 and D3).
    #[cold]
    pub(crate) fn answer_demand(&self) {
        Q::Waiting::before_answer();
        self.pick_up_core();
        if self.shared.keeps_one_published() {
            return self.answer_with_offer();
        }
        let demand = &self.shared.table.entry(self.place.index).demand;
        if job::any() && demand.count() > 0 {
            let next = || (demand.count() > 0).then(job::publish_oldest).flatten();
            // The demand is lowered before others can see the job, and only for jobs that they will see.
            self.push_jobs(iter::from_fn(next).inspect(|_| demand.lower()));
        }
        self.publish_tasks(Wanted::AsDemanded);
        if demand.tasks.is_some() && self.shared.idle.has_sleeper() {
            // What was published may be gone before that worker comes, and nothing else tells it of private tasks (D10).
            demand.restore();
        }
    }
}
