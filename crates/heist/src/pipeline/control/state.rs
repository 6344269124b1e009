//! The state of a run, which its threads change under one lock, and the decisions that can be read off it.
//!
//! `control` has the code that changes this state. `../README.md` has the protocol.

use std::iter;

use crate::pipeline::error::PipelineError;
use crate::pipeline::report::Report;
use crate::sync::{Arc, Instant, ReceiverArc, into_receiver};
use crate::task::{Promise, Task};

/// The settings that the protocol depends on. They do not change during a run.
pub(crate) struct Rules {
    /// The number of batches that may be in flight.
    pub(crate) max_batches: usize,
    /// The weight that may be in flight, if the pipeline weighs its items.
    pub(crate) max_weight: Option<u64>,
    /// Whether results are delivered in the order of the source.
    pub(crate) ordered: bool,
    /// Whether the workers advance the source themselves. If not, a producer thread does.
    pub(crate) workers_pull: bool,
    /// Whether a worker may take batches from the queue of another worker.
    pub(crate) steals: bool,
}

/// The state that the threads of a run agree on. Every field is read and written under the lock of
/// [`Control`](super::Control) only.
pub(crate) struct RunState {
    pub(crate) source: SourceState,
    /// The number of batches that came from the source. It is updated when a pull finishes.
    pub(crate) pulled: u64,
    /// The number of batches whose results were delivered. It can be ahead of `pulled` for a moment: a batch
    /// may be delivered before the pull that cut it has finished.
    pub(crate) delivered: u64,
    /// The weight in flight. It is negative for a moment when `delivered` is ahead of `pulled`.
    pub(crate) weight: i128,
    /// The weight of the source's next item, if that item did not fit within the limit, or else zero.
    pub(crate) next_weight: u64,
    /// The number of batches in flight, and their weight, when the last pull began.
    pub(crate) before_pull: (u64, u64),
    pub(crate) failure: Option<Failure>,
    /// The consumer of the results, while it sleeps or is about to.
    pub(crate) consumer: Option<SleepingConsumer>,
    /// The producer thread, while it waits: for room, or for a pending source.
    pub(crate) producer: Option<Promise<()>>,
    /// The workers that pause before they call a function again, by their tickets.
    pub(crate) paused: Vec<(u64, Promise<()>)>,
    /// The ticket of the next pause.
    pub(crate) next_pause: u64,
    /// The indices of the workers that have no worker task.
    pub(crate) inactive: Vec<usize>,
    /// Makes worker tasks. `None` before the run is opened and after it is closed.
    pub(crate) factory: Option<Arc<dyn TaskFactory>>,
    /// Since when the source has been waiting for room, if it has.
    pub(crate) full_since: Option<Instant>,
    /// When the run was closed.
    pub(crate) closed: Option<Instant>,
    /// The counts that are kept under the lock.
    pub(crate) report: Report,
}

/// What the source is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceState {
    /// No thread is pulling from it, and it may have items.
    Idle,
    /// A thread is pulling from it.
    Pulling {
        /// Whether the source has announced new items since that thread began.
        notified: bool,
    },
    /// It has no items at the moment. It will announce new ones, or its end.
    Pending,
    /// It has no more items, or the run has failed.
    Ended,
}

/// How the consumer of the results sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SleepKind {
    /// For a bounded time, after which it looks for results by itself.
    Doze,
    /// Until it is woken.
    Deep,
}

/// The consumer of the results, while it sleeps or is about to.
pub(crate) struct SleepingConsumer {
    /// Wakes the consumer when it is fulfilled.
    pub(crate) promise: Promise<()>,
    /// The number of the batch that it waits for, if results are delivered in order.
    pub(crate) wanted: u64,
    pub(crate) kind: SleepKind,
}

/// Why the run cannot go on.
pub(crate) struct Failure {
    /// The batch that failed, if results are delivered in order. The batches before it are still delivered.
    pub(crate) batch: Option<u64>,
    pub(crate) error: PipelineError,
}

/// Makes the worker tasks of a run.
pub(crate) trait TaskFactory: Send + Sync {
    /// Makes a task that processes batches as this worker.
    fn worker_task(self: ReceiverArc<Self>, worker: usize) -> Task;

    /// Works as one of the workers on the calling thread, until there is `enough` room in the source or nothing
    /// to do. Returns whether there was something to do.
    fn help(self: ReceiverArc<Self>, enough: &dyn Fn() -> bool) -> bool;

    /// Has the source's senders fail, because the run has failed.
    fn run_failed(&self) {}

    /// Tells the source's senders that the run has ended.
    fn run_ended(&self);
}

/// How much a thread may take from the source during one pull.
pub(crate) struct Grant {
    /// The number of batches that there is room for.
    pub(crate) batches: usize,
    /// The weight that there is still room for.
    pub(crate) weight: u64,
    /// The weight of what has been taken during this pull.
    pub(crate) taken: u64,
    /// Whether nothing is in flight. Then one item is allowed however heavy it is.
    pub(crate) nothing_in_flight: bool,
    /// The number of the next batch.
    pub(crate) next_batch: u64,
}

/// The answer to a worker that wants to pull from the source.
pub(crate) enum PullPermission {
    /// It may pull. It must call [`finish_pull`](super::Control::finish_pull) afterwards.
    Granted(Grant),
    /// Another thread is pulling.
    Busy,
    /// There is no room, or the source has no items.
    Denied,
}

/// The answer to a worker that has waited for its turn at the source.
pub(crate) enum Turn {
    /// It may pull. It must call [`finish_pull`](super::Control::finish_pull) afterwards.
    Granted(Grant),
    /// No thread is pulling any more.
    Free,
    /// Another thread is still pulling.
    Busy,
}

/// Which thread is the next one that may pull from the source.
#[derive(Clone, Copy)]
pub(crate) enum NextPull {
    /// The same one.
    Own,
    /// Any worker, after this one.
    Any(usize),
}

/// What a thread has taken from the source during one pull.
pub(crate) struct Pulled {
    pub(crate) batches: u64,
    pub(crate) items: u64,
    pub(crate) weight: u64,
    /// The weight of the next item, if it did not fit; see [`RunState::next_weight`].
    pub(crate) next_weight: u64,
    pub(crate) after: AfterPull,
}

/// What the source said at the end of a pull.
pub(crate) enum AfterPull {
    /// It may have more items.
    More,
    /// It has no items at the moment, and will announce new ones.
    Pending,
    /// It has no more items.
    End,
    /// It failed, and has no more items.
    Failed(PipelineError),
}

/// What the consumer has delivered since it last said so.
#[derive(Default)]
pub(crate) struct Delivered {
    pub(crate) batches: u64,
    pub(crate) weight: i128,
    pub(crate) results: u64,
}

/// What a thread has decided under the lock and does after it has released it: wake threads, start worker tasks, and
/// have senders fail.
#[derive(Default)]
#[must_use]
pub(crate) struct Notifications {
    pub(crate) wake: [Option<Promise<()>>; 2],
    /// As in [`RunState`].
    pub(crate) paused: Vec<(u64, Promise<()>)>,
    pub(crate) start: Option<Start>,
    /// Set if the run has failed: its senders are to fail. The thread is counted as a participant for this.
    pub(crate) failed: Option<Arc<dyn TaskFactory>>,
}

/// The largest number of workers whose tasks are started at once. To start them one by one takes all workers of a large pool to
/// the lock of the state. A guess.
pub(crate) const MOST_STARTED: usize = if cfg!(any(loom, shuttle)) { 2 } else { 12 };

/// One or more workers whose tasks are to be started. The tasks are made after the lock was released, because that takes
/// longer than what is done under it. They are counted as participants already.
pub(crate) struct Start {
    pub(crate) factory: Arc<dyn TaskFactory>,
    pub(crate) first: usize,
    pub(crate) others: Vec<usize>,
}

impl Start {
    /// Makes the tasks. All of them are made before one can run: no reference to the run may be left here when the last
    /// participant has left.
    pub(crate) fn into_tasks(self) -> impl Iterator<Item = Task> {
        let Self { factory, first, others } = self;
        let task = |worker| into_receiver(Arc::clone(&factory)).worker_task(worker);
        let others: Vec<Task> = others.into_iter().map(task).collect();
        let first = into_receiver(factory).worker_task(first);
        iter::once(first).chain(others)
    }
}

impl RunState {
    /// Makes the state before the first pull. All workers are inactive.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            source: SourceState::Idle,
            pulled: 0,
            delivered: 0,
            weight: 0,
            next_weight: 0,
            before_pull: (0, 0),
            failure: None,
            consumer: None,
            producer: None,
            paused: Vec::new(),
            next_pause: 0,
            inactive: (0..workers).rev().collect(),
            factory: None,
            full_since: None,
            closed: None,
            report: Report::default(),
        }
    }

    /// Returns the number of batches in flight.
    pub(crate) fn in_flight(&self) -> usize {
        usize::try_from(self.pulled.saturating_sub(self.delivered)).unwrap_or(usize::MAX)
    }

    /// Returns the weight in flight, or zero while it is negative.
    pub(crate) fn weight_in_flight(&self) -> u64 {
        u64::try_from(self.weight.max(0)).unwrap_or(u64::MAX)
    }

    /// Updates the largest counts in flight after a pull.
    ///
    /// They are computed from what was in flight before the pull, because some of what was pulled may have
    /// been delivered since.
    pub(crate) fn note_largest(&mut self, pulled: &Pulled) {
        let (batches, weight) = self.before_pull;
        let batches = usize::try_from(batches + pulled.batches).unwrap_or(usize::MAX);
        let weight = weight.saturating_add(pulled.weight);
        self.report.largest_in_flight = self.report.largest_in_flight.max(batches);
        self.report.largest_weight = self.report.largest_weight.max(weight);
    }

    /// Returns how many more batches may be taken from the source.
    pub(crate) fn room(&self, rules: &Rules) -> usize {
        if self.failure.is_some() || self.factory.is_none() {
            return 0;
        }
        let in_flight = self.in_flight();
        let fits = |limit: u64| {
            let after = self.weight_in_flight().saturating_add(self.next_weight.max(1));
            in_flight == 0 || after <= limit
        };
        if rules.max_weight.is_none_or(fits) {
            rules.max_batches.saturating_sub(in_flight)
        } else {
            0
        }
    }

    /// Returns whether nothing is left to deliver to a consumer whose next batch is `wanted`.
    pub(crate) fn is_over(&self, rules: &Rules, wanted: u64) -> bool {
        match &self.failure {
            None => self.source == SourceState::Ended && self.in_flight() == 0,
            Some(Failure { batch: Some(batch), .. }) if rules.ordered => wanted >= *batch,
            Some(_) => true,
        }
    }
}
