//! Guests: threads of no pool that run a join, a scope or a loop of this one (steps V).

use super::{Asleep, Idle};
use crate::order;
use crate::sync::{MutexGuard, Ordering, full_fence, lock};

impl Idle {
    /// Lets a guest in, in that place, unless shutdown has begun (steps V1 and V2). Returns whether it did. The guest is at
    /// work.
    pub(crate) fn enter_guest(&self, place: usize) -> bool {
        {
            let asleep = lock(&self.cluster_of(place).asleep);
            if self.is_stopping() {
                return false;
            }
            self.guests.fetch_add(1, Ordering::Relaxed);
            self.change_guests(place, asleep, 1);
        }
        full_fence(order::VISIT);
        true
    }

    /// Notes that a guest which has slept is at work again.
    pub(crate) fn resume_guest(&self, place: usize) {
        self.change_guests(place, lock(&self.cluster_of(place).asleep), 1);
    }

    /// Notes that a guest is about to sleep. If this returns `true`, a worker may be woken that was not before, and the caller
    /// must take the last look for it (step V4).
    #[must_use]
    pub(crate) fn pause_guest(&self, place: usize) -> bool {
        self.change_guests(place, lock(&self.cluster_of(place).asleep), -1)
    }

    /// Ends the visit of a guest that is at work, with the same result as [`pause_guest`](Self::pause_guest). After that, the
    /// caller checks for [the end](Self::end_after_guest).
    #[must_use]
    pub(crate) fn leave_guest(&self, place: usize) -> bool {
        let asleep = lock(&self.cluster_of(place).asleep);
        self.guests.fetch_sub(1, Ordering::Relaxed);
        self.change_guests(place, asleep, -1)
    }

    /// Ends the pool if it was stopped while a guest was there that has left (step V5). Returns `true` if the pool has ended,
    /// in which case the caller must sweep.
    pub(crate) fn end_after_guest(&self, has_work: impl FnOnce() -> bool) -> bool {
        self.is_stopping() && self.end_if_all_sleep(has_work)
    }

    /// Makes a worker that sleeps take a second look at the private jobs of others, because the last look of a guest was unsure
    /// (step V4).
    pub(crate) fn doubt(&self, place: usize) {
        let asleep = lock(&self.cluster_of(place).asleep);
        let Some(last) = asleep.list.last().cloned() else { return };
        drop(asleep);
        if last.sleeper().mark_in_doubt() {
            last.notify();
        }
    }

    /// Returns whether there is a guest.
    pub(super) fn has_guest(&self) -> bool {
        self.guests.load(Ordering::Relaxed) != 0
    }

    /// Changes the number of guests that are at work. Returns whether a worker may be woken that was not before.
    fn change_guests(
        &self,
        place: usize,
        mut asleep: MutexGuard<'_, Asleep>,
        change: isize,
    ) -> bool {
        let before = self.has_wakeable(&asleep);
        asleep.guests = asleep.guests.wrapping_add_signed(change);
        self.note_sleepers(self.layout.of(place), &asleep);
        let is_changed = !before && self.has_wakeable(&asleep);
        drop(asleep);
        if is_changed {
            full_fence(order::RETURN);
        }
        is_changed
    }
}
