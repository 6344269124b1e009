//! Where batches wait for a worker.

use std::collections::VecDeque;

use super::report::WorkerReport;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// Items that are processed by one worker, one after the other.
///
/// It goes around in a box, so that the queues, whose lines go from core to core as well, are small.
pub(super) struct Batch<T> {
    /// In the order of the source.
    pub(super) number: u64,
    pub(super) weight: u64,
    pub(super) items: Vec<T>,
}

impl<T> Batch<T> {
    /// An empty one.
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { number: 0, weight: 0, items: Vec::new() })
    }
}

/// The queue of one worker, or of all of them. The oldest batch is the first, or the heaviest.
pub(super) struct Lane<T> {
    queue: Mutex<VecDeque<Box<Batch<T>>>>,
    heavy_first: bool,
    // For those who only look: all of them are written by who has the lock, or by the worker whose lane it is.
    length: AtomicUsize,
    first_weight: AtomicU64,
    /// Nanoseconds from the start of the run to the start of what the worker is at, or zero.
    busy_since: AtomicU64,
    /// What a batch has taken lately, in nanoseconds.
    pace: AtomicU64,
    done: Done,
}

/// What the worker of a lane has done.
#[derive(Default)]
struct Done {
    batches: AtomicU64,
    steals: AtomicU64,
    busy: AtomicU64,
}

impl<T> Lane<T> {
    pub(super) fn new(heavy_first: bool) -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            heavy_first,
            length: AtomicUsize::new(0),
            first_weight: AtomicU64::new(0),
            busy_since: AtomicU64::new(0),
            pace: AtomicU64::new(0),
            done: Done {
                batches: AtomicU64::new(0),
                steals: AtomicU64::new(0),
                busy: AtomicU64::new(0),
            },
        }
    }

    pub(super) fn push(&self, batch: Box<Batch<T>>) {
        let mut queue = lock(&self.queue);
        if self.heavy_first {
            let at = queue.partition_point(|other| other.weight >= batch.weight);
            queue.insert(at, batch);
        } else {
            queue.push_back(batch);
        }
        self.note(&queue);
    }

    /// What was stolen, to an empty lane. It is the heaviest there, or the oldest.
    pub(super) fn push_all(&self, batches: &mut VecDeque<Box<Batch<T>>>) {
        let mut queue = lock(&self.queue);
        queue.append(batches);
        self.note(&queue);
    }

    /// Takes the first ones, at most so many, and no more than one in `share`, rounded up.
    pub(super) fn take(
        &self,
        most: usize,
        share: usize,
        into: &mut VecDeque<Box<Batch<T>>>,
    ) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut queue = lock(&self.queue);
        let count = most.min(queue.len().div_ceil(share));
        if count == queue.len() && into.is_empty() {
            std::mem::swap(&mut *queue, into);
        } else {
            into.extend(queue.drain(..count));
        }
        self.note(&queue);
        count
    }

    fn note(&self, queue: &VecDeque<Box<Batch<T>>>) {
        // Ordering: relaxed, here and below. Hints, but for `length`, which is read at the desk by a worker that wants
        // to rest: the lock there, taken after this, brings it along.
        self.length.store(queue.len(), Ordering::Relaxed);
        if self.heavy_first {
            let weight = queue.front().map_or(0, |batch| batch.weight);
            self.first_weight.store(weight, Ordering::Relaxed);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weight of the first batch, if there is one.
    pub(super) fn first_weight(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.first_weight.load(Ordering::Relaxed))
    }

    /// The worker begins with something.
    pub(super) fn begin(&self, now: u64) {
        self.busy_since.store(now.max(1), Ordering::Relaxed);
    }

    /// And has ended, with so many batches.
    pub(super) fn end(&self, now: u64, batches: u64) {
        let took = now.saturating_sub(self.busy_since.load(Ordering::Relaxed));
        self.busy_since.store(0, Ordering::Relaxed);
        add(&self.done.batches, batches);
        add(&self.done.busy, took);
        if let Some(new) = took.checked_div(batches) {
            // Half of it is what it was, so that one odd batch does not say everything.
            let old = self.pace();
            let pace = if old == 0 { new } else { old.midpoint(new) };
            self.pace.store(pace.max(1), Ordering::Relaxed);
        }
    }

    pub(super) fn stole(&self, batches: usize) {
        add(&self.done.steals, batches as u64);
    }

    /// Nanoseconds that a batch takes; zero if nobody knows.
    pub(super) fn pace(&self) -> u64 {
        self.pace.load(Ordering::Relaxed)
    }

    /// For how long, perhaps, the worker will be busy with what it has: what is queued at its pace, and as long again as
    /// it has been at what it is at.
    pub(super) fn load(&self, now: u64) -> u64 {
        let queued = self.pace().max(1).saturating_mul(self.len() as u64);
        let since = self.busy_since.load(Ordering::Relaxed);
        let at_it = if since == 0 { 0 } else { now.saturating_sub(since).max(1) };
        queued.saturating_add(at_it)
    }

    pub(super) fn report(&self) -> WorkerReport {
        WorkerReport {
            batches: self.done.batches.load(Ordering::Relaxed),
            steals: self.done.steals.load(Ordering::Relaxed),
            busy: std::time::Duration::from_nanos(self.done.busy.load(Ordering::Relaxed)),
            ..WorkerReport::default()
        }
    }
}

/// To a counter that only this thread writes.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}
