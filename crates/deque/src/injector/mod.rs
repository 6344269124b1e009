//! The injector: a shared first-in first-out queue for work that comes from outside.
//!
//! It is a linked list of segments with an index at either end. A thread claims a position by advancing an
//! index, and accesses the segment only afterwards. A segment is therefore used only by threads that hold a
//! claim on one of its cells, and the thief that empties the last cell has exclusive access to it: it can
//! keep or free the segment without epochs or hazard pointers. The thread that claims the last cell of a
//! segment moves its end of the queue across the segment boundary. Pushers that find the index at the
//! boundary wait for these few instructions; thieves return `Retry`.

mod segment;
mod stash;

mod buffer;
mod claim;

mod push;

use core::fmt;
use core::ptr::NonNull;

use crate::destination::Destination;
use crate::order;
use crate::pad::Padded;
use crate::sync::{AtomicPtr, AtomicUsize, Backoff, Ordering};
use crate::teardown::drop_all;
use crate::{BATCH_LIMIT, Steal};
use claim::{Batch, Claim};
use segment::{CELLS, LAP, Segment};
use stash::Stash;

/// One end of the queue.
struct End<T> {
    /// The next position to claim. Within a segment it is advanced by compare-exchange. The thread that
    /// claimed the last cell moves it across the boundary by a store.
    index: AtomicUsize,
    /// The segment of `index`. Changed only while `index` is at the boundary, by the thread that moved it
    /// there.
    segment: AtomicPtr<Segment<T>>,
}

/// A shared first-in first-out queue: any thread can push, and any thread can steal the oldest item.
///
/// Pushes and steals take no lock. A steal can wait for a push that has claimed its place and is still
/// moving the item in (or the items of a batch). A push can wait at the boundary of two segments (once in
/// 63 pushes) for the pusher that moves the tail across. Neither wait includes an allocation or any code of
/// the caller.
///
/// Memory is allocated in segments of 63 items. An empty injector has one segment, and keeps up to 1024
/// used ones (about 1 MiB if the items are words) until it is dropped. If steals keep pace with pushes,
/// nothing is allocated, with one exception: a thread that needs or returns a segment while another thread
/// does the same does not wait, and uses the allocator.
///
/// ```
/// use heist_deque::{Injector, Steal};
///
/// let injector = Injector::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| injector.push("from one thread"));
///     scope.spawn(|| injector.push("from another"));
/// });
/// assert!(injector.steal().is_success());
/// assert!(injector.steal().is_success());
/// assert_eq!(injector.steal(), Steal::Empty);
/// ```
pub struct Injector<T> {
    head: Padded<Head<T>>,
    tail: Padded<End<T>>,
    stash: Padded<Stash<T>>,
}

/// The thieves' end.
struct Head<T> {
    end: End<T>,
    /// A position that the tail has reached; the tail may be further. Thieves write it when they have read
    /// the tail, and read the tail again only when too few items are left before this position. The cache
    /// line of the tail therefore stays with the pushers.
    reached: AtomicUsize,
}

// SAFETY: items move from the thread that pushes them to the thread that steals or drops them.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: see `Send`. No reference to an item is ever handed out.
unsafe impl<T: Send> Sync for Injector<T> {}

impl<T> Injector<T> {
    /// Makes an empty injector.
    ///
    /// ```
    /// assert!(heist_deque::Injector::<u8>::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::new_at(0)
    }

    /// Like [`new`](Self::new), but starts `laps` laps before the wrap-around, for tests.
    #[doc(hidden)]
    pub fn new_at(laps: usize) -> Self {
        let start = 0_usize.wrapping_sub(laps.wrapping_mul(LAP));
        let first = Segment::allocate().as_ptr();
        let end = || End { index: AtomicUsize::new(start), segment: AtomicPtr::new(first) };
        let head = Head { end: end(), reached: AtomicUsize::new(start) };
        Self { head: Padded(head), tail: Padded(end()), stash: Padded(Stash::new()) }
    }

    /// Steals the oldest item. Returns `Retry` if another thief was faster or is crossing a segment boundary.
    ///
    /// ```
    /// use heist_deque::{Injector, Steal};
    ///
    /// let injector = Injector::new();
    /// injector.push(1);
    /// injector.push(2);
    /// assert_eq!(injector.steal(), Steal::Success(1));
    /// ```
    pub fn steal(&self) -> Steal<T> {
        self.claim(1).map(|claim| {
            // SAFETY: a claim has at least one cell.
            let cell = unsafe { claim.cell(0) };
            cell.wait();
            // SAFETY: this thread has claimed the cell and waited for its pusher, and reads it once.
            let item = unsafe { cell.take() };
            // SAFETY: the only cell of the claim has been read, and the claim is not used again.
            unsafe { claim.leave(&self.stash) };
            item
        })
    }

    /// Moves about half of the items to `dest`: at most [`BATCH_LIMIT`](crate::BATCH_LIMIT), no more than
    /// fit there, and only from one segment. `dest` pops the oldest of them first. Returns `Empty` if there
    /// is nothing to steal or `dest` is full.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// (1..=4).for_each(|n| injector.push(n));
    /// let (mine, _) = heist_deque::growable::new();
    /// assert!(injector.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(1), Some(2), None));
    /// ```
    pub fn steal_batch(&self, dest: &impl Destination<T>) -> Steal<()> {
        let room = count_room(dest, BATCH_LIMIT);
        self.claim(room).map(|claim| {
            let mut batch = Batch::begin(claim, &self.stash);
            while let Some(item) = batch.take_newest() {
                dest.put(item);
            }
        })
    }

    /// Like [`steal_batch`](Self::steal_batch), but returns the oldest item.
    ///
    /// ```
    /// use heist_deque::{Injector, Steal, growable};
    ///
    /// let injector = Injector::new();
    /// (1..=4).for_each(|n| injector.push(n));
    /// let (mine, _) = growable::new();
    /// assert_eq!(injector.steal_batch_and_pop(&mine), Steal::Success(1));
    /// assert_eq!((mine.pop(), mine.pop()), (Some(2), None));
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &impl Destination<T>) -> Steal<T> {
        let room = 1 + count_room(dest, BATCH_LIMIT - 1);
        self.claim(room).map(|claim| {
            let mut batch = Batch::begin(claim, &self.stash);
            while batch.len() > 1 {
                let Some(item) = batch.take_newest() else { break };
                dest.put(item);
            }
            batch.take_newest().expect("a claim has at least one cell")
        })
    }

    /// Claims half of the items: at least one, at most `limit`, and only from one segment.
    #[inline]
    fn claim(&self, limit: usize) -> Steal<Claim<T>> {
        if limit == 0 {
            return Steal::Empty;
        }
        let index = self.head.end.index.load(order::head_follow());
        let offset = index % LAP;
        if offset == CELLS {
            return Steal::Retry;
        }
        let Some(available) = self.available(index, limit) else {
            return Steal::Empty;
        };
        let count = available.div_ceil(2).min(limit).min(CELLS - offset);
        // Ordering: relaxed, for the reason given in `reserve`: `head_follow` comes before this load, and
        // `head_claim` after it.
        let segment = self.head.end.segment.load(Ordering::Relaxed);
        let exchange = self.head.end.index.compare_exchange(
            index,
            index.wrapping_add(count),
            order::head_claim(),
            Ordering::Relaxed,
        );
        if exchange.is_err() {
            // The winner will probably steal again. If it has the cache line to itself, it steals several
            // items in the time that one steal takes when two threads contend for the line.
            Backoff::after_lost_race();
            return Steal::Retry;
        }
        // SAFETY: the segment of an end is never null.
        let segment = unsafe { NonNull::new_unchecked(segment) };
        let claim = Claim { segment, offset, count };
        if offset + count == CELLS {
            let next = claim.segment().wait_for_next();
            self.head.end.cross_boundary(
                next,
                index.wrapping_add(count - 1),
                order::head_advance(),
            );
        }
        Steal::Success(claim)
    }

    /// Returns the number of items from `index` on, or `None` if there are none. The result may be lower than
    /// the actual number, but not so low that a thief would take fewer than `limit` for that reason.
    #[inline]
    fn available(&self, index: usize, limit: usize) -> Option<usize> {
        let ahead = |tail: usize| tail.wrapping_sub(index) as isize > 0;
        // Ordering: relaxed, for all three accesses. The tail only grows, so positions that it has passed
        // stay claimed by pushers; the cells make the items visible.
        let reached = self.head.reached.load(Ordering::Relaxed);
        if ahead(reached) {
            let known = cells_between(index, reached);
            if known >= 2 * limit - 1 {
                return Some(known);
            }
        }
        let tail = self.tail.index.load(Ordering::Relaxed);
        if !ahead(tail) {
            return None;
        }
        self.head.reached.store(tail, Ordering::Relaxed);
        Some(cells_between(index, tail))
    }

    /// Returns the number of items. The number may be outdated if other threads use the injector at the same
    /// time.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// (0..100).for_each(|n| injector.push(n));
    /// assert_eq!(injector.len(), 100);
    /// ```
    pub fn len(&self) -> usize {
        loop {
            let head = self.head.end.index.load(order::head_follow());
            // Ordering: relaxed. The value may be behind the head; the injector then counts as empty.
            let tail = self.tail.index.load(Ordering::Relaxed);
            // Ordering: relaxed. If the head has not moved, both values were current at the same time.
            if self.head.end.index.load(Ordering::Relaxed) == head {
                let ahead = tail.wrapping_sub(head) as isize;
                return if ahead <= 0 { 0 } else { cells_between(head, tail) };
            }
        }
    }

    /// Returns whether there is nothing to steal. The answer may be outdated if other threads use the
    /// injector at the same time.
    ///
    /// ```
    /// assert!(heist_deque::Injector::<u8>::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        let head = self.head.end.index.load(order::head_follow());
        // Ordering: relaxed. The value may be behind the head, as in `len`.
        let tail = self.tail.index.load(Ordering::Relaxed);
        tail.wrapping_sub(head) as isize <= 0
    }
}

impl<T> End<T> {
    /// Moves this end into the next segment. Called by the thread that claimed the last cell, at position
    /// `last`.
    fn cross_boundary(&self, next: NonNull<Segment<T>>, last: usize, advance: Ordering) {
        // Ordering: relaxed. No other thread uses it before the index has moved.
        self.segment.store(next.as_ptr(), Ordering::Relaxed);
        self.index.store(last.wrapping_add(2), advance);
    }
}

/// Returns the number of cells from position `from` up to `to`, which is not earlier.
fn cells_between(from: usize, to: usize) -> usize {
    let offset = from % LAP;
    let reach = to.wrapping_sub(from) + offset;
    (reach / LAP * CELLS + (reach % LAP).min(CELLS)).saturating_sub(offset)
}

/// Returns for how many items `dest` has room, at most `limit`.
fn count_room<T>(dest: &impl Destination<T>, limit: usize) -> usize {
    (0..limit).take_while(|&ahead| dest.has_room(ahead)).count()
}

impl<T> Default for Injector<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Drop for Injector<T> {
    fn drop(&mut self) {
        // Ordering: relaxed, for these three loads. `&mut self` is exclusive access, and whatever gave it
        // to this thread is ordered.
        let mut index = self.head.end.index.load(Ordering::Relaxed);
        let tail = self.tail.index.load(Ordering::Relaxed);
        let mut segment = NonNull::new(self.head.end.segment.load(Ordering::Relaxed));
        drop_all(|| {
            let Some(here) = segment else { return false };
            let offset = index % LAP;
            if index == tail || offset == CELLS {
                // SAFETY: the segment is alive, and no other thread uses the injector.
                let next = unsafe { here.as_ref() }.next();
                segment = if index == tail { None } else { next };
                index = index.wrapping_add(1);
                // SAFETY: the segment is alive, and no other thread uses it. `segment` has advanced past
                // it, and all its items were taken.
                unsafe { Segment::free(here) };
                return true;
            }
            index = index.wrapping_add(1);
            // SAFETY: the segment is alive, and no other thread uses the injector.
            let here = unsafe { here.as_ref() };
            // SAFETY: an offset before the boundary is within the segment.
            let cell = unsafe { here.cell(offset) };
            // SAFETY: the position is between head and tail, so the item was pushed and not stolen. No
            // pusher is left to wait for, and the item is taken once.
            drop(unsafe { cell.take() });
            true
        });
    }
}
