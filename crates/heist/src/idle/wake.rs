//! How a thread wakes a sleeper of a cluster, whether it has pushed a task (P4) or ends a search (F3).

use super::{Announced, Asleep, Attempt, ENDED, Idle, SEARCHER, SLEEPER};
use crate::sync::{MutexGuard, Ordering, lock, pause, try_lock};

/// A thread that is to wake a sleeper tries to lock the list so often, with pauses between, before it waits for the lock: for
/// some microseconds. A guess.
const TRIES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 128 };

impl Idle {
    /// Wakes one sleeper, unless there is none or a worker searches, after a task was pushed by a thread that turns to that
    /// cluster (step P4).
    #[cold]
    #[inline(never)]
    pub(super) fn wake_one(&self, summary: u64, home: usize) -> Announced {
        if summary & ENDED != 0 {
            return Announced::Ended;
        }
        let near_first = [home].into_iter().chain(self.layout.nearest_first(home, home));
        for cluster in near_first.filter(|cluster| summary & 1 << cluster != 0) {
            match self.wake_in(cluster) {
                Attempt::Woken => return Announced::Called,
                Attempt::Searched => return Announced::Quiet,
                Attempt::NobodySleeps => {}
            }
        }
        Announced::Quiet
    }

    /// Wakes one sleeper of a cluster and counts it as a searcher, unless a worker of the cluster searches (step P4).
    ///
    /// Where few clusters have sleepers, all busy workers of a large pool come here at the same time. So a thread that finds
    /// the lock taken looks whether it is still needed before it tries again: as a rule the one that has the lock wakes a
    /// worker. If all of them queued for the lock, the worker that is woken, which needs it too, would wait behind them.
    fn wake_in(&self, cluster: usize) -> Attempt {
        let asleep = &self.clusters[cluster].asleep;
        let mut tries = 0;
        let asleep = loop {
            if self.is_searched(cluster) {
                return Attempt::Searched;
            }
            if self.summary() & 1 << cluster == 0 {
                return Attempt::NobodySleeps;
            }
            if let Some(asleep) = try_lock(asleep) {
                break asleep;
            }
            if tries == TRIES {
                // The thread that has the lock may have lost its processor.
                break lock(asleep);
            }
            tries += 1;
            pause();
        };
        if self.is_searched(cluster) {
            return Attempt::Searched;
        }
        self.wake_last(cluster, asleep)
    }

    /// A twin of [`work_added`](Self::work_added), for the model that must fail: it takes a lock that is taken for a sign that a
    /// worker will be woken.
    #[cfg(all(test, loom))]
    pub(crate) fn work_added_unless_locked(&self, place: usize) -> Announced {
        crate::sync::full_fence(crate::order::SUBMIT);
        let home = self.layout.of(place);
        if self.summary() & 1 << home != 0 && !self.is_searched(home) {
            if let Some(asleep) = try_lock(&self.clusters[home].asleep) {
                let _ = self.wake_last(home, asleep);
            }
        }
        Announced::Quiet
    }

    /// Wakes the sleeper of a cluster that fell asleep last, and counts it as a searcher.
    fn wake_last(&self, cluster: usize, asleep: MutexGuard<'_, Asleep>) -> Attempt {
        if !self.has_wakeable(&asleep) {
            return Attempt::NobodySleeps;
        }
        match asleep.list.len() {
            0 => Attempt::NobodySleeps,
            len => self.wake_at(cluster, asleep, len - 1),
        }
    }

    /// Wakes the sleeper of a cluster with that index in its list, and counts it as a searcher.
    pub(super) fn wake_at(
        &self,
        cluster: usize,
        mut asleep: MutexGuard<'_, Asleep>,
        index: usize,
    ) -> Attempt {
        let (_, listener) = asleep.list.remove(index);
        let change = SEARCHER.wrapping_sub(SLEEPER);
        self.clusters[cluster].word.fetch_add(change, Ordering::Relaxed);
        self.note_sleepers(cluster, &asleep);
        listener.sleeper().mark_called();
        drop(asleep);
        listener.notify();
        Attempt::Woken
    }

    /// Wakes a sleeper of that cluster and one of another, each unless a worker of its cluster searches, and in a pool of
    /// several clusters a second one of that cluster (step F3). Returns how many it has woken. So the workers of a large pool
    /// are woken as a tree.
    pub(super) fn wake_near_and_far(&self, home: usize) -> u64 {
        let summary = self.summary();
        let has_sleepers = |cluster: usize| summary & 1 << cluster != 0;
        let is_woken = |attempt: Attempt| attempt == Attempt::Woken;
        let near = has_sleepers(home) && is_woken(self.wake_in(home));
        let far = self
            .layout
            .from(self.layout.opposite(home))
            .filter(|&cluster| cluster != home && has_sleepers(cluster))
            .any(|cluster| is_woken(self.wake_in(cluster)));
        // One after the other, those of a cluster would take longer than all clusters.
        let second = near && self.clusters.len() > 1 && {
            is_woken(self.wake_last(home, lock(&self.clusters[home].asleep)))
        };
        [near, far, second].map(u64::from).into_iter().sum()
    }
}
