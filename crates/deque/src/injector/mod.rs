//! The way in from outside: a shared queue, first in, first out.
//!
//! A list of segments with an index at either end. A thread claims a position by moving an index,
//! and looks into the segment only afterwards; so a segment is used by those alone who hold a
//! claim on one of its cells, and the thief that empties the last cell has it to itself, to keep or
//! to free, with no epoch and no hazard pointer. The thread that claims a segment's last cell moves
//! its end of the queue over the border; pushers that see the index stand there wait these few
//! instructions, thieves say `Retry`.

mod hand;
mod push;
mod run;
mod segment;
mod stash;

use core::fmt;
use core::ptr::NonNull;

use crate::dest::Destination;
use crate::order;
use crate::pad::Padded;
use crate::sync::{AtomicPtr, AtomicUsize, Backoff, Ordering};
use crate::teardown::drop_all;
use crate::{BATCH_LIMIT, Steal};
use run::{Batch, Run};
use segment::{CELLS, LAP, Segment};
use stash::Stash;

/// One end of the queue.
struct End<T> {
    /// The next position to claim. Moves by compare-exchange from one cell to the next, and by the
    /// store of the thread that claimed the last cell over the border.
    index: AtomicUsize,
    /// The segment of `index`. Changed only while `index` stands on the border, by the thread that
    /// put it there.
    segment: AtomicPtr<Segment<T>>,
}

/// A shared queue that anyone may push to and anyone may steal from, oldest first.
///
/// Pushes and steals take no lock. A steal can wait for a push that has claimed its place and is
/// still moving the item in (or the items, if they are a batch); a push can wait, at the border of two
/// segments (once in 63), for the one that moves the tail across; neither wait includes any code of the
/// caller's or an allocation.
///
/// Memory comes in segments of 63 items. An empty injector holds one, and keeps up to 1024 that it has
/// used before (about 1 MiB if the items are words) until it goes. So where steals keep pace with pushes
/// nothing is allocated, but for a thread that comes for a segment or with one while another does: it
/// does not wait, and goes to the allocator.
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
    /// A position that the tail has reached; it may be further. Thieves write it when they have
    /// looked at the tail, and look again only when they have come this far: the pushers' cache
    /// line stays with the pushers.
    reached: AtomicUsize,
}

// SAFETY: items move from the thread that pushes to the thread that steals or drops.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: likewise; no reference to an item is ever handed out.
unsafe impl<T: Send> Sync for Injector<T> {}

impl<T> Injector<T> {
    /// An empty injector.
    ///
    /// ```
    /// assert!(heist_deque::Injector::<u8>::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::new_at(0)
    }

    /// As [`new`](Self::new), at a position near the wrap-around, for tests: `laps` before it.
    #[doc(hidden)]
    pub fn new_at(laps: usize) -> Self {
        let start = 0_usize.wrapping_sub(laps.wrapping_mul(LAP));
        let first = Segment::allocate().as_ptr();
        let end = || End { index: AtomicUsize::new(start), segment: AtomicPtr::new(first) };
        let head = Head { end: end(), reached: AtomicUsize::new(start) };
        Self { head: Padded(head), tail: Padded(end()), stash: Padded(Stash::new()) }
    }

    /// Takes the oldest item. `Retry`: another thief was faster, or is crossing a border.
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
        self.claim(1).map(|run| {
            // SAFETY: a run has a cell.
            let cell = unsafe { run.cell(0) };
            cell.wait();
            // SAFETY: claimed, waited for, and read once.
            let item = unsafe { cell.take() };
            // SAFETY: all of the run was read.
            unsafe { run.leave(&self.stash) };
            item
        })
    }

    /// Moves about half of the items to `dest`, at most [`BATCH_LIMIT`](crate::BATCH_LIMIT), no
    /// more than fit there, and none across the border of a segment. `dest` pops the oldest of them
    /// first. `Empty` also means that `dest` is full.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// (1..=4).for_each(|n| injector.push(n));
    /// let (mine, _) = heist_deque::growable::new();
    /// assert!(injector.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(1), Some(2), None));
    /// ```
    pub fn steal_batch(&self, dest: &impl Destination<T>) -> Steal<()> {
        let room = room(dest, BATCH_LIMIT);
        self.claim(room).map(|run| {
            let mut batch = Batch::begin(run, &self.stash);
            while let Some(item) = batch.take_newest() {
                dest.put(item);
            }
        })
    }

    /// As [`steal_batch`](Self::steal_batch), but returns the oldest item.
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
        let room = 1 + room(dest, BATCH_LIMIT - 1);
        self.claim(room).map(|run| {
            let mut batch = Batch::begin(run, &self.stash);
            while batch.len() > 1
                && let Some(item) = batch.take_newest()
            {
                dest.put(item);
            }
            batch.take_newest().expect("a run has a cell")
        })
    }

    /// Claims half of the items, at least one, at most `most`, from one segment.
    #[inline]
    fn claim(&self, most: usize) -> Steal<Run<T>> {
        if most == 0 {
            return Steal::Empty;
        }
        let index = self.head.end.index.load(order::head_follow());
        let offset = index % LAP;
        if offset == CELLS {
            return Steal::Retry;
        }
        let Some(available) = self.available(index, most) else {
            return Steal::Empty;
        };
        let count = available.div_ceil(2).min(most).min(CELLS - offset);
        // Ordering: relaxed, as in `push`: `head_follow` before it, `head_claim` behind it.
        let segment = self.head.end.segment.load(Ordering::Relaxed);
        let claim = self.head.end.index.compare_exchange(
            index,
            index.wrapping_add(count),
            order::head_claim(),
            Ordering::Relaxed,
        );
        if claim.is_err() {
            // The winner is about to come again. Alone on the cache line it takes several items in
            // the time that one takes when two threads pull at it.
            Backoff::stand_back();
            return Steal::Retry;
        }
        // SAFETY: an end's segment is never null.
        let segment = unsafe { NonNull::new_unchecked(segment) };
        let run = Run { segment, offset, count };
        if offset + count == CELLS {
            let next = run.segment().follow();
            self.head.end.cross(next, index.wrapping_add(count - 1), order::head_advance());
        }
        Steal::Success(run)
    }

    /// How many items there are from `index` on, `None` for none; for a thief that wants `most`.
    #[inline]
    fn available(&self, index: usize, most: usize) -> Option<usize> {
        let ahead = |tail: usize| tail.wrapping_sub(index).cast_signed() > 0;
        // Ordering: relaxed, for all three. The tail only grows, so what it once said is there; the
        // cells bring the items.
        if most == 1 && ahead(self.head.reached.load(Ordering::Relaxed)) {
            return Some(1);
        }
        let tail = self.tail.index.load(Ordering::Relaxed);
        if !ahead(tail) {
            return None;
        }
        self.head.reached.store(tail, Ordering::Relaxed);
        Some(cells_between(index, tail))
    }

    /// How many items there are. While others are at work, a moment ago.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// (0..100).for_each(|n| injector.push(n));
    /// assert_eq!(injector.len(), 100);
    /// ```
    pub fn len(&self) -> usize {
        loop {
            let head = self.head.end.index.load(order::head_follow());
            // Ordering: relaxed. It may seem to be behind the head; then it counts as empty.
            let tail = self.tail.index.load(Ordering::Relaxed);
            // Ordering: relaxed. If the head has not moved, both were true at one time.
            if self.head.end.index.load(Ordering::Relaxed) == head {
                let ahead = tail.wrapping_sub(head).cast_signed();
                return if ahead <= 0 { 0 } else { cells_between(head, tail) };
            }
        }
    }

    /// Is there nothing to steal? While others are at work, a moment ago.
    ///
    /// ```
    /// assert!(heist_deque::Injector::<u8>::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        let head = self.head.end.index.load(order::head_follow());
        // Ordering: relaxed, as in `len`.
        let tail = self.tail.index.load(Ordering::Relaxed);
        tail.wrapping_sub(head).cast_signed() <= 0
    }
}

impl<T> End<T> {
    /// The thread that claimed the last cell, at `last`: moves this end into the next segment.
    fn cross(&self, next: NonNull<Segment<T>>, last: usize, advance: Ordering) {
        // Ordering: relaxed. Nobody uses it before the index has moved.
        self.segment.store(next.as_ptr(), Ordering::Relaxed);
        self.index.store(last.wrapping_add(2), advance);
    }
}

/// How many cells there are from position `from` up to `to`, which is not earlier.
fn cells_between(from: usize, to: usize) -> usize {
    let offset = from % LAP;
    let reach = to.wrapping_sub(from) + offset;
    (reach / LAP * CELLS + (reach % LAP).min(CELLS)).saturating_sub(offset)
}

/// For how many items, at most `most`, is there room?
fn room<T>(dest: &impl Destination<T>, most: usize) -> usize {
    (0..most).take_while(|&ahead| dest.has_room(ahead)).count()
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
        // Ordering: relaxed, for these three. Exclusive access came with an ordering of its own.
        let mut index = self.head.end.index.load(Ordering::Relaxed);
        let tail = self.tail.index.load(Ordering::Relaxed);
        let mut segment = NonNull::new(self.head.end.segment.load(Ordering::Relaxed));
        drop_all(|| {
            let Some(here) = segment else { return false };
            let offset = index % LAP;
            if index == tail || offset == CELLS {
                // SAFETY: live, and nobody else is left.
                let next = unsafe { here.as_ref() }.next();
                segment = if index == tail { None } else { next };
                index = index.wrapping_add(1);
                // SAFETY: likewise, and `segment` has moved on. Its cells were read.
                unsafe { Segment::free(here) };
                return true;
            }
            index = index.wrapping_add(1);
            // SAFETY: live, and nobody else is left.
            let here = unsafe { here.as_ref() };
            // SAFETY: an offset short of the border is within the segment.
            let cell = unsafe { here.cell(offset) };
            // SAFETY: between head and tail, so pushed and not stolen; and nobody is left to wait for.
            drop(unsafe { cell.take() });
            true
        });
    }
}
