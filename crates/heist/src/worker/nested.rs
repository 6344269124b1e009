//! What a thread of an engine (`crate::engine`) does while it waits: whatever there is to do, on top of what waits.
//!
//! It keeps its core, so there are never more threads than cores; the price is that what waits can be buried under
//! something long, or under something that waits for it.

use crate::fork::job;
use crate::idle::WakeReason;
use crate::queues::Queues;
use crate::sync::{Arc, pause, yield_now};
use crate::task::{Awaited, Task};
use crate::worker::core::Core;
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{PAUSES, YIELDS};

/// Looks for something to do before it sleeps: some fifty microseconds, as long as it takes to sleep and to be woken on a
/// bad day. A thread of an engine that sleeps helps nobody.
const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 256 };
/// After so many looks in vain it sees what others keep to themselves: what it waits for is with one of them.
const FIRST_RAID: u32 = if cfg!(shuttle) { 1 } else { 8 };
/// And again after so many.
const RAID_INTERVAL: u32 = if cfg!(shuttle) { 2 } else { 32 };

impl<Q: Queues> WorkerThread<Q> {
    /// Returns when it is done.
    pub(crate) fn wait_nested(&self, awaited: &dyn Awaited) {
        let mut wait = Wait { awaited, looks: 0, searching: false, listening: false };
        while !awaited.is_done() {
            if let Some(task) =
                self.next_local().or_else(|| self.next_from_others()).or_else(|| wait.raid(self))
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

    /// A attached thread goes on with its own life, and does not lie down as a worker would: if it was the last to do something,
    /// the others may end (step E5).
    fn leave_to_others(&self) {
        let shared = &*self.shared;
        let is_attached = |core: &Core<Q>| shared.is_attached(core.index);
        if shared.idle.is_stopping() && self.core.borrow().as_deref().is_some_and(is_attached) {
            shared.close();
        }
    }

    /// What this thread does next by itself: its own newest.
    pub(crate) fn next_local(&self) -> Option<Task> {
        // Private jobs are newer than what is in the deque: see `publish_private_jobs`.
        self.publish_private_jobs();
        let core = self.core.borrow();
        let core = core.as_ref()?;
        let task = core.next(&self.shared)?;
        self.taken_back(core.index);
        Some(task)
    }

    /// What this thread does itself, nobody else has wanted soon enough.
    fn taken_back(&self, core: usize) {
        let shared = &*self.shared;
        if shared.keeps_one_published() && shared.config.workers > 1 {
            // It may have been what was on offer.
            shared.demands[core].restore();
        } else {
            shared.demands[core].keep_for_sleepers(&shared.idle);
        }
    }

    /// What another thread has, or what came from elsewhere.
    pub(crate) fn next_from_others(&self) -> Option<Task> {
        self.core.borrow().as_ref()?.search_others(&self.shared)
    }

    /// What another thread has kept to itself.
    pub(crate) fn raid(&self) -> Option<Task> {
        self.core.borrow().as_ref()?.raid(&self.shared)
    }

    /// Publishes what is private, before something is pushed: so what is private is newer than what is in the deque.
    pub(crate) fn publish_private_jobs(&self) {
        if job::any() {
            self.push_jobs(std::iter::from_fn(job::publish_oldest));
        }
    }

    /// Has this thread something to do next?
    pub(crate) fn has_pending(&self) -> bool {
        let in_reach = |index| self.shared.queues.has_job(index);
        job::any() || self.core.borrow().as_ref().is_some_and(|core| in_reach(core.index))
    }

    /// Publishes as many jobs as are wanted, and one in any case (step D7).
    pub(crate) fn answer_with_offer(&self, core: usize) {
        let demand = &self.shared.demands[core];
        let wanted = demand.take();
        let count = wanted.max(usize::from(!self.shared.queues.has_job(core)));
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
    fn raid<Q: Queues>(&self, thread: &WorkerThread<Q>) -> Option<Task> {
        let is_time = self.looks == FIRST_RAID
            || self.looks % RAID_INTERVAL == RAID_INTERVAL - 1
            || self.looks >= LOOKS + YIELDS;
        if is_time { thread.raid() } else { None }
    }

    fn leave_search<Q: Queues>(&mut self, thread: &WorkerThread<Q>) {
        thread.leave_search(&mut self.searching);
    }

    /// There is nothing to do: looks again soon, or sleeps.
    fn rest<Q: Queues>(&mut self, thread: &WorkerThread<Q>) {
        self.looks += 1;
        if self.looks <= LOOKS {
            return (0..PAUSES).for_each(|_| pause());
        }
        if self.looks <= LOOKS + YIELDS {
            return yield_now();
        }
        let listener = &thread.listener;
        if !self.listening && !self.awaited.listen(Arc::clone(listener)) {
            return;
        }
        self.listening = true;
        let (shared, awaited) = (&*thread.shared, self.awaited);
        let Some(index) = thread.core.borrow().as_ref().map(|core| core.index) else {
            return thread.sleep_until(awaited);
        };
        shared.idle.enter_away();
        let wake_reason = thread.sleep(self.searching, index, || awaited.is_done());
        shared.idle.leave_away();
        match wake_reason {
            WakeReason::Early | WakeReason::Called => self.searching = true,
            // Of the others; this one has a life of its own, or is at its end.
            WakeReason::Ended | WakeReason::EndedHere => {
                self.searching = false;
                thread.sleep_until(awaited);
            }
        }
    }
}
