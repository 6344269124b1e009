//! A worker thread as code sees it that does not know the strategy of the pool.

use std::iter;
use std::ptr::NonNull;

use crate::sync::{Arc, AtomicUsize, HeavyFence, heavy_fence_state, unsize_arc};
use crate::task::{Awaited, End, Task};
use crate::worker::admission::Admission;
use crate::worker::current::{AnyPool, AnyWorker};
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::thread::WorkerThread;

impl<Q: PoolQueues> AnyWorker for WorkerThread<Q> {
    fn push_local(&self, task: Task, count: u64) {
        Self::push_local(self, task, count);
    }

    fn push_job(&self, job: Task) {
        Q::Waiting::before_push(self);
        self.push_jobs(iter::once(job));
    }

    fn push_part(&self, part: Task) {
        Self::push_part(self, part);
    }

    fn any_pool(&self) -> NonNull<dyn AnyPool> {
        NonNull::from(&*self.shared as &dyn AnyPool)
    }

    fn owned_pool(&self) -> Arc<dyn AnyPool> {
        unsize_arc!(Arc::clone(&self.shared))
    }

    fn workers(&self) -> usize {
        self.shared.workers_in_use()
    }

    fn worker_index(&self) -> Option<usize> {
        self.pick_up_core();
        self.worker()
    }

    fn note_copy(&self) {
        self.shared.handoff.call();
    }

    fn count_near(&self, worker: usize) {
        Self::count_near(self, worker);
    }

    fn has_searcher(&self) -> bool {
        self.shared.idle.has_searcher()
    }

    fn yield_to_queued(&self) -> bool {
        Self::yield_to_queued(self)
    }

    fn push_pieces(&self, pieces: &mut dyn Iterator<Item = Task>, group: usize) {
        Self::push_pieces(self, pieces, group);
    }

    fn may_keep_private(&self, closures: u32) -> bool {
        // In a hook at the start or the end of the thread, nobody reaches its jobs.
        let can_raid = self.shared.has_raids() && heavy_fence_state() == HeavyFence::Ready;
        if !self.in_service.get() || !can_raid {
            return false;
        }
        self.on_top.get()
            || self.core.borrow().as_ref().is_some_and(|core| core.skip_turns(closures))
    }

    fn is_cancelling(&self) -> bool {
        self.shared.is_cancelling()
    }

    fn count(&self, end: End) {
        Self::count(self, end);
    }

    fn answer_demand(&self) {
        Self::answer_demand(self);
    }

    fn answer_sleepers(&self, is_late: bool) {
        Self::answer_sleepers(self, is_late);
    }

    fn answer_before_batch(&self) {
        Self::answer_before_batch(self);
    }

    fn wait(&self, awaited: &dyn Awaited, pool: usize) {
        Q::Waiting::wait(self, awaited, pool);
    }

    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        Q::Waiting::wait_for_job(self, awaited, thief);
    }

    fn admission(&self) -> Option<&Admission> {
        self.shared.config.admission.as_deref()
    }

    fn may_wait_for_room(&self) -> bool {
        // A guest has no core to hand on. A thread that has no core and wants none is in a hook, or hands its core to another one.
        self.is_guest
            || self.resumed.get().is_some()
            || (self.worker().is_some() && self.shared.handoff.has_thread())
    }
}
