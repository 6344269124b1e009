//! Which thread may pull from the source, and how much (steps S1 to S6 of `../README.md`).

use super::Control;
use super::state::{
    AfterPull, Delivered, Grant, MOST_STARTED, NextPull, Notifications, PullPermission, Pulled,
    RunState, SourceState, Turn,
};
use crate::panic::contain;
use crate::sync::{Instant, Mutex, MutexGuard, Ordering, TryLockError, lock};
use crate::task::{Promise, TaskHandle};
use crate::worker::limited::Limited;
use crate::worker::wait;

// The values of `Hints::source`.

/// A thread may pull: the source is `Idle`, and there is room.
pub(super) const OPEN: usize = 0;
/// A thread is pulling.
const PULLING: usize = 1;
/// There is no room.
const FULL: usize = 2;
/// The source has no items at the moment.
const DRY: usize = 3;
/// The source has no more items, or the run has failed.
const ENDED: usize = 4;

/// A thread that has pulled activates so many workers: in a pool that is not large, or if it has pulled no more batches (S3).
const LEAST_STARTED: usize = 2;
/// The largest number of workers in such a pool.
const LARGE: usize = 8;

impl Control {
    /// Updates the hint about the source after a change of the state.
    pub(super) fn note_source(&self, state: &mut RunState) {
        let now = match state.source {
            SourceState::Idle if state.room(&self.rules) > 0 => OPEN,
            SourceState::Idle => FULL,
            SourceState::Pulling { .. } => PULLING,
            SourceState::Pending => DRY,
            SourceState::Ended => ENDED,
        };
        let hint = &self.hints.0.source.0;
        // Ordering: relaxed, as for all hints. It is written under the lock only.
        if hint.load(Ordering::Relaxed) != now {
            if now == FULL && state.failure.is_none() {
                state.full_since.get_or_insert_with(Instant::now);
            }
            hint.store(now, Ordering::Relaxed);
        }
    }

    /// Has this worker wait for its turn at the source, while another thread pulls (T1, T2). It gives up when the source has
    /// not been handed on during this many looks.
    ///
    /// A worker that is granted a pull must call [`finish_pull`](Self::finish_pull).
    pub(crate) fn wait_for_turn(&self, worker: usize, looks: u32) -> Turn {
        // Ordering: relaxed. A thread that acts on it asks again under the lock.
        let free = || self.hints.0.source.0.load(Ordering::Relaxed) != PULLING;
        match self.turns.wait(worker, looks, free) {
            Some(grant) => Turn::Granted(grant),
            None if free() => Turn::Free,
            None => Turn::Busy,
        }
    }

    /// Returns whether a thread pulls from the source. It is a hint.
    pub(super) fn is_pulling(&self) -> bool {
        // Ordering: relaxed. When no thread pulls any more, a worker is started in the critical section that says so, if the
        // source has items and there is room.
        self.hints.0.source.0.load(Ordering::Relaxed) == PULLING
    }

    /// Returns whether a thread pulls from the source or could do so. It is a hint.
    pub(crate) fn source_goes_on(&self) -> bool {
        // Ordering: relaxed. It was set at the end of the calling worker's own pull, or since.
        matches!(self.hints.0.source.0.load(Ordering::Relaxed), OPEN | PULLING)
    }

    /// Returns whether a worker waits for its turn. It is a hint.
    #[cfg(all(test, loom))]
    pub(crate) fn is_awaited(&self) -> bool {
        self.turns.any()
    }

    /// Returns whether a worker that has other things to do could pull from the source: no thread does, and no worker
    /// waits for it. It is a hint.
    pub(crate) fn may_pull(&self) -> bool {
        // Ordering: relaxed. A thread that acts on it asks again under the lock.
        self.hints.0.source.0.load(Ordering::Relaxed) == OPEN && !self.turns.any()
    }

    /// Returns whether the source has ended. It is a hint, but no source ever goes on after it has ended.
    pub(crate) fn source_has_ended(&self) -> bool {
        // Ordering: relaxed. A worker that goes because of it looks again after a fence (W6).
        self.hints.0.source.0.load(Ordering::Relaxed) == ENDED
    }

    /// Lets a worker pull from the source, if no other thread does and there is room (S1).
    ///
    /// A worker that is granted a pull must call [`finish_pull`](Self::finish_pull).
    pub(crate) fn try_pull(&self) -> PullPermission {
        // Ordering: relaxed. A hint that is out of date costs a look at the queues of other workers; before its task
        // ends, the worker looks at the source under the lock (W2).
        match self.hints.0.source.0.load(Ordering::Relaxed) {
            PULLING => return PullPermission::Busy,
            DRY | ENDED => return PullPermission::Denied,
            FULL => {
                // S4.
                self.wake_if_seems_dozing();
                return PullPermission::Denied;
            }
            _ => {}
        }
        let mut notifications = Notifications::default();
        let Some(mut state) = try_lock(&self.state.0) else { return PullPermission::Busy };
        let permission = match state.source {
            SourceState::Idle => self
                .start_pull(&mut state, &mut notifications)
                .map_or(PullPermission::Denied, PullPermission::Granted),
            SourceState::Pulling { .. } => PullPermission::Busy,
            SourceState::Pending | SourceState::Ended => PullPermission::Denied,
        };
        drop(state);
        self.send(notifications);
        permission
    }

    /// Lets the producer thread pull from the source, and waits until there is room (S1), and, if the source is `Pending`, until
    /// the deadline that it names at the latest. Returns `None` when the source or the run has ended.
    pub(crate) fn wait_to_pull(&self, deadline: impl Fn() -> Option<Instant>) -> Option<Grant> {
        loop {
            let deadline = deadline();
            let mut notifications = Notifications::default();
            let mut state = lock(&self.state.0);
            let grant = match state.source {
                SourceState::Ended => return None,
                _ if state.factory.is_none() => return None,
                SourceState::Idle => self.start_pull(&mut state, &mut notifications),
                SourceState::Pulling { .. } | SourceState::Pending => None,
            };
            if grant.is_some() {
                return grant;
            }
            let deadline = deadline.filter(|_| state.source == SourceState::Pending);
            let (promise, handle) = Promise::new();
            state.producer = Some(promise);
            drop(state);
            self.send(notifications);
            match deadline {
                None => wait::wait(&handle, self.pool.id()),
                Some(deadline) => self.wait_until(deadline, handle),
            }
        }
    }

    /// Has the producer thread wait, until the deadline at the latest. The source is not `Pending` afterwards (S7).
    #[cold]
    fn wait_until(&self, deadline: Instant, handle: TaskHandle<Vec<()>>) {
        let left = deadline.saturating_duration_since(Instant::now());
        Limited::new(&handle, left).wait();
        // The handle is dropped first: otherwise the drop of the promise would wake this thread itself.
        drop(handle);
        let mut state = lock(&self.state.0);
        let promise = state.producer.take();
        if state.source == SourceState::Pending {
            state.source = SourceState::Idle;
            self.note_source(&mut state);
        }
        drop(state);
        drop(promise);
    }

    /// Marks the idle source as being pulled from by this thread, if there is room (S1, S4).
    fn start_pull(&self, state: &mut RunState, notifications: &mut Notifications) -> Option<Grant> {
        let batches = state.room(&self.rules);
        if batches == 0 {
            // A worker that wants to pull has nothing else to do.
            if self.rules.workers_pull || !state.inactive.is_empty() {
                self.wake_if_dozing(state, notifications);
            }
            return None;
        }
        state.source = SourceState::Pulling { notified: false };
        self.note_source(state);
        let (in_flight, weight) = (state.in_flight(), state.weight_in_flight());
        state.before_pull = (in_flight as u64, weight);
        let limit = self.rules.max_weight.unwrap_or(u64::MAX);
        Some(Grant {
            batches,
            weight: limit.saturating_sub(weight),
            taken: 0,
            nothing_in_flight: in_flight == 0,
            next_batch: state.pulled,
        })
    }

    /// Records what this thread has taken from the source (S3).
    ///
    /// If the next pull is the thread's own, and it may pull, that pull begins at once, and its grant is returned.
    pub(crate) fn finish_pull(&self, pulled: Pulled, next: NextPull) -> Option<Grant> {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        state.pulled += pulled.batches;
        state.weight += i128::from(pulled.weight);
        state.next_weight = pulled.next_weight;
        state.report.items += pulled.items;
        state.note_largest(&pulled);
        let notified = state.source == SourceState::Pulling { notified: true };
        state.source = match pulled.after {
            AfterPull::End | AfterPull::Failed(_) => SourceState::Ended,
            AfterPull::Pending if !notified => SourceState::Pending,
            AfterPull::Pending | AfterPull::More => SourceState::Idle,
        };
        let mut discarded = None;
        if let AfterPull::Failed(error) = pulled.after {
            let batch = state.pulled;
            discarded = self.note_failure(&mut state, Some(batch), error, &mut notifications);
        } else if state.is_over(&self.rules, state.pulled) {
            notifications.wake[0] = self.take_consumer(&mut state);
        }
        let idle = state.source == SourceState::Idle;
        if self.rules.workers_pull && idle && state.room(&self.rules) > 0 {
            let most = if self.pool.max_workers() > LARGE { MOST_STARTED } else { LEAST_STARTED };
            let count = usize::try_from(pulled.batches).unwrap_or(most);
            for _ in 0..count.clamp(LEAST_STARTED, most) {
                self.activate(&mut state, None, &mut notifications);
            }
        }
        let grant = match next {
            NextPull::Any(worker) if idle && self.turns.any() => {
                self.hand_on(&mut state, worker, &mut notifications);
                None
            }
            NextPull::Own if idle => self.start_pull(&mut state, &mut notifications),
            _ => None,
        };
        self.note_source(&mut state);
        drop(state);
        self.send(notifications);
        contain(|| drop(discarded));
        grant
    }

    /// Grants the next pull to a worker that waits for it (T3, T4).
    fn hand_on(&self, state: &mut RunState, me: usize, notifications: &mut Notifications) {
        let Some(grant) = self.start_pull(state, notifications) else { return };
        if !self.turns.pass(me, &grant) {
            state.source = SourceState::Idle;
        }
    }

    /// Records that the source, which had no items, has some again or has ended (S6).
    pub(crate) fn source_ready(&self) {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        match &mut state.source {
            SourceState::Pulling { notified } => *notified = true,
            source @ SourceState::Pending => {
                *source = SourceState::Idle;
                self.note_source(&mut state);
                self.request_pull(&mut state, &mut notifications);
            }
            SourceState::Idle | SourceState::Ended => {}
        }
        drop(state);
        self.send(notifications);
    }

    /// Makes a thread pull from the source, if no thread does and there is room (S5).
    pub(super) fn request_pull(&self, state: &mut RunState, notifications: &mut Notifications) {
        if state.source != SourceState::Idle || state.room(&self.rules) == 0 {
            return;
        }
        if let Some(since) = state.full_since.take() {
            state.report.source_waited += since.elapsed();
        }
        if self.rules.workers_pull {
            self.activate(state, None, notifications);
        } else {
            notifications.wake[1] = state.producer.take();
        }
    }

    /// Returns a quarter of the batches that may be in flight.
    ///
    /// This many batches are worth a notification to the other side: to the consumer about results, or to the
    /// source about room.
    pub(crate) fn quarter_of_batches(&self) -> usize {
        (self.rules.max_batches / 4).max(1)
    }

    /// Returns what a worker has done when half of the batches that may be in flight have been processed, if all workers
    /// are equally fast. This many results of one worker are worth waking a dozing consumer: the other half is room enough
    /// for the workers until it is awake.
    pub(crate) fn share_of_worker(&self) -> usize {
        (self.rules.max_batches / (2 * self.pool.max_workers())).max(1)
    }

    /// Returns a quarter of the weight that may be in flight. This much delivered weight is worth reporting.
    pub(crate) fn quarter_of_weight(&self) -> i128 {
        self.rules.max_weight.map_or(i128::MAX, |limit| i128::from(limit / 4).max(1))
    }

    /// Records what the consumer has delivered, and makes a thread pull if that makes room (S5).
    pub(crate) fn delivered(&self, delivered: &Delivered) {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        self.note_delivered(&mut state, delivered, &mut notifications);
        drop(state);
        self.send(notifications);
    }

    /// Counts results that were delivered and make no room.
    pub(crate) fn count_results(&self, results: u64) {
        lock(&self.state.0).report.results += results;
    }

    pub(super) fn note_delivered(
        &self,
        state: &mut RunState,
        delivered: &Delivered,
        notifications: &mut Notifications,
    ) {
        if delivered.batches > 0 {
            state.delivered += delivered.batches;
            state.weight -= delivered.weight;
            state.report.results += delivered.results;
            self.note_source(state);
            self.request_pull(state, notifications);
        }
    }
}

/// Locks the state, unless another thread has it.
fn try_lock(state: &Mutex<RunState>) -> Option<MutexGuard<'_, RunState>> {
    match state.try_lock() {
        Ok(state) => Some(state),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
