//! What other threads reach of each thread of a pool: its queues, and the demand for its private jobs.
//!
//! Queues belong to threads, not to workers: a thread that waits in the middle of a task keeps them, whether it has a
//! core or not, and the others go on to take from them. The table has a place for each thread that the pool may have.
//! Places are filled when threads start, and are used again.

use crate::cluster::NO_PLACE;
use crate::fork::demand::Demand;
use crate::queues::Queues;
use crate::sync::{AtomicUsize, Mutex, OnceLock, Ordering, Padded, lock, try_lock};

/// What other threads reach of one thread.
pub(crate) struct Entry<Q: Queues> {
    pub(crate) queues: Q::Reach,
    /// The demand for the thread's private jobs. Any thread raises it; the thread answers it.
    pub(crate) demand: Demand,
    /// The number of the worker that the thread is, or [`NO_PLACE`] if it has no core. Written by the thread when that
    /// changes.
    ///
    /// Ordering: relaxed. It is only shown.
    pub(crate) worker: AtomicUsize,
}

/// A thread's place in the table, and the owner's ends of its queues.
pub(crate) struct Place<Q: Queues> {
    pub(crate) index: usize,
    pub(crate) own: Q::Own,
}

pub(crate) struct Table<Q: Queues> {
    entries: Box<[OnceLock<Padded<Entry<Q>>>]>,
    /// The number of entries that are filled.
    ///
    /// Ordering: relaxed. An entry is published by its `OnceLock`, for which a thread looks; and a thread that must not
    /// miss a task of a new thread has passed a fence, as that thread has, after it was counted.
    filled: AtomicUsize,
    /// Places of threads that have ended.
    free: Mutex<Vec<Place<Q>>>,
}

impl<Q: Queues> Table<Q> {
    /// Returns an empty table for that many threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            entries: (0..threads).map(|_| OnceLock::new()).collect(),
            filled: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
        }
    }

    /// Returns a free place. `demand` makes the demand for a place that was never used. Returns `None` if there are as
    /// many threads as the table has places.
    pub(crate) fn enter(&self, demand: impl FnOnce(usize) -> Demand) -> Option<Place<Q>> {
        let mut free = lock(&self.free);
        if let Some(place) = free.pop() {
            return Some(place);
        }
        let index = self.filled.load(Ordering::Relaxed);
        let entry = self.entries.get(index)?;
        let (own, queues) = Q::of_thread();
        let worker = AtomicUsize::new(NO_PLACE);
        let fresh = entry.set(Padded(Entry { queues, demand: demand(index), worker })).is_ok();
        debug_assert!(fresh, "places are filled in order, under a lock");
        self.filled.store(index + 1, Ordering::Relaxed);
        Some(Place { index, own })
    }

    /// Frees a place, because its thread ends. Its deque is empty, and others still take what is in its lane.
    pub(crate) fn leave(&self, place: Place<Q>) {
        lock(&self.free).push(place);
    }

    /// Returns the places that no thread has, unless another thread holds the lock.
    pub(crate) fn free(&self) -> Option<Vec<usize>> {
        try_lock(&self.free).map(|free| free.iter().map(|place| place.index).collect())
    }

    /// Returns the number of places that were ever used.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.filled.load(Ordering::Relaxed)
    }

    /// Returns an entry that the calling thread knows to be filled, such as its own.
    #[inline(always)]
    pub(crate) fn entry(&self, index: usize) -> &Entry<Q> {
        self.entries[index].get().expect("filled before its index was given out")
    }

    /// Returns the entry of another thread. It may be missing for a moment after it was counted.
    #[inline(always)]
    pub(crate) fn reach(&self, index: usize) -> Option<&Entry<Q>> {
        Some(self.entries[index].get()?)
    }
}
