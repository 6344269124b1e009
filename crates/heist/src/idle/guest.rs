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
        // The demands that the caller has raised come before the doubt, and so before the fence of that look.
        full_fence(order::SLEEP);
        let asleep = lock(&self.cluster_of(place).asleep);
        let Some((_, last)) = asleep.list.last().cloned() else { return };
        // Under the lock: if the worker leaves the list now, it sees the mark afterwards, and passes the doubt on.
        let must_be_woken = last.sleeper().mark_in_doubt();
        drop(asleep);
        if must_be_woken {
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::Cell;

    use crate::cluster::Clusters;
    use crate::idle::{Announced, Idle, IdleWorker, LastLook, WakeReason};
    use crate::sync::Arc;
    use crate::task::listener::Listener;

    /// A worker falls asleep although a task was pushed, because it has what it waits for before it has looked everywhere. A
    /// guest leaves meanwhile, and relies on that look. So the worker must go on to look.
    #[test]
    fn a_look_that_a_guest_relies_on_is_not_given_up() {
        let idle = Idle::new(Clusters::of_size(3, 8), 3, true);
        assert!(idle.enter_guest(3));
        assert_eq!(idle.work_added(3), Announced::Quiet);
        let listener = Arc::new(Listener::thread());
        let me = IdleWorker { listener: &listener, place: 1, searching: false, end: None };
        let look = || {
            let _ = idle.leave_guest(3);
            LastLook::Interrupted
        };
        assert_eq!(idle.sleep(me, look, || false, || false, || ()), WakeReason::Early);
        assert!(idle.has_searcher());
    }

    /// A worker that is called before it has taken its second look leaves that look to another one.
    #[test]
    fn a_doubt_is_passed_on() {
        let idle = Idle::new(Clusters::of_size(3, 8), 3, true);
        let listeners = [0, 1].map(|_| Arc::new(Listener::thread()));
        let sleep = |place: usize, look: &dyn Fn() -> LastLook| {
            let me = IdleWorker { listener: &listeners[place], place, searching: false, end: None };
            idle.sleep(me, look, || false, || false, || ())
        };
        let reason = sleep(0, &|| {
            // The second worker falls asleep after the first, is in doubt, and finds work.
            let reason = sleep(1, &|| {
                idle.doubt(0);
                assert!(listeners[1].sleeper().is_in_doubt());
                LastLook::Work
            });
            assert_eq!(reason, WakeReason::Early);
            assert!(!listeners[1].sleeper().is_in_doubt());
            assert!(listeners[0].sleeper().is_in_doubt());
            listeners[0].sleeper().clear_doubt();
            LastLook::Work
        });
        assert_eq!(reason, WakeReason::Early);
    }

    /// So does a worker that has what it waits for after it has parked for its second look.
    #[test]
    fn a_doubt_is_passed_on_after_a_park() {
        let idle = Idle::new(Clusters::of_size(3, 8), 3, true);
        let listeners = [0, 1].map(|_| Arc::new(Listener::thread()));
        let me = |place: usize| IdleWorker {
            listener: &listeners[place],
            place,
            searching: false,
            end: None,
        };
        let look = || {
            // The second worker falls asleep after the first.
            let parked = Cell::new(false);
            let doubt = || {
                idle.doubt(0);
                LastLook::Nothing
            };
            // The worker looks at the head of its loop, parks, and looks again.
            let looks = Cell::new(0);
            let done = || {
                looks.set(looks.get() + 1);
                looks.get() > 2
            };
            let reason = idle.sleep(me(1), doubt, || false, done, || parked.set(true));
            assert_eq!((reason, parked.get()), (WakeReason::Done, true));
            assert!(!listeners[1].sleeper().is_in_doubt());
            assert!(listeners[0].sleeper().is_in_doubt());
            listeners[0].sleeper().clear_doubt();
            LastLook::Work
        };
        assert_eq!(idle.sleep(me(0), look, || false, || false, || ()), WakeReason::Early);
    }
}
