//! Who is away, and when the pool stops and ends (steps E).

use super::{AWAY, Asleep, ENDED, Idle, SLEEPER, STOPPING, Word, notify_all};
use crate::order;
use crate::sync::{MutexGuard, Ordering, full_fence, lock};

impl Idle {
    /// Returns whether shutdown has begun.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.summary() & STOPPING != 0
    }

    /// Counts a thread as away: it has unfinished tasks on its stack, and is about to sleep or to hand its core to
    /// another thread. A task that is pushed to a broadcast queue is counted as well, in the place of its worker.
    pub(crate) fn enter_away(&self, place: usize) {
        self.cluster_of(place).word.fetch_add(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has its core, or for a task that was taken
    /// from a broadcast queue.
    pub(crate) fn leave_away(&self, place: usize) {
        self.cluster_of(place).word.fetch_sub(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has finished its tasks and has no core
    /// (step E2). Returns `true` if the pool has ended, in which case the caller must sweep.
    pub(crate) fn retire(&self, place: usize, has_work: impl FnOnce() -> bool) -> bool {
        {
            let _asleep = lock(&self.cluster_of(place).asleep);
            self.leave_away(place);
        }
        self.is_stopping() && self.end_if_all_sleep(has_work)
    }

    /// Counts that many workers as sleepers, because no thread is these workers yet, or ever will be.
    pub(crate) fn add_missing(&self, workers: usize) {
        let cluster = &*self.clusters[0];
        let _asleep = lock(&cluster.asleep);
        cluster.word.fetch_add(SLEEPER * workers as u64, Ordering::Relaxed);
    }

    /// Notes that a thread has become one of the workers that [`add_missing`](Self::add_missing) has counted.
    pub(crate) fn arrive(&self) {
        let cluster = &*self.clusters[0];
        let _asleep = lock(&cluster.asleep);
        cluster.word.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// Begins shutdown: from now on the pool accepts no tasks from outside (step E1). Returns `true` if the pool has
    /// ended, in which case the caller must sweep.
    pub(crate) fn stop(&self, has_work: impl FnOnce() -> bool) -> bool {
        let lists = self.lock_all();
        self.summary.fetch_or(STOPPING, Ordering::Relaxed);
        self.try_end(lists, has_work)
    }

    /// Ends the pool, if it is stopping and there is nothing left to do (step E3). Returns whether this call has ended it.
    pub(super) fn end_if_all_sleep(&self, has_work: impl FnOnce() -> bool) -> bool {
        self.try_end(self.lock_all(), has_work)
    }

    /// Locks the lists of all clusters, in the order of their numbers.
    fn lock_all(&self) -> Vec<MutexGuard<'_, Asleep>> {
        self.clusters.iter().map(|cluster| lock(&cluster.asleep)).collect()
    }

    /// Ends the pool and wakes all sleepers, if the pool is stopping and there is nothing left to do (step E3). The
    /// caller holds the locks of all lists. Returns whether the pool has ended by this call.
    fn try_end(
        &self,
        mut lists: Vec<MutexGuard<'_, Asleep>>,
        has_work: impl FnOnce() -> bool,
    ) -> bool {
        let summary = self.summary();
        if summary & STOPPING == 0 || summary & ENDED != 0 {
            return false;
        }
        let words = || self.clusters.iter().map(|cluster| cluster.word());
        let sleepers: u64 = words().map(Word::sleepers).sum();
        let is_away = words().any(|word| word.away() != 0);
        if sleepers != self.workers || is_away || self.has_guest() || has_work() {
            return false;
        }
        self.summary.fetch_or(ENDED, Ordering::Relaxed);
        full_fence(order::END);
        lists.iter_mut().for_each(|asleep| notify_all(&mut asleep.list));
        true
    }
}
