//! What the threads of a run share.

use std::collections::VecDeque;
use std::mem::{self, ManuallyDrop};

use super::worker_task::WorkerTask;
use crate::cancel::Follower;
use crate::panic::{contain, contain_each, contained};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::{Control, Rules, StopFollower, TaskFactory};
use crate::pipeline::deliver::Outboxes;
use crate::pipeline::dispatch::{
    Batch, BoxedBatch, CACHE_LINE, Distribution, PREFETCH_LINES, PushEnd, Stock, WorkerQueue,
};
use crate::pipeline::progress::Meter;
use crate::pipeline::report::Report;
use crate::pipeline::source::{Batcher, Source};
use crate::pipeline::steps::Steps;
use crate::sync::{
    Arc, Instant, Mutex, Padded, ReceiverArc, elapsed, from_receiver, lock, prefetch_for_write,
    unsize_arc,
};
use crate::task::{Task, TaskHandle};
use crate::worker::current::AnyPool;

/// One run of a pipeline, as its worker tasks, its producer thread and its consumer share it.
pub(crate) struct Run<S: Source, G: Steps<S::Item>> {
    pub(crate) control: Arc<Control>,
    pub(crate) outboxes: Arc<Outboxes<G::Out>>,
    pub(crate) config: Config,
    /// Dropped by the destructor of the run.
    pub(crate) steps: ManuallyDrop<G>,
    /// The source. `None` while a thread pulls from it; `control` grants that to one thread at a time.
    batcher: Padded<Mutex<Option<Batcher<S>>>>,
    /// The batches that were pushed for each worker.
    pub(crate) queues: Box<[Padded<WorkerQueue<S::Item>>]>,
    /// The batches that each worker has moved over from its entry in `queues`, where the producer thread
    /// pushes. It moves several at once, because they come from the cache of another processor. Other workers
    /// may steal them until they are processed. Empty if the workers pull.
    pub(crate) local_queues: Box<[Padded<WorkerQueue<S::Item>>]>,
    /// The queue that all workers share.
    pub(crate) shared_queue: Padded<WorkerQueue<S::Item>>,
    /// Which workers have batches, in a large pool whose workers pull and steal. `None` otherwise.
    pub(crate) stock: Option<Stock>,
    /// The private state of each worker.
    worker_states: Box<[WorkerSlot<S, G>]>,
    /// The push ends of `queues`, until the producer thread takes them. Empty if the workers pull.
    push_ends: Mutex<Vec<Option<PushEnd<S::Item>>>>,
    /// Empty batches on their way from the workers back to the producer thread.
    spares: Mutex<Vec<BoxedBatch<S::Item>>>,
    /// Reaches the senders of the source while the source itself is with another thread.
    source_handle: S::Handle,
    /// Fails the run if the pool stops.
    pub(super) on_stop: Arc<dyn Follower>,
    /// Shows the progress, until the consumer takes it.
    meter: Mutex<Option<Box<Meter>>>,
    started: Instant,
}

/// Keeps the state of a worker while no thread has it.
type WorkerSlot<S, G> = Mutex<Slot<Working<S, G>>>;

/// Where the state of a worker is.
enum Slot<W> {
    /// No thread has it. A worker task may be queued in the pool.
    Here(W),
    /// The worker task has it.
    Taken,
    /// A sender has it, which helps as this worker.
    Lent {
        /// Whether a worker task has found it lent, and has ended. The sender then has that task's duties.
        task_ended: bool,
    },
}

/// A worker whose state a sender has borrowed, and the state.
type Borrowed<S, G> = (usize, Working<S, G>);

/// What the thread has that works as one of the workers.
pub(super) struct Working<S: Source, G: Steps<S::Item>> {
    pub(super) state: WorkerState<S::Item, G::Out>,
    /// What the stages keep from batch to batch.
    pub(super) steps: G::State,
}

/// The private state of a worker. The thread that works as this worker takes it out of the run.
pub(crate) struct WorkerState<T, R> {
    /// The push end of the worker's local queue, or of its own queue if the workers pull. `None` where the
    /// queues are locked ones.
    pub(crate) push_end: Option<PushEnd<T>>,
    /// Empty batches.
    pub(crate) spares: Vec<BoxedBatch<T>>,
    /// The results of the batch that is being processed.
    pub(crate) results: VecDeque<R>,
    /// The number of batches whose results the worker has stored while the consumer dozed.
    pub(crate) unannounced: usize,
    /// How long it has taken lately to cut a batch, in nanoseconds.
    pub(crate) cut_time: u64,
    /// The number of batches that are in the worker's queue, if no other worker has taken any.
    pub(crate) left: usize,
    /// If no more than this many are left, the worker takes further ones from the source when no other thread does.
    pub(crate) refill_at: usize,
    /// Whether the worker has waited for its turn at the source since it last looked whether another one is needed (B5).
    pub(crate) has_waited: bool,
    /// How many batches the worker has taken from the source the last time.
    pub(crate) last_pull: usize,
    /// Whether the worker is in [`Stock::any`].
    pub(crate) has_some: bool,
    /// Whether the worker is in [`Stock::plenty`].
    pub(crate) has_plenty: bool,
    /// When the worker has last read the clock, in nanoseconds since the start of the run.
    pub(crate) now: u64,
}

impl<T, R> WorkerState<T, R> {
    fn new(push_end: Option<PushEnd<T>>) -> Self {
        Self {
            push_end,
            spares: Vec::new(),
            results: VecDeque::new(),
            unannounced: 0,
            cut_time: 0,
            left: 0,
            refill_at: 0,
            has_waited: false,
            last_pull: 0,
            has_some: false,
            has_plenty: false,
            now: 0,
        }
    }
}

/// The largest number of workers in a pool that is not large.
const SMALL: usize = 8;
/// The largest number of empty batches that a worker keeps. A guess.
const MAX_SPARES: usize = 512;
/// An empty batch is prefetched this many batches before it is needed. A guess.
const PREFETCH_AHEAD: usize = 4;

impl<S: Source, G: Steps<S::Item>> Run<S, G> {
    /// Makes a run with no active worker. The handle becomes ready when every participant has left.
    pub(crate) fn new(
        pipeline: Pipeline<S, G>,
        pool: Arc<dyn AnyPool>,
    ) -> (Arc<Self>, TaskHandle<Vec<()>>) {
        let Pipeline { mut source, steps, mut config } = pipeline;
        config.distribution = config.distribution();
        let workers = pool.max_workers();
        let workers_pull = config.distribution == Distribution::Pull;
        let rules = Rules {
            max_batches: config.max_in_flight(workers),
            max_weight: config.weight.map(|weight| weight as u64),
            ordered: config.ordered,
            workers_pull,
            steals: config.steals,
        };
        let (control, all_left) = Control::new(rules, pool);
        let meter = Meter::new(mem::take(&mut config.progress), || user_size(&source));
        let source_handle = source.attach(&control);
        let on_stop: Arc<dyn Follower> = unsize_arc!(Arc::new(StopFollower(Arc::clone(&control))));
        let heaviest_first = S::WEIGHED && !config.ordered;
        let queue = |_| match heaviest_first {
            true => (Padded(WorkerQueue::locked(true)), None),
            false => {
                let (queue, push_end) = WorkerQueue::new();
                (Padded(queue), Some(push_end))
            }
        };
        let (queues, mut push_ends): (Vec<_>, Vec<_>) = (0..workers).map(queue).unzip();
        let (mut local_queues, mut own_ends) = (Vec::new(), Vec::new());
        if workers_pull {
            // Each worker pushes to its own queue. No other thread does.
            mem::swap(&mut push_ends, &mut own_ends);
        } else {
            (local_queues, own_ends) = (0..workers).map(queue).unzip();
        }
        let has_stock = workers_pull && workers > SMALL && config.steals && !heaviest_first;
        let working =
            |push_end| Working { state: WorkerState::new(push_end), steps: G::State::default() };
        let run = Self {
            control,
            outboxes: Arc::new(Outboxes::new(workers, config.ordered)),
            steps: ManuallyDrop::new(steps),
            batcher: Padded(Mutex::new(Some(Batcher::new(source, config.batch)))),
            config,
            queues: queues.into(),
            shared_queue: Padded(WorkerQueue::locked(heaviest_first)),
            local_queues: local_queues.into(),
            stock: has_stock.then(|| Stock::new(workers)),
            worker_states: own_ends
                .into_iter()
                .map(|end| Mutex::new(Slot::Here(working(end))))
                .collect(),
            push_ends: Mutex::new(push_ends),
            spares: Mutex::new(Vec::new()),
            source_handle,
            on_stop,
            meter: Mutex::new(meter),
            started: Instant::now(),
        };
        (Arc::new(run), all_left)
    }

    /// Takes what shows the progress. The consumer calls this once.
    pub(crate) fn take_meter(&self) -> Option<Box<Meter>> {
        lock(&self.meter).take()
    }

    /// Returns the nanoseconds since the start of the run.
    pub(crate) fn now(&self) -> u64 {
        elapsed(self.started)
    }

    /// Takes the source. The calling thread has been granted a pull.
    pub(crate) fn take_batcher(&self) -> Batcher<S> {
        lock(&self.batcher.0).take().expect("one thread at a time is granted a pull")
    }

    /// Takes what threads of their own do for the source, if it needs any. The run has not begun.
    pub(super) fn take_readers(&self) -> Vec<S::Reader> {
        lock(&self.batcher.0).as_mut().map_or_else(Vec::new, Batcher::take_readers)
    }

    /// Puts the source back.
    pub(crate) fn put_batcher(&self, batcher: Batcher<S>) {
        *lock(&self.batcher.0) = Some(batcher);
    }

    /// Takes the push ends of all workers' queues. The producer thread calls this once.
    pub(crate) fn take_push_ends(&self) -> Vec<Option<PushEnd<S::Item>>> {
        mem::take(&mut *lock(&self.push_ends))
    }

    /// Takes the state of a worker, for its worker task. If it is lent, returns `None`, and the task must end
    /// (H2).
    pub(super) fn take_worker_state(&self, worker: usize) -> Option<Working<S, G>> {
        let mut slot = lock(&self.worker_states[worker]);
        match mem::replace(&mut *slot, Slot::Taken) {
            Slot::Here(state) => Some(state),
            Slot::Lent { task_ended: false } => {
                *slot = Slot::Lent { task_ended: true };
                None
            }
            Slot::Taken | Slot::Lent { .. } => unreachable!("a worker has one worker task"),
        }
    }

    /// Takes the state of any worker that no thread has, for a sender that helps (H1).
    pub(super) fn borrow_worker_state(&self) -> Option<Borrowed<S, G>> {
        let lend = |(worker, slot): (usize, &WorkerSlot<S, G>)| {
            let mut slot = lock(slot);
            match mem::replace(&mut *slot, Slot::Lent { task_ended: false }) {
                Slot::Here(state) => Some((worker, state)),
                other => {
                    *slot = other;
                    None
                }
            }
        };
        self.worker_states.iter().enumerate().find_map(lend)
    }

    /// Puts the state of a worker back. Returns whether a worker task has ended because it was lent (H3).
    pub(super) fn put_worker_state(&self, worker: usize, state: Working<S, G>) -> bool {
        let mut slot = lock(&self.worker_states[worker]);
        matches!(mem::replace(&mut *slot, Slot::Here(state)), Slot::Lent { task_ended: true })
    }

    /// Returns whether the workers pull from the source themselves.
    pub(super) fn workers_pull(&self) -> bool {
        self.config.distribution == Distribution::Pull
    }

    /// Returns whether there are so many workers that they would often find another one at the source when they have run
    /// out of batches. Then they take further batches before that.
    pub(crate) fn is_large(&self) -> bool {
        self.queues.len() > SMALL
    }

    /// Returns how many batches are queued for a worker.
    pub(crate) fn queued(&self, worker: usize) -> usize {
        let local = self.local_queues.get(worker).map_or(0, |queue| queue.0.len());
        self.queues[worker].0.len() + local
    }

    /// Returns an empty batch: one of those that this thread has, or one that the workers have returned, or a
    /// new one.
    pub(crate) fn empty_batch(&self, spares: &mut Vec<BoxedBatch<S::Item>>) -> BoxedBatch<S::Item> {
        if !self.workers_pull() {
            if spares.is_empty() {
                mem::swap(&mut *lock(&self.spares), spares);
            }
            // These batches were last used on another processor. They should be in this one's cache when they
            // are needed.
            if let Some(soon) = spares.len().checked_sub(PREFETCH_AHEAD).map(|at| &spares[at]) {
                let bytes = size_of::<S::Item>().saturating_mul(self.config.batch);
                let lines = bytes.div_ceil(CACHE_LINE).min(PREFETCH_LINES);
                let first = soon.items.as_ptr().cast::<u8>();
                (0..lines)
                    .for_each(|line| prefetch_for_write(first.wrapping_add(CACHE_LINE * line)));
            }
            if let Some(later) = spares.len().checked_sub(2 * PREFETCH_AHEAD).map(|at| &spares[at])
            {
                prefetch_for_write(&raw const **later);
            }
        }
        spares.pop().unwrap_or_else(Batch::boxed)
    }

    /// Keeps an empty batch for later, with the worker or for the producer thread.
    pub(super) fn recycle(
        &self,
        batch: BoxedBatch<S::Item>,
        spares: &mut Vec<BoxedBatch<S::Item>>,
    ) {
        let share = self.control.max_batches() / self.queues.len();
        let few = if self.is_large() { share } else { share / 2 }.clamp(1, MAX_SPARES);
        if !self.workers_pull() {
            spares.push(batch);
            if spares.len() >= few {
                lock(&self.spares).append(spares);
            }
        } else if spares.len() < few {
            spares.push(batch);
        }
    }

    /// Returns what the run has done so far.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.control.report(self.started);
        report.per_worker = self.queues.iter().map(|queue| queue.report()).collect();
        for worker in &mut report.per_worker {
            worker.waited = report.elapsed.saturating_sub(worker.busy);
            report.steals += worker.steals;
        }
        report
    }
}

/// Returns how many items the source has at most. The iterator is the user's code, and may panic: then that is not known.
fn user_size<S: Source>(source: &S) -> Option<u64> {
    contained(|| source.size()).flatten()
}

impl<S: Source, G: Steps<S::Item>> Drop for Run<S, G> {
    /// Drops the user's values one by one: the items that were not processed, the source and the stages. Each
    /// of these drops is the user's code and may panic.
    fn drop(&mut self) {
        for queue in self.queues.iter().chain(&self.local_queues).chain([&self.shared_queue]) {
            while let Some(batch) = queue.0.take() {
                contain_each(batch.items);
            }
        }
        if let Some(batcher) = lock(&self.batcher.0).take() {
            batcher.drop_each();
        }
        // SAFETY: the field is not used again.
        unsafe { ManuallyDrop::take(&mut self.steps) }.drop_each();
    }
}

impl<S, G> TaskFactory for Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    fn worker_task(self: ReceiverArc<Self>, worker: usize) -> Task {
        // SAFETY: `start` requires that what the pipeline borrows outlives the last participant. The task was
        // counted as a participant before this call, and it leaves after its last use of the run.
        unsafe { Task::detached_borrowing(WorkerTask::new(from_receiver(self), worker)) }
    }

    fn help(self: ReceiverArc<Self>, enough: &dyn Fn() -> bool) -> bool {
        let run = from_receiver(self);
        let helped = Self::help_as_worker(&run, enough);
        contain(|| drop(run));
        helped
    }

    fn run_failed(&self) {
        S::refuse(&self.source_handle);
    }

    fn run_ended(&self) {
        S::close(&self.source_handle);
    }
}
