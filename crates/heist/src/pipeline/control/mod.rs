//! What the threads of a run agree on: what is in flight, which thread pulls from the source, which workers
//! are active, which threads sleep, and how the run ends.
//!
//! The module has no type parameters: items and results never pass through it. That is why the models
//! (`../../models/pipeline.rs`) can explore it alone, and why it is separate from `run`.
//!
//! All of it is under one lock, the lock of [`RunState`], which a thread takes once for many batches. A
//! thread that changes something decides under the lock which threads must be notified, and notifies them after it has
//! released it. No notification is lost, because a thread that finds nothing to do says so under the same
//! lock under which it looked.
//!
//! Two pairs of steps bypass the lock: pushing a batch against a worker that becomes inactive (`workers`),
//! and storing results against a consumer that falls asleep (`consumer`). `../README.md` has every step and
//! the argument.

mod consumer;
mod pause;
mod ready;
mod source;
mod state;
mod turns;
mod workers;

use std::ptr::NonNull;
use std::time::Duration;
use std::{fmt, mem};

use super::error::PipelineError;
use super::report::Report;
use crate::cancel::Follower;
use crate::fork::latch::CountLatch;
use crate::panic::contain;
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, HeavyFence, Instant, Mutex, Ordering, Padded, heavy_fence_state,
    lock,
};
use crate::task::TaskHandle;
use crate::worker::current::AnyPool;
use consumer::AWAKE;
use pause::Errors;
use ready::Ready;
pub use ready::Token;
use source::OPEN;
pub(crate) use state::{
    AfterPull, Delivered, Grant, NextPull, PullPermission, Pulled, Rules, SleepKind, TaskFactory,
    Turn,
};
use state::{Failure, Notifications, RunState, SourceState};
use turns::Turns;

/// The shared control of one run. See the [module](self).
pub struct Control {
    rules: Rules,
    pool: Arc<dyn AnyPool>,
    /// Whether the system has a fence that also covers other threads. Then the consumer passes that one
    /// before it sleeps, and the workers' fence costs nothing.
    has_heavy_fence: bool,
    hints: Padded<Hints>,
    state: Padded<Mutex<RunState>>,
    /// The workers that wait for their turn at the source.
    turns: Turns,
    /// What the workers count when a stage has failed and the run goes on.
    errors: Errors,
    /// What has waited in a section of the stages, and can be gone on with.
    ready: Padded<Ready>,
    /// Counts the run itself, its producer thread and its worker tasks. The run may only release what it
    /// borrows when all of them have left.
    participants: CountLatch,
}

/// Copies of parts of the state, for threads that only look. They are written under the lock, and not often.
///
/// Ordering: relaxed throughout. They carry no data: data is handed over by the lock of the state, of an
/// outbox or of a queue, or by a deque. With a stale `cutoff`, a worker processes a batch whose results are
/// discarded later. A stale `source` costs one more look under the lock. A thread that reads `inactive` or
/// `consumer` passes one of the fences first.
struct Hints {
    /// Batches from this number on are to be discarded.
    cutoff: AtomicU64,
    /// The number of inactive workers.
    inactive: AtomicUsize,
    /// How long the first batches have taken, in nanoseconds, or zero if that is not known yet.
    batch_time: AtomicU64,
    /// Whether a thread could pull from the source: [`OPEN`](source::OPEN), or why not. It changes often, and has cache
    /// lines of its own.
    source: Padded<AtomicUsize>,
    /// Whether the consumer of the results is awake, dozing or asleep. It changes often, and has cache lines
    /// of its own.
    consumer: Padded<AtomicUsize>,
}

impl Control {
    /// Makes the control of a run with no active worker. The handle becomes ready when every participant has
    /// left.
    pub(crate) fn new(rules: Rules, pool: Arc<dyn AnyPool>) -> (Arc<Self>, TaskHandle<Vec<()>>) {
        let (participants, all_left) = CountLatch::new(1);
        let state = RunState::new(pool.max_workers());
        let turns = Turns::new(pool.max_workers());
        let control = Self {
            turns,
            errors: Errors::default(),
            ready: Padded(Ready::default()),
            rules,
            pool,
            has_heavy_fence: heavy_fence_state() == HeavyFence::Ready,
            hints: Padded(Hints {
                cutoff: AtomicU64::new(u64::MAX),
                inactive: AtomicUsize::new(state.inactive.len()),
                batch_time: AtomicU64::new(0),
                source: Padded(AtomicUsize::new(OPEN)),
                consumer: Padded(AtomicUsize::new(AWAKE)),
            }),
            state: Padded(Mutex::new(state)),
            participants,
        };
        (Arc::new(control), all_left)
    }

    /// Returns the pool that the run is on.
    pub(crate) fn pool(&self) -> &Arc<dyn AnyPool> {
        &self.pool
    }

    /// Returns the number from which on batches can be discarded. It is a hint.
    #[inline]
    pub(crate) fn cutoff(&self) -> u64 {
        // Ordering: relaxed. It carries no data, and the thread that ends the run waits for those that have
        // not seen it.
        self.hints.0.cutoff.load(Ordering::Relaxed)
    }

    /// Returns how long the first batches have taken, in nanoseconds, or zero if that is not known yet.
    pub(crate) fn batch_time(&self) -> u64 {
        self.hints.0.batch_time.load(Ordering::Relaxed)
    }

    /// Notes how long a batch has taken, for workers that have not processed one yet.
    pub(crate) fn note_batch_time(&self, time: u64) {
        if self.batch_time() == 0 {
            self.hints.0.batch_time.store(time, Ordering::Relaxed);
        }
    }

    /// Returns whether every batch that is still queued can be discarded. It is a hint.
    #[inline]
    pub(crate) fn discards_all(&self) -> bool {
        self.cutoff() == 0
    }

    /// Returns the number of batches that may be in flight.
    pub(crate) fn max_batches(&self) -> usize {
        self.rules.max_batches
    }

    /// Opens the run: from now on, worker tasks can be started.
    pub(crate) fn open(&self, factory: Arc<dyn TaskFactory>) {
        lock(&self.state.0).factory = Some(factory);
    }

    /// Makes a worker begin to pull from the source, unless the run has failed already.
    pub(crate) fn begin(&self) {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        self.request_pull(&mut state, &mut notifications);
        drop(state);
        self.send(notifications);
    }

    /// Closes the run (E3): no worker task is started from now on, and those that are running end soon.
    /// Returns the error that ended the run, if there was one.
    pub(crate) fn close(&self) -> Option<PipelineError> {
        let mut state = lock(&self.state.0);
        self.hints.0.cutoff.store(0, Ordering::Relaxed);
        let factory = state.factory.take();
        let failure = state.failure.take();
        state.closed.get_or_insert_with(Instant::now);
        let mut notifications =
            Notifications { wake: [state.producer.take(), None], ..Notifications::default() };
        notifications.paused = mem::take(&mut state.paused);
        self.note_source(&mut state);
        drop(state);
        self.send(notifications);
        if let Some(factory) = &factory {
            factory.run_ended();
        }
        // If the factory owns the last reference to the user's closures, their drop may panic.
        contain(|| drop(factory));
        failure.map(|failure| failure.error)
    }

    /// Counts one more participant, which calls [`leave`](Self::leave) at its end. The caller is a
    /// participant itself.
    pub(crate) fn enter(&self) {
        self.participants.more(1);
    }

    /// Counts one participant less (E4).
    ///
    /// # Safety
    ///
    /// It must be called once for each `enter`, once for each worker task, and once for the run itself.
    pub(crate) unsafe fn leave(&self) {
        // SAFETY: the latch is alive, because `self` is. The caller is a participant that has not left before.
        unsafe { CountLatch::done(NonNull::from(&self.participants), 1) };
    }

    /// Records that the run cannot go on (E1), because of this batch if there is one.
    pub(crate) fn fail(&self, batch: Option<u64>, error: PipelineError) {
        let mut notifications = Notifications::default();
        let mut state = lock(&self.state.0);
        let discarded = self.note_failure(&mut state, batch, error, &mut notifications);
        drop(state);
        self.send(notifications);
        contain(|| drop(discarded));
    }

    /// Records a failure, unless one that takes precedence is known.
    ///
    /// A failure without a batch takes precedence over one with a batch, and an earlier batch over a later
    /// one. Returns the error that is not going to be reported. The caller drops it after it has released the
    /// lock, because its drop is the user's code.
    fn note_failure(
        &self,
        state: &mut RunState,
        batch: Option<u64>,
        error: PipelineError,
        notifications: &mut Notifications,
    ) -> Option<PipelineError> {
        let batch = if self.rules.ordered { batch } else { None };
        let takes_precedence = match (&state.failure, batch) {
            (None, _) => true,
            (Some(old), None) => old.batch.is_some(),
            (Some(old), Some(batch)) => old.batch.is_some_and(|old| batch < old),
        };
        // The run is not closed, and it has not left the participants.
        let Some(factory) = state.factory.as_ref().filter(|_| takes_precedence) else {
            return Some(error);
        };
        if state.failure.is_none() {
            // No item that is sent from now on would be delivered: all batches before the failed one are cut.
            notifications.failed = Some(Arc::clone(factory));
            self.enter();
        }
        self.hints.0.cutoff.store(batch.unwrap_or(0), Ordering::Relaxed);
        if !matches!(state.source, SourceState::Pulling { .. }) {
            state.source = SourceState::Ended;
        }
        notifications.wake = [self.take_consumer(state), state.producer.take()];
        notifications.paused = mem::take(&mut state.paused);
        let old = state.failure.replace(Failure { batch, error });
        self.note_source(state);
        old.map(|old| old.error)
    }

    /// Wakes the threads, starts the tasks and has the senders fail, as was decided under the lock. The caller has released
    /// the lock.
    fn send(&self, notifications: Notifications) {
        let Notifications { wake: [first, second], paused, start, failed } = notifications;
        if let Some(promise) = first {
            promise.fulfil(Ok(Vec::new()), None);
        }
        if let Some(promise) = second {
            promise.fulfil(Ok(Vec::new()), None);
        }
        if let Some(start) = start {
            start.into_tasks().for_each(|task| self.pool.push_remote_if_open(task));
        }
        if !paused.is_empty() {
            paused.into_iter().for_each(|(_, promise)| promise.fulfil(Ok(Vec::new()), None));
        }
        if let Some(factory) = failed {
            factory.run_failed();
            // The factory is dropped before this thread leaves, as in a worker task. That may drop the user's values.
            contain(|| drop(factory));
            // SAFETY: this thread was counted by `enter` when `failed` was set, and leaves once.
            unsafe { self.leave() };
        }
    }

    /// Returns the counts that are kept under the lock.
    pub(crate) fn report(&self, started: Instant) -> Report {
        let state = lock(&self.state.0);
        let now = state.closed.unwrap_or_else(Instant::now);
        let mut report = state.report.clone();
        report.batches = state.pulled;
        report.elapsed = now - started;
        (report.skipped, report.retried) = self.errors.counts();
        report.source_waited += state.full_since.map_or(Duration::ZERO, |since| now - since);
        report
    }
}

/// Fails a run when its pool stops.
pub(crate) struct StopFollower(pub(crate) Arc<Control>);

impl Follower for StopFollower {
    fn cancel(&self) {
        self.0.fail(None, PipelineError::stopped());
    }
}

/// Fails the run when its cancel token is cancelled.
impl Follower for Control {
    fn cancel(&self) {
        self.fail(None, PipelineError::cancelled());
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("cutoff", &self.cutoff()).finish_non_exhaustive()
    }
}
