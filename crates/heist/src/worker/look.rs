//! Looks at the queues and demands of all threads: is there work, and who is asked for some.

use crate::fork::demand::Demand;
use crate::fork::raid;
use crate::idle::LastLook;
use crate::order;
use crate::sync::{HeavyFence, full_fence, heavy_fence, heavy_fence_state};
use crate::worker::core::victims;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::table::Entry;

impl<Q: PoolQueues> Shared<Q> {
    /// Returns whether there is a task or a part that any worker could take.
    pub(crate) fn any(&self) -> bool {
        self.has_remote() || self.any_from(0)
    }

    /// Returns whether a thread has a task or a part that any worker could take. Looks first at the thread in that place
    /// and at those after it.
    pub(crate) fn any_from(&self, place: usize) -> bool {
        let mut places = (place..self.table.len()).chain(0..place);
        places.any(|place| {
            self.table.reach(place).is_some_and(|thread| self.queues.has_any(&thread.queues))
        })
    }

    /// Requests work from other threads, because the one in that place has none: from those of its own cluster, and from
    /// those of another cluster, which is the `turn`th (step D1).
    pub(crate) fn raise_demand(&self, place: usize, turn: usize) {
        let (near, count) = (self.clusters.of(place), self.table.len());
        let far = turn % self.clusters.count();
        let raise = |cluster| {
            let others = self.clusters.places_of(cluster, count).filter(|&other| other != place);
            let demands = others.filter_map(|other| Some(&self.table.reach(other)?.demand));
            demands.for_each(Demand::raise);
        };
        raise(near);
        if far != near {
            raise(far);
        }
    }

    /// Takes the last look of a worker that has announced that it sleeps (step S3), and whose thread is in that
    /// place. Without a worker, it is the look of a guest for one that sleeps, which is woken for a broadcast in any case. In a large pool that takes a while, so it stops when `done` says so.
    pub(crate) fn last_look(
        &self,
        worker: Option<usize>,
        place: usize,
        done: impl Fn() -> bool,
    ) -> LastLook {
        let reach = |other| self.table.reach(other);
        for cluster in self.clusters.from(self.clusters.of(place)) {
            let others = self.clusters.places_of(cluster, self.table.len());
            let others = others.filter(|&other| other != place).filter_map(reach);
            others.for_each(|thread| thread.demand.raise_for_sleeper());
            if done() {
                return LastLook::Interrupted;
            }
        }
        for cluster in self.clusters.from(self.clusters.of(place)) {
            let mut threads = self.clusters.places_of(cluster, self.table.len()).filter_map(reach);
            if threads.any(|thread| self.queues.has_any(&thread.queues)) {
                return LastLook::Work;
            }
            if done() {
                return LastLook::Interrupted;
            }
        }
        let has_broadcast = |worker| self.queues.has_broadcast(worker);
        if self.has_remote() || worker.is_some_and(has_broadcast) {
            LastLook::Work
        } else if self.has_raids() && (self.clusters.count() > 1 || self.is_anybody_busy()) {
            // In a large pool, what a worker does may change between two of the looks at the clusters. The second look
            // asks again whether anybody is busy.
            LastLook::Unsure
        } else {
            LastLook::Nothing
        }
    }

    /// Takes the last look for a worker that sleeps and was not woken because of a guest, in that place, which is about to sleep
    /// or to leave (step V4). Wakes a worker if there is work.
    #[cold]
    pub(crate) fn look_for_sleeper(&self, place: usize) {
        match self.last_look(None, place, || false) {
            LastLook::Work => self.announce(self.ledger.of_non_workers(), place),
            LastLook::Unsure => self.idle.doubt(place),
            LastLook::Nothing | LastLook::Interrupted => {}
        }
    }

    /// Returns whether a thread may be running something.
    fn is_anybody_busy(&self) -> bool {
        // The caller has raised the demands. A thread that goes on without a core is counted among those that want one, and
        // passes a fence before it looks at its demand.
        full_fence(order::SLEEP);
        self.handoff.is_wanted() || self.idle.is_anybody_busy(self.config.workers)
    }

    /// Returns the place of a thread that may have private jobs and has not seen that they are wanted (step D6). It is not
    /// the one in that place.
    pub(crate) fn find_private(&self, place: usize) -> Option<usize> {
        let is_ready = heavy_fence_state() == HeavyFence::Ready;
        if !self.has_raids() || !is_ready || !self.is_anybody_busy() {
            return None;
        }
        heavy_fence(order::RAID);
        let may_raid = |thread: &Entry<Q>| raid::may_raid(&thread.demand);
        victims(place, 0, self.table.len()).find(|&at| self.table.reach(at).is_some_and(may_raid))
    }
}
