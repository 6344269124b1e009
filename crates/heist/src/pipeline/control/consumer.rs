//! How the consumer of the results falls asleep, and when a worker wakes it (steps R1 to R4 and C1 to C5 of
//! `../README.md`).
//!
//! A worker that has stored results reads one word, and takes the lock only if that word says that the
//! consumer sleeps. The two sides need a fence each. Where the system offers a fence that also covers other
//! threads, the consumer, which is about to sleep, pays for both, and the workers' fence costs nothing.

use super::Control;
use super::state::{Delivered, Notifications, RunState, SleepKind, SleepingConsumer};
use crate::order;
use crate::sync::{Ordering, full_fence, heavy_fence, light_fence, lock};
use crate::task::{Promise, TaskHandle};

// The values of `Hints::consumer`.

/// The consumer is awake, and looks for results before it sleeps.
pub(super) const AWAKE: usize = 0;
/// The consumer sleeps for a bounded time, after which it looks by itself.
const DOZING: usize = 1;
/// The consumer sleeps until it is woken.
const ASLEEP: usize = 2;

impl Control {
    /// Wakes the consumer if it should be woken for the results of this batch, which are in the worker's
    /// outbox (R2 to R4).
    ///
    /// `unannounced` counts the batches whose results this worker has stored while the consumer dozed.
    #[inline]
    pub(crate) fn results_stored(&self, batch: u64, unannounced: &mut usize) {
        // R2. Pairs with `ASLEEP` in `consumer_sleeps`.
        if self.has_heavy_fence {
            light_fence(order::PUT)
        } else {
            full_fence(order::PUT)
        }
        // R3. Ordering: relaxed, after the fence. A consumer in deep sleep that this load misses has found
        // the results in the outbox at its last look.
        match self.hints.0.consumer.0.load(Ordering::Relaxed) {
            AWAKE => *unannounced = 0,
            DOZING if *unannounced + 1 < self.share_of_worker() => *unannounced += 1,
            _ => {
                *unannounced = 0;
                self.wake_consumer_for(batch);
            }
        }
    }

    /// Wakes the consumer under the lock, unless it waits for another batch than this one (R4).
    #[cold]
    fn wake_consumer_for(&self, batch: u64) {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        let wants = |consumer: &SleepingConsumer| {
            !self.rules.ordered || consumer.kind == SleepKind::Doze || batch == consumer.wanted
        };
        if state.consumer.as_ref().is_some_and(wants) {
            notifications.wake[0] = self.take_consumer(&mut state);
        }
        drop(state);
        self.send(notifications);
    }

    /// Marks the consumer as awake, and returns the promise that wakes it if it sleeps.
    pub(super) fn take_consumer(&self, state: &mut RunState) -> Option<Promise<()>> {
        self.hints.0.consumer.0.store(AWAKE, Ordering::Relaxed);
        state.consumer.take().map(|consumer| consumer.promise)
    }

    /// Wakes the consumer if it dozes, as far as is known without the lock (S4).
    pub(crate) fn wake_if_seems_dozing(&self) {
        // Ordering: relaxed. A dozing consumer that this misses looks by itself soon.
        if self.hints.0.consumer.0.load(Ordering::Relaxed) == DOZING {
            let mut notifications = Notifications::default();
            let mut state = lock(&self.state.0);
            self.wake_if_dozing(&mut state, &mut notifications);
            drop(state);
            self.send(notifications);
        }
    }

    /// Wakes the consumer if it dozes.
    ///
    /// A thread calls this when it has nothing to do and there is no room for more batches. Only the consumer
    /// can make room, by delivering results.
    pub(super) fn wake_if_dozing(&self, state: &mut RunState, notifications: &mut Notifications) {
        if state.consumer.as_ref().is_some_and(|consumer| consumer.kind == SleepKind::Doze) {
            notifications.wake[0] = self.take_consumer(state);
        }
    }

    /// Announces that the consumer has found no results and is about to sleep (C1 to C3). `wanted` is the
    /// number of the next batch that it wants.
    ///
    /// The consumer must look into the outboxes once more before it waits for the handle (C4), and call
    /// [`consumer_woke`](Self::consumer_woke) afterwards (C5). Returns `None` if the run is over.
    pub(crate) fn consumer_sleeps(
        &self,
        delivered: &Delivered,
        wanted: u64,
        kind: SleepKind,
    ) -> Option<TaskHandle<Vec<()>>> {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        // C1.
        self.note_delivered(&mut state, delivered, &mut notifications);
        // C2.
        let handle = (!state.is_over(&self.rules, wanted)).then(|| {
            let (promise, handle) = Promise::new();
            state.consumer = Some(SleepingConsumer { promise, wanted, kind });
            let word = if kind == SleepKind::Deep { ASLEEP } else { DOZING };
            self.hints.0.consumer.0.store(word, Ordering::Relaxed);
            handle
        });
        drop(state);
        self.send(notifications);
        // C3. Pairs with `PUT` in `results_stored`.
        match (kind, self.has_heavy_fence) {
            // A dozing consumer may be missed: it looks by itself soon.
            (SleepKind::Doze, _) => {}
            (SleepKind::Deep, true) => heavy_fence(order::ASLEEP),
            (SleepKind::Deep, false) => full_fence(order::ASLEEP),
        }
        handle
    }

    /// Announces that the consumer is awake, for whatever reason (C5).
    pub(crate) fn consumer_woke(&self) {
        drop(self.take_consumer(&mut lock(&self.state.0)));
    }
}
