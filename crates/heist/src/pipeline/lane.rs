//! Where batches wait for a worker.

use std::collections::VecDeque;

use heist_deque::Steal;
use heist_deque::growable::{self, Stealer, Worker};

use super::report::WorkerReport;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock, prefetch};

/// Items that are processed by one worker, one after the other.
///
/// It goes around in a box, so that the queues, whose lines go from core to core as well, are small.
pub(super) struct Batch<T> {
    /// In the order of the source.
    pub(super) number: u64,
    pub(super) weight: u64,
    pub(super) items: Vec<T>,
}

/// A batch that goes around.
pub(super) type Load<T> = Box<Batch<T>>;

impl<T> Batch<T> {
    /// An empty one.
    pub(super) fn new() -> Load<T> {
        Box::new(Self { number: 0, weight: 0, items: Vec::new() })
    }
}

/// The queue of one worker, or of all of them.
pub(super) struct Lane<T> {
    queue: Queue<T>,
    /// Nanoseconds from the start of the run to the start of what the worker is at, or zero.
    busy_since: AtomicU64,
    /// What a batch has taken lately, in nanoseconds.
    pace: AtomicU64,
    done: Done,
}

enum Queue<T> {
    /// One thread gives, whoever has the other end; all take, the oldest first. Nothing in it is anybody's before it is
    /// processed, so that no batch waits for another that takes its time.
    Deque(Stealer<Load<T>>),
    /// All give, and all take.
    Locked(Locked<T>),
}

struct Locked<T> {
    batches: Mutex<VecDeque<Load<T>>>,
    /// Is the heaviest the first, or the oldest?
    heavy_first: bool,
    // For those who only look; written under the lock.
    length: AtomicUsize,
    first_weight: AtomicU64,
}

/// The end of a lane at which batches are given.
pub(super) type Giver<T> = Worker<Load<T>>;

/// What is moved at once; a guess.
const ARMFUL: usize = 16;
/// What is fetched of a batch ahead of time, at most, in lines of so many bytes.
pub(super) const LINES: usize = 16;
pub(super) const LINE: usize = 64;

/// What the worker of a lane has done.
#[derive(Default)]
struct Done {
    batches: AtomicU64,
    steals: AtomicU64,
    busy: AtomicU64,
}

impl<T> Lane<T> {
    /// With a giver, who gives in the order of the source.
    pub(super) fn new() -> (Self, Giver<T>) {
        let (giver, taker) = growable::new();
        (Self::with(Queue::Deque(taker)), giver)
    }

    /// Without one: anybody gives.
    pub(super) fn locked(heavy_first: bool) -> Self {
        Self::with(Queue::Locked(Locked {
            batches: Mutex::new(VecDeque::new()),
            heavy_first,
            length: AtomicUsize::new(0),
            first_weight: AtomicU64::new(0),
        }))
    }

    fn with(queue: Queue<T>) -> Self {
        Self {
            queue,
            busy_since: AtomicU64::new(0),
            pace: AtomicU64::new(0),
            done: Done::default(),
        }
    }

    /// By the giver of the lane, if it has one.
    #[inline]
    pub(super) fn push(&self, giver: Option<&Giver<T>>, batch: Load<T>) {
        match (&self.queue, giver) {
            (Queue::Deque(_), Some(giver)) => giver.push(batch),
            (Queue::Deque(_), None) => unreachable!("only its giver gives"),
            (Queue::Locked(locked), _) => locked.push(batch),
        }
    }

    /// The first one.
    #[inline]
    pub(super) fn take(&self) -> Option<Load<T>> {
        match &self.queue {
            Queue::Deque(taker) => loop {
                match taker.steal() {
                    Steal::Success(batch) => return Some(batch),
                    Steal::Empty => return None,
                    Steal::Retry => {}
                }
            },
            Queue::Locked(locked) => locked.take(),
        }
    }

    /// Some of the first ones, one in `share`, to the lane of that giver: how many?
    pub(super) fn move_some(&self, giver: &Giver<T>, share: usize) -> usize {
        let most = self.len().div_ceil(share).min(ARMFUL);
        let mut moved: [Option<Load<T>>; ARMFUL] = [const { None }; ARMFUL];
        let mut count = 0;
        while count < most
            && let Some(batch) = self.take()
        {
            prefetch(&raw const *batch);
            moved[count] = Some(batch);
            count += 1;
        }
        // They come from another core, one like the other: all on their way at once.
        for batch in moved.into_iter().flatten() {
            let (first, bytes) = (batch.items.as_ptr(), size_of_val(&*batch.items));
            for line in 0..bytes.div_ceil(LINE).min(LINES) {
                prefetch(first.cast::<u8>().wrapping_add(LINE * line));
            }
            giver.push(batch);
        }
        count
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.queue {
            Queue::Deque(taker) => taker.len(),
            // Ordering: relaxed, here and below. Hints, but for a worker that wants to rest, which passes a fence before
            // it looks, as does whoever gives before it looks who rests.
            Queue::Locked(locked) => locked.length.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weight of the first batch, if there is one and they are kept by weight.
    pub(super) fn first_weight(&self) -> Option<u64> {
        match &self.queue {
            Queue::Deque(_) => None,
            Queue::Locked(locked) => {
                (!self.is_empty()).then(|| locked.first_weight.load(Ordering::Relaxed))
            }
        }
    }

    /// The worker begins with something.
    pub(super) fn begin(&self, now: u64) {
        self.busy_since.store(now.max(1), Ordering::Relaxed);
    }

    /// And has ended, with so many batches.
    pub(super) fn end(&self, now: u64, batches: u64) {
        let took = now.saturating_sub(self.busy_since.load(Ordering::Relaxed));
        self.busy_since.store(0, Ordering::Relaxed);
        add(&self.done.busy, took);
        if let Some(new) = took.checked_div(batches) {
            // Half of it is what it was, so that one odd batch does not say everything.
            let old = self.pace();
            let pace = if old == 0 { new } else { old.midpoint(new) };
            self.pace.store(pace.max(1), Ordering::Relaxed);
        }
    }

    /// It has processed one of them.
    #[inline]
    pub(super) fn did(&self) {
        add(&self.done.batches, 1);
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
    pub(super) fn load(&self, queued: usize, now: u64) -> u64 {
        let queued = self.pace().max(1).saturating_mul(queued as u64);
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

impl<T> Locked<T> {
    fn push(&self, batch: Load<T>) {
        let mut batches = lock(&self.batches);
        if self.heavy_first {
            let at = batches.partition_point(|other| other.weight >= batch.weight);
            batches.insert(at, batch);
        } else {
            batches.push_back(batch);
        }
        self.note(&batches);
    }

    fn take(&self) -> Option<Load<T>> {
        if self.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut batches = lock(&self.batches);
        let first = batches.pop_front();
        self.note(&batches);
        first
    }

    fn note(&self, batches: &VecDeque<Load<T>>) {
        self.length.store(batches.len(), Ordering::Relaxed);
        let weight = batches.front().map_or(0, |batch| batch.weight);
        self.first_weight.store(weight, Ordering::Relaxed);
    }
}

/// To a counter that only this thread writes.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}
