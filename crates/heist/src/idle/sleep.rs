//! How a worker falls asleep, and why it wakes up (steps S).

use std::time::Duration;

use super::{ENDED, Idle, SEARCHER, SLEEPER};
use crate::order;
use crate::sync::{Arc, Instant, Ordering, full_fence, lock};
use crate::task::listener::Listener;

/// How long a worker sleeps before it takes a second look at the private jobs of others. Most sleeps are shorter, and the
/// second look disturbs all workers. A guess.
const SECOND_LOOK: Duration = Duration::from_micros(200);

/// A worker that goes to sleep.
#[derive(Clone, Copy)]
pub(crate) struct IdleWorker<'w> {
    /// What wakes its thread.
    pub(crate) listener: &'w Arc<Listener>,
    /// The place of its thread.
    pub(crate) place: usize,
    /// Is it a searcher?
    pub(crate) searching: bool,
    /// When it wakes up by itself, to see whether what it waits for is done.
    pub(crate) end: Option<Instant>,
}

/// The result of a worker's last look before it sleeps.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLook {
    /// There is work, or there may be.
    Work,
    /// There is none.
    Nothing,
    /// There is none in the queues. Another thread may have private jobs that this look does not show.
    Unsure,
    /// The worker has not looked everywhere, because what it waits for is done.
    Interrupted,
}

/// Why a worker does not sleep any more.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The worker itself has found work. It is now a searcher.
    Early,
    /// What the worker waits for is done, and nobody relies on it as a searcher.
    Done,
    /// Another thread has woken it to search for work. It is now a searcher.
    Called,
    /// The pool has ended.
    Ended,
    /// The pool has ended, and this worker has detected it. It must sweep (step E4).
    EndedHere,
}

impl Idle {
    /// Sleeps until the worker is called, the pool ends, or `done` returns `true` (steps S1 to S6). Does not sleep
    /// if `last_look` finds work. If that look is unsure, or another thread is in doubt (step V4), `second_look` is called after
    /// a while. A searcher is none while
    /// it sleeps. The thread that makes `done` true notifies the worker's listener. `parking` is called before the thread
    /// parks for the first time.
    pub(crate) fn sleep(
        &self,
        worker: IdleWorker<'_>,
        last_look: impl Fn() -> LastLook,
        second_look: impl Fn() -> bool,
        done: impl Fn() -> bool,
        parking: impl FnOnce(),
    ) -> WakeReason {
        let reason = self.sleep_until_called(worker, last_look, second_look, done, parking);
        let sleeper = worker.listener.sleeper();
        if sleeper.is_in_doubt() {
            // The second look that this worker has not taken is left to another one.
            sleeper.clear_doubt();
            self.doubt(worker.place);
        }
        reason
    }

    fn sleep_until_called(
        &self,
        worker: IdleWorker<'_>,
        last_look: impl Fn() -> LastLook,
        second_look: impl Fn() -> bool,
        done: impl Fn() -> bool,
        parking: impl FnOnce(),
    ) -> WakeReason {
        let IdleWorker { listener: me, place, searching, end } = worker;
        let sleeper = me.sleeper();
        let has_guests;
        {
            let cluster = self.cluster_of(place);
            let mut asleep = lock(&cluster.asleep);
            if self.summary() & ENDED != 0 {
                return WakeReason::Ended;
            }
            sleeper.prepare_sleep();
            has_guests = asleep.guests > 0;
            asleep.list.push((place, Arc::clone(me)));
            self.note_sleepers(self.layout.of(place), &asleep);
            let change = if searching { SLEEPER.wrapping_sub(SEARCHER) } else { SLEEPER };
            cluster.word.fetch_add(change, Ordering::Relaxed);
        }
        full_fence(order::SLEEP);
        let look = last_look();
        let reason = match look {
            LastLook::Work => Some(WakeReason::Early),
            // A thread that has pushed a task may have relied on the searcher that it was before. And a guest that has left
            // meanwhile has relied on this look.
            LastLook::Interrupted if searching || has_guests => Some(WakeReason::Early),
            LastLook::Interrupted => Some(WakeReason::Done),
            LastLook::Nothing | LastLook::Unsure => done().then_some(WakeReason::Done),
        };
        if let Some(reason) = reason {
            return self.leave_sleep(me, place, reason);
        }
        let has_work = || last_look() == LastLook::Work;
        if self.is_stopping() && self.end_if_all_sleep(has_work) {
            return WakeReason::EndedHere;
        }
        parking();
        let mut is_unsure = look == LastLook::Unsure;
        while !sleeper.is_called() {
            if done() {
                return self.leave_sleep(me, place, WakeReason::Done);
            }
            if !is_unsure && !sleeper.is_in_doubt() {
                sleeper.park_until(end);
                continue;
            }
            sleeper.park_for(SECOND_LOOK);
            if sleeper.is_called() || done() {
                // The doubt of a guest stands, and goes to another worker.
                continue;
            }
            // A doubt that comes later needs another look.
            sleeper.clear_doubt();
            is_unsure = false;
            if second_look() {
                return self.leave_sleep(me, place, WakeReason::Early);
            }
        }
        self.leave_sleep(me, place, WakeReason::Called)
    }

    /// Ends the sleep of the calling worker, for the given reason unless it was called meanwhile (steps S4 and S6). If it
    /// was called or has found work, it is a searcher.
    fn leave_sleep(&self, me: &Arc<Listener>, place: usize, reason: WakeReason) -> WakeReason {
        let cluster = self.cluster_of(place);
        let mut asleep = lock(&cluster.asleep);
        match asleep.list.iter().rposition(|(_, other)| Arc::ptr_eq(other, me)) {
            Some(index) => {
                asleep.list.remove(index);
                self.note_sleepers(self.layout.of(place), &asleep);
                let searches = if reason == WakeReason::Done { 0 } else { SEARCHER };
                cluster.word.fetch_add(searches.wrapping_sub(SLEEPER), Ordering::Relaxed);
                reason
            }
            None if self.summary() & ENDED != 0 => WakeReason::Ended,
            None => WakeReason::Called,
        }
    }
}
