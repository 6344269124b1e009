//! Where batches wait for a worker, and what is known about that worker's speed.

use heist_deque::Steal;
use heist_deque::growable::{self, Stealer, Worker};

use super::batch::BoxedBatch;
use super::waiting::{Front, Waiting};
use crate::pipeline::report::WorkerReport;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock, prefetch};

/// The queue of one worker, or of all of them, with the times and counts of the worker.
///
/// Ordering: relaxed for every atomic in this file. The times and counts are statistics: one thread writes
/// them, and others read them as estimates. The lengths and weights of a [`LockedQueue`] are hints for
/// threads that only look. The one reader that relies on a length is a worker that is about to become
/// inactive. It passes a fence before it looks, and a thread that pushes passes one before it looks for
/// inactive workers (steps W3 and B2 of `../README.md`).
pub(crate) struct WorkerQueue<T> {
    queue: Kind<T>,
    /// When the worker began with what it is processing, in nanoseconds since the start of the run, or zero
    /// if it is not processing anything. The worker writes it.
    busy_since: AtomicU64,
    /// How long a batch has taken lately, in nanoseconds. The worker writes it.
    batch_time: AtomicU64,
    totals: Totals,
    /// Whether a thief of a large pool moves batches from this queue. It is a hint for other thieves, and carries no data.
    is_moved_from: AtomicBool,
}

enum Kind<T> {
    /// The thread that holds the [`PushEnd`] pushes. All threads take, the oldest batch first.
    ///
    /// A batch stays available to all of them until a worker begins to process it. So no batch waits behind
    /// another one that takes long.
    Deque(Stealer<BoxedBatch<T>>),
    /// All threads push, and all threads take.
    Locked(LockedQueue<T>),
}

struct LockedQueue<T> {
    batches: Mutex<Waiting<T>>,
    /// The number of batches, for threads that only look. Written under the lock.
    length: AtomicUsize,
    /// Copies of what [`Front`] has, for threads that only look, if the heaviest batch comes first. Written
    /// under the lock.
    first_weight: AtomicU64,
    first_number: AtomicU64,
    oldest: AtomicU64,
}

/// The end of a queue at which one thread pushes.
pub(crate) type PushEnd<T> = Worker<BoxedBatch<T>>;

/// The largest number of batches that are moved at once. A guess.
const MAX_MOVED: usize = 16;
/// The largest number of cache lines of a batch that are prefetched.
pub(crate) const PREFETCH_LINES: usize = 16;
/// The size of a cache line in bytes.
pub(crate) const CACHE_LINE: usize = 64;

/// What the worker of a queue has done. The worker writes it.
#[derive(Default)]
struct Totals {
    batches: AtomicU64,
    steals: AtomicU64,
    /// Nanoseconds.
    busy: AtomicU64,
}

impl<T> WorkerQueue<T> {
    /// Makes a queue with an end at which one thread pushes, in the order of the source.
    pub(crate) fn new() -> (Self, PushEnd<T>) {
        let (push_end, stealer) = growable::new();
        (Self::with(Kind::Deque(stealer)), push_end)
    }

    /// Makes a queue at which any thread pushes.
    pub(crate) fn locked(heaviest_first: bool) -> Self {
        Self::with(Kind::Locked(LockedQueue {
            batches: Mutex::new(Waiting::new(heaviest_first)),
            length: AtomicUsize::new(0),
            first_weight: AtomicU64::new(0),
            first_number: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
        }))
    }

    fn with(queue: Kind<T>) -> Self {
        Self {
            queue,
            busy_since: AtomicU64::new(0),
            batch_time: AtomicU64::new(0),
            totals: Totals::default(),
            is_moved_from: AtomicBool::new(false),
        }
    }

    /// Pushes a batch. `push_end` is the end that belongs to this queue, if it has one.
    #[inline]
    pub(crate) fn push(&self, push_end: Option<&PushEnd<T>>, batch: BoxedBatch<T>) {
        match (&self.queue, push_end) {
            (Kind::Deque(_), Some(push_end)) => push_end.push(batch),
            (Kind::Deque(_), None) => unreachable!("the deque's push end was not passed"),
            (Kind::Locked(locked), _) => locked.push(batch),
        }
    }

    /// Takes the first batch.
    #[inline]
    pub(crate) fn take(&self) -> Option<BoxedBatch<T>> {
        self.take_below(u64::MAX)
    }

    /// Takes the first batch if its number is below `limit`, or else the oldest one if its number is. (A deque
    /// has no limit.)
    #[inline]
    pub(crate) fn take_below(&self, limit: u64) -> Option<BoxedBatch<T>> {
        match &self.queue {
            Kind::Deque(stealer) => loop {
                match stealer.steal() {
                    Steal::Success(batch) => return Some(batch),
                    Steal::Empty => return None,
                    Steal::Retry => {}
                }
            },
            Kind::Locked(locked) => locked.take(limit),
        }
    }

    /// Moves the first batches, one in `share` of all, to the queue with this push end. Returns how many it
    /// moved.
    pub(crate) fn move_some(&self, push_end: &PushEnd<T>, share: usize) -> usize {
        let most = self.len().div_ceil(share).min(MAX_MOVED);
        let mut moved: [Option<BoxedBatch<T>>; MAX_MOVED] = [const { None }; MAX_MOVED];
        let mut count = 0;
        while count < most {
            let Some(batch) = self.take() else { break };
            prefetch(&raw const *batch);
            moved[count] = Some(batch);
            count += 1;
        }
        // The batches are in the cache of another processor. The prefetches fetch them all at the same time.
        for batch in moved.into_iter().flatten() {
            let (first, bytes) = (batch.items.as_ptr(), size_of_val(&*batch.items));
            for line in 0..bytes.div_ceil(CACHE_LINE).min(PREFETCH_LINES) {
                prefetch(first.cast::<u8>().wrapping_add(CACHE_LINE * line));
            }
            push_end.push(batch);
        }
        count
    }

    /// Claims the queue for a thief that is to be alone there, unless another one is. Returns whether it did; the thief then calls
    /// [`end_move`](Self::end_move).
    pub(super) fn begin_move(&self) -> bool {
        let taken = &self.is_moved_from;
        !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Relaxed)
    }

    /// Leaves the queue to other thieves.
    pub(super) fn end_move(&self) {
        self.is_moved_from.store(false, Ordering::Relaxed);
    }

    /// Returns the number of batches. It is a hint, except after a fence; see [`WorkerQueue`].
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.queue {
            Kind::Deque(stealer) => stealer.len(),
            Kind::Locked(locked) => locked.length.load(Ordering::Relaxed),
        }
    }

    /// Returns whether there is no batch. It is a hint, except after a fence; see [`WorkerQueue`].
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what is first, if there is a batch and the heaviest one comes first. It is a hint.
    pub(super) fn front(&self) -> Option<Front> {
        match &self.queue {
            Kind::Locked(locked) if !self.is_empty() => Some(Front {
                weight: locked.first_weight.load(Ordering::Relaxed),
                number: locked.first_number.load(Ordering::Relaxed),
                oldest: locked.oldest.load(Ordering::Relaxed),
            }),
            _ => None,
        }
    }

    /// Notes that the worker begins to process batches.
    pub(crate) fn begin_work(&self, now: u64) {
        self.busy_since.store(now.max(1), Ordering::Relaxed);
    }

    /// Notes that the worker has processed this many batches since [`begin_work`](Self::begin_work), and has `paused` for so
    /// many nanoseconds, which are no work.
    pub(crate) fn end_work(&self, now: u64, batches: u64, paused: u64) {
        let since = self.busy_since.load(Ordering::Relaxed);
        let took = now.saturating_sub(since).saturating_sub(paused);
        self.busy_since.store(0, Ordering::Relaxed);
        add(&self.totals.busy, took);
        if let Some(new) = took.checked_div(batches) {
            // The old value has half of the weight, so that one unusual batch does not dominate the estimate.
            let old = self.batch_time();
            let time = if old == 0 { new } else { old.midpoint(new) };
            self.batch_time.store(time.max(1), Ordering::Relaxed);
        }
    }

    /// Counts a batch that the worker has processed.
    #[inline]
    pub(crate) fn count_processed(&self) {
        add(&self.totals.batches, 1);
    }

    /// Counts batches that the worker has taken from other workers.
    pub(crate) fn count_stolen(&self, batches: usize) {
        add(&self.totals.steals, batches as u64);
    }

    /// Returns how long a batch has taken lately, in nanoseconds, or zero if that is not known yet.
    pub(crate) fn batch_time(&self) -> u64 {
        self.batch_time.load(Ordering::Relaxed)
    }

    /// Estimates how long the worker will be busy with what it has, in nanoseconds.
    ///
    /// The estimate is the time for what is queued, at the worker's recent speed, plus as long again as the
    /// worker has been processing what it is processing now.
    pub(crate) fn estimate_busy(&self, queued: usize, now: u64) -> u64 {
        let queued = self.batch_time().max(1).saturating_mul(queued as u64);
        let since = self.busy_since.load(Ordering::Relaxed);
        let current = if since == 0 { 0 } else { now.saturating_sub(since).max(1) };
        queued.saturating_add(current)
    }

    /// Returns what the worker has done.
    pub(crate) fn report(&self) -> WorkerReport {
        WorkerReport {
            batches: self.totals.batches.load(Ordering::Relaxed),
            steals: self.totals.steals.load(Ordering::Relaxed),
            busy: std::time::Duration::from_nanos(self.totals.busy.load(Ordering::Relaxed)),
            ..WorkerReport::default()
        }
    }
}

impl<T> LockedQueue<T> {
    fn push(&self, batch: BoxedBatch<T>) {
        let mut batches = lock(&self.batches);
        batches.push(batch);
        self.update_hints(&batches);
    }

    fn take(&self, limit: u64) -> Option<BoxedBatch<T>> {
        if self.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut batches = lock(&self.batches);
        let taken = batches.take(limit);
        self.update_hints(&batches);
        taken
    }

    fn update_hints(&self, batches: &Waiting<T>) {
        self.length.store(batches.len(), Ordering::Relaxed);
        if let Some(front) = batches.front() {
            self.first_weight.store(front.weight, Ordering::Relaxed);
            self.first_number.store(front.number, Ordering::Relaxed);
            self.oldest.store(front.oldest, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}
