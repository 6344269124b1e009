//! How a pool uses fewer cores than it has, and more of them again.
//!
//! A pool is built with all the cores that it may ever use. Cores whose number is not below the size are *retired*: the thread
//! that holds such a core waits with it, at the end of a task, until the size grows or the pool is stopped. To everybody else a
//! retired worker looks like one that runs a long task, so that the arguments about sleep, demand and the end of the pool hold as
//! they are. What is particular about it:
//!
//! * T1. It publishes what it has before it retires, and returns its credit, so that nobody needs its help to take that.
//! * T2. A worker that was woken retires without a look for work. It leaves the search as if it had found a task, and announces work:
//!   whatever it was woken for, another worker is woken for that.
//! * T3. The last core that is in use is not retired: those that waiting threads keep (`keep`) are not in use. If a waiting thread
//!   is to keep the last one, a retired core is used again, as long as that thread waits.
//! * T4. A task in the broadcast queue of a retired worker makes it go on until it has run that task.
//! * T5. A stop makes all cores go on, for good, before it looks whether all workers sleep. So no worker is to retire any more when
//!   one looks for the end of the pool under the locks of all sleepers, and none of them then takes the lock of the threads, under
//!   which a change of the size takes those locks.
//! * T6. A worker that is about to sleep and is to retire does not sleep: it sees that in its last look, or the thread that has
//!   changed the size sees that it sleeps, and wakes it. The fences are those of a push and of a sleep; in a pool of one cluster, the
//!   lock of the sleepers orders the two already. Guests depend on it: with
//!   fewer workers, fewer sleepers are withheld from being woken (`idle/README.md`, V3), and a guest that leaves later takes no look
//!   for one that may be woken already (V4). Those that were withheld are awake after the change, and look themselves.
//!
//! Models: `models/resize.rs` (T1, T2, T5) and `models/retire.rs` (T3, T4, T6).

use crate::fork::purse;
use crate::sync::{Arc, Ordering, lock};
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::handoff::{HandOff, Mailbox};
use crate::worker::policy::PoolQueues;
use crate::worker::private::Wanted;
use crate::worker::shared::{Shared, count_wake_ups};
use crate::worker::thread::WorkerThread;

/// How many cores of a pool are to be used: the smallest of these numbers, and at least one.
pub(crate) struct Size {
    /// What the user has asked for.
    asked: usize,
    /// What the system grants.
    granted: usize,
    /// Is the pool being stopped? Then all of them are used.
    stopping: bool,
}

impl Default for Size {
    fn default() -> Self {
        Self { asked: usize::MAX, granted: usize::MAX, stopping: false }
    }
}

impl HandOff {
    /// Returns how many cores are to be used.
    pub(crate) fn cores_in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Returns whether the core of that worker is to be retired.
    pub(crate) fn is_to_retire(&self, worker: usize) -> bool {
        worker >= self.cores_in_use()
    }

    /// Changes the size, and makes the cores go on that are to be used again. Calls `in_use` with their number under the lock.
    /// Returns whether there are fewer than before.
    fn change_size(&self, change: impl FnOnce(&mut Size), in_use: impl FnOnce(usize)) -> bool {
        let mut threads = lock(&self.threads);
        change(&mut threads.size);
        let size = &threads.size;
        let asked = if size.stopping { usize::MAX } else { size.asked.min(size.granted) };
        let count = asked.clamp(1, self.workers);
        let are_fewer = count < self.in_use.load(Ordering::Relaxed);
        self.in_use.store(count, Ordering::Relaxed);
        let retired = std::mem::take(&mut threads.retired);
        let (released, retired): (Vec<_>, Vec<_>) =
            retired.into_iter().partition(|(worker, _)| *worker < count);
        threads.retired = retired;
        self.show(&threads);
        in_use(count);
        drop(threads);
        released.iter().for_each(|(_, mailbox)| mailbox.listener.notify());
        are_fewer
    }

    /// Returns whether the core of that worker is to be retired, and is not the last one in use (step T3).
    pub(crate) fn can_retire(&self, worker: usize) -> bool {
        self.is_to_retire(worker) && self.has_other_core(&lock(&self.threads))
    }

    /// Retires the core of that worker, which the calling thread holds, if it [can](Self::can_retire). Returns whether it did.
    fn begin_retirement(&self, worker: usize, mailbox: &Arc<Mailbox>) -> bool {
        let mut threads = lock(&self.threads);
        let retires = self.is_to_retire(worker) && self.has_other_core(&threads);
        if retires {
            threads.retired.push((worker, Arc::clone(mailbox)));
            self.show(&threads);
        }
        retires
    }

    /// Waits until the core of that worker is to be used again, or until `is_needed`.
    fn wait_retired(&self, worker: usize, mailbox: &Mailbox, is_needed: impl Fn() -> bool) {
        loop {
            let mut threads = lock(&self.threads);
            let Some(at) = threads.retired.iter().position(|(retired, _)| *retired == worker)
            else {
                break;
            };
            if is_needed() {
                threads.retired.swap_remove(at);
                self.show(&threads);
                break;
            }
            drop(threads);
            mailbox.listener.sleeper().park();
        }
    }

    /// Makes the retired workers look into their broadcast queues (step T4).
    pub(crate) fn remind_retired(&self) {
        // Always under the lock: a worker that has entered the list looks under the same lock whether it has a task there. So it
        // sees the task, or it is seen here.
        lock(&self.threads).retired.iter().for_each(|(_, mailbox)| mailbox.listener.notify());
    }
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns how many workers the pool uses, or will as soon as their tasks end.
    #[inline]
    pub(crate) fn workers_in_use(&self) -> usize {
        self.handoff.cores_in_use()
    }

    /// Sets how many workers the user asks for.
    pub(crate) fn ask_for_workers(&self, workers: usize) {
        self.change_size(|size| size.asked = workers);
    }

    /// Sets how many workers the system grants.
    pub(crate) fn grant_workers(&self, workers: usize) {
        self.change_size(|size| size.granted = workers);
    }

    /// Uses all cores from now on, because the pool is being stopped (step T5).
    pub(crate) fn use_all_cores(&self) {
        self.change_size(|size| size.stopping = true);
    }

    fn change_size(&self, change: impl FnOnce(&mut Size)) {
        if self.handoff.change_size(change, |in_use| self.idle.use_workers(in_use)) {
            // Those that sleep retire as well (step T6).
            let tally = self.ledger.of_non_workers();
            count_wake_ups(tally, self.idle.broadcast_added());
        }
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Waits as long as the worker's core is retired, in the middle of a search, and returns whether the worker still counts as a
    /// searcher.
    pub(crate) fn retire_from_search(&self, core: &Core, searching: bool) -> bool {
        let shared = &*self.shared;
        if !shared.handoff.can_retire(core.index) {
            return searching;
        }
        if searching {
            // Step T2.
            let woken = shared.idle.leave_search(self.place.index, || self.is_work_left());
            count_wake_ups(core.tally(), woken);
        }
        self.retire(core);
        shared.idle.start_search(self.place.index)
    }

    /// Waits as long as the worker's core is retired. Returns at once if it is not to be retired. The worker is not counted as a
    /// searcher.
    pub(crate) fn retire(&self, core: &Core) {
        if !self.shared.handoff.can_retire(core.index) {
            return;
        }
        // Step T1. The credit may be the last that a scope waits for (step C4.3 of `fork/README.md`).
        purse::flush();
        self.publish_tasks(Wanted::All);
        // Step T2. A guest may have kept others from being woken, because this worker was awake.
        self.shared.announce(core.tally(), self.place.index);
        self.wait_retired(core);
    }

    /// Retires the core, and waits until it is to be used again. Returns at once if it cannot be retired.
    pub(crate) fn wait_retired(&self, core: &Core) {
        let (handoff, worker) = (&self.shared.handoff, core.index);
        if !handoff.begin_retirement(worker, &self.mailbox) {
            return;
        }
        record(EventKind::Park);
        let is_needed = || self.shared.queues.has_broadcast(worker);
        handoff.wait_retired(worker, &self.mailbox, is_needed);
        record(EventKind::Unpark);
    }
}
