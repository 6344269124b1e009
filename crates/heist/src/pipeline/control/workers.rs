//! When worker tasks start and end (steps B1 to B5 and W1 to W6 of `../README.md`).

use super::Control;
use super::state::{Notifications, RunState, SourceState, Start};
use crate::fork::purse;
use crate::order;
use crate::sync::{Arc, Ordering, full_fence, into_receiver, lock};
use crate::worker::current::{current_pool, with_worker};

impl Control {
    /// Starts a worker task if one is needed for a batch that was just pushed (B2 to B4).
    ///
    /// `queue` is the index of the worker in whose queue the batch is, or `None` if any worker may take it.
    pub(crate) fn batch_pushed(&self, queue: Option<usize>) {
        self.start_if_needed(queue, || true);
    }

    /// Starts a worker task if there are batches for it (B5, H2).
    ///
    /// A worker calls this when it has got something to do, or cannot do what it was started for. There may be batches that
    /// were not announced because a worker waited for its turn at the source.
    pub(crate) fn start_another(&self, has_batches: impl FnOnce() -> bool) {
        self.start_if_needed(None, has_batches);
    }

    /// Starts a worker task if there is an inactive worker, none that waits for its turn, and a batch (B2 to B4).
    fn start_if_needed(&self, queue: Option<usize>, has_batches: impl FnOnce() -> bool) {
        // B2. Pairs with `REST` in `try_deactivate`.
        full_fence(order::GIVE);
        // B3. Ordering: relaxed, after the fence. A worker whose deactivation the first load misses, or that seems to wait
        // although it does not any more, sees the batch at its last look (W4).
        let is_awaited = || queue.is_none() && self.is_pulling() && self.turns.any_waits();
        if self.has_inactive() && !is_awaited() && has_batches() {
            // B4.
            let mut notifications = Notifications::default();
            self.activate(&mut lock(&self.state.0), queue, &mut notifications);
            self.send(notifications);
        }
    }

    /// Returns whether there is an inactive worker. It is a hint.
    pub(crate) fn has_inactive(&self) -> bool {
        // Ordering: relaxed. A thread that relies on it passes a fence first (B2).
        self.hints.0.inactive.load(Ordering::Relaxed) > 0
    }

    /// Makes a worker without work inactive, unless there is work for it after all (W2 to W5). Returns
    /// whether its task must end.
    ///
    /// `has_batches` returns whether there is a batch in the queues for this worker. It looks into the queues of all workers,
    /// and is therefore called without the lock.
    pub(crate) fn try_deactivate(&self, worker: usize, has_batches: impl FnOnce() -> bool) -> bool {
        let mut state = lock(&self.state.0);
        // W2.
        let room = state.room(&self.rules) > 0;
        let can_pull = self.rules.workers_pull && state.source == SourceState::Idle && room;
        if can_pull && !self.discards_all() {
            return false;
        }
        let nothing_comes =
            !room || matches!(state.source, SourceState::Pending | SourceState::Ended);
        state.inactive.push(worker);
        self.note_inactive(&state);
        drop(state);
        // W3. Pairs with `GIVE` in `batch_pushed`.
        full_fence(order::REST);
        // W4. If every batch is to be discarded, it does not matter what is queued.
        if !self.discards_all() && has_batches() {
            return !self.take_off_list(worker);
        }
        // W5. No batch comes before results are delivered, or no batch comes at all.
        if nothing_comes {
            self.wake_if_seems_dozing();
        }
        true
    }

    /// Looks again, after a fence, whether a worker can go (W6). Pairs with `GIVE` in `start_if_needed`.
    pub(crate) fn looks_again(&self, look: impl FnOnce() -> bool) -> bool {
        full_fence(order::REST);
        look()
    }

    /// Makes an inactive worker active again, without a new task (W4). Returns `false` if another thread has started a task
    /// for it meanwhile.
    fn take_off_list(&self, worker: usize) -> bool {
        let mut state = lock(&self.state.0);
        let at = state.inactive.iter().rposition(|inactive| *inactive == worker);
        if let Some(at) = at {
            state.inactive.swap_remove(at);
            self.note_inactive(&state);
        }
        at.is_some()
    }

    /// Has the calling thread work as one of the workers, if it is a worker of the pool, until there is `enough`
    /// room in the source or nothing to do (H1). Returns whether there was something to do.
    pub(crate) fn help(&self, enough: &dyn Fn() -> bool) -> bool {
        if current_pool() != self.pool.id() || with_worker(|_| ()).is_none() {
            return false;
        }
        let state = lock(&self.state.0);
        // The run is not closed, and it has not left. So it waits for this participant as well.
        let Some(factory) = state.factory.clone() else { return false };
        self.enter();
        drop(state);
        // The factory is dropped before this thread leaves, as in a worker task.
        let helped = into_receiver(factory).help(enough);
        // The stages may have spawned parts of a scope. That scope does not wait for what this thread goes on with.
        purse::flush();
        // SAFETY: this thread was counted by `enter` above, and leaves once.
        unsafe { self.leave() };
        helped
    }

    fn note_inactive(&self, state: &RunState) {
        self.hints.0.inactive.store(state.inactive.len(), Ordering::Relaxed);
    }

    /// Chooses an inactive worker and makes its task, which the caller starts after it has released the lock.
    ///
    /// Prefers the worker of this queue. If that one is active already, chooses another one only where any
    /// worker may take the batch.
    pub(super) fn activate(
        &self,
        state: &mut RunState,
        queue: Option<usize>,
        notifications: &mut Notifications,
    ) {
        let Some(factory) = &state.factory else { return };
        let at = queue.and_then(|queue| state.inactive.iter().position(|worker| *worker == queue));
        let chosen = match at {
            Some(at) => Some(state.inactive.swap_remove(at)),
            None if queue.is_none() || self.rules.steals => state.inactive.pop(),
            None => None,
        };
        if let Some(worker) = chosen {
            self.participants.more(1);
            match &mut notifications.start {
                None => {
                    let factory = Arc::clone(factory);
                    notifications.start =
                        Some(Start { factory, first: worker, others: Vec::new() });
                }
                Some(start) => start.others.push(worker),
            }
            self.note_inactive(state);
        }
    }
}
