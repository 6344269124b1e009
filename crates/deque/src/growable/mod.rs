//! A deque that doubles its capacity when it is full.
//!
//! ```
//! use heist_deque::{Steal, growable};
//!
//! let (worker, stealer) = growable::new();
//! (0..1000).for_each(|n| worker.push(n));
//! assert_eq!(stealer.steal(), Steal::Success(0));
//! assert_eq!(worker.pop(), Some(999));
//! ```
//!
//! # Memory
//!
//! The first ring has [`FIRST_CAPACITY`] slots, and each later ring has twice as many as the one before. A
//! thief may still use a ring that the owner has left, so every ring is kept until the last handle is
//! dropped; in return, thieves never have to announce which ring they use. Together, the rings that the
//! owner has left have fewer slots than the current one: **a deque never holds more than twice the slots of
//! its largest ring**. The largest ring has at most twice as many slots as the largest number of items that
//! the deque held at once, or [`FIRST_CAPACITY`]. (A thief that stalls in the middle of a steal counts as
//! an item, and so do the slots that other thieves empty after it.) The capacity does not shrink.

mod rings;

use core::cell::Cell;
use core::fmt;

use crate::Steal;
use crate::destination::{Destination, sealed};
use crate::owner::Bottom;
use crate::ring::View;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::ticket::Ticket;
use rings::{Body, out_of_memory};

/// The capacity of a new deque. The value is a guess at what a worker of a scheduler rarely exceeds.
///
/// ```
/// let (worker, _stealer) = heist_deque::growable::new::<u8>();
/// assert_eq!(worker.capacity(), heist_deque::growable::FIRST_CAPACITY);
/// ```
pub const FIRST_CAPACITY: usize = 64;

/// The size of a cache line in bytes.
const CACHE_LINE: usize = 64;

/// Makes an empty deque.
///
/// ```
/// let (worker, stealer) = heist_deque::growable::new();
/// worker.push("work");
/// assert!(!stealer.is_empty());
/// ```
pub fn new<T>() -> (Worker<T>, Stealer<T>) {
    new_at(FIRST_CAPACITY, 0)
}

/// Like [`new`], with the first capacity and the number of the first ticket, for tests.
#[doc(hidden)]
pub fn new_at<T>(capacity: usize, number: usize) -> (Worker<T>, Stealer<T>) {
    let origin = Ticket::new(number);
    let (body, view) = Body::new(capacity, origin);
    let Ok(shared) = Shared::try_new(body) else {
        out_of_memory(core::alloc::Layout::new::<Body<T>>())
    };
    let stealer = Stealer { shared: shared.clone() };
    (Worker { bottom: Bottom::new(origin), view: Cell::new(view), shared }, stealer)
}

/// The owner's end of a growable deque, which pops the newest item first. It can be sent to another thread,
/// but only one thread can use it at a time.
///
/// ```
/// let (worker, _stealer) = heist_deque::growable::new();
/// worker.push(1);
/// worker.push(2);
/// assert_eq!(worker.pop(), Some(2));
/// ```
pub struct Worker<T> {
    bottom: Bottom,
    /// The location of the current ring, which lives as long as `shared`.
    view: Cell<View<T>>,
    shared: Shared<Body<T>>,
}

// SAFETY: what a `Worker` points to may be used from any thread (`Shared` and `Body` are `Sync` for
// `T: Send`), and the cells move with the worker.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// Pushes an item at the owner's end. Doubles the capacity if the next slot is occupied.
    ///
    /// # Panics
    ///
    /// Panics if the new capacity exceeds the address space. If the allocation fails, the program aborts as
    /// it does for a `Vec`.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// (0..100).for_each(|n| worker.push(n));
    /// assert_eq!(worker.len(), 100);
    /// ```
    #[inline]
    pub fn push(&self, item: T) {
        let ticket = self.bottom.next();
        // SAFETY: the ring lives as long as `self.shared`.
        let mut slot = unsafe { self.view.get().slot(ticket) };
        if !slot.is_vacant(ticket) {
            // SAFETY: 1. a `Worker` is the owner. 2. `view` is always that of the current ring.
            let view = unsafe { self.shared.grow(self.view.get(), ticket) };
            self.view.set(view);
            // SAFETY: the new ring lives as long as `self.shared`, too.
            slot = unsafe { view.slot(ticket) };
        }
        // SAFETY: 1. a `Worker` is the owner. 2. the slot was checked above, or it is in the new ring: that
        // ring has slots beyond the tickets of the old one, and `ticket` is the first of them.
        unsafe { self.bottom.push(slot, item) };
    }

    /// Takes the newest item. Returns `None` if the deque is empty, which is final until the next push:
    /// thieves have claimed every item that was left.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// worker.push('a');
    /// assert_eq!((worker.pop(), worker.pop()), (Some('a'), None));
    /// ```
    #[inline]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: 1. a `Worker` is the owner. 2. `view` is always that of the current ring, which lives as
        // long as `self.shared`.
        unsafe { self.bottom.pop(self.view.get()) }
    }

    /// Returns the number of items. The number may be outdated if thieves are stealing at the same time.
    ///
    /// ```
    /// assert_eq!(heist_deque::growable::new::<u8>().0.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.current().ring.len_below(self.bottom.next(), &self.shared.top)
    }

    /// Returns whether a pop would find nothing. If it returns true, that is final until the next push.
    ///
    /// ```
    /// assert!(heist_deque::growable::new::<u8>().0.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        // SAFETY: `view` is always that of the current ring, which lives as long as `self.shared`.
        unsafe { self.bottom.is_empty(self.view.get()) }
    }

    /// Returns the number of items that fit before the capacity is doubled again.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// (0..100).for_each(|n| worker.push(n));
    /// assert_eq!(worker.capacity(), 128);
    /// ```
    pub fn capacity(&self) -> usize {
        self.view.get().capacity()
    }

    /// Returns where the next `count` items will be, if the deque need not grow for them, for a caller that prefetches these
    /// places: about one address for each of their cache lines.
    #[doc(hidden)]
    pub fn next_places(&self, count: usize) -> impl Iterator<Item = *const u8> {
        let (view, next) = (self.view.get(), self.bottom.next());
        let per_line = (CACHE_LINE / size_of::<Slot<T>>()).max(1);
        let count = count.min(view.capacity());
        (0..count).step_by(per_line).map(move |n| view.place(next.plus(n)))
    }

    /// Returns a handle for a thief.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// worker.push('a');
    /// assert_eq!(worker.stealer().steal().success(), Some('a'));
    /// ```
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { shared: self.shared.clone() }
    }
}

impl<T> sealed::Sealed for Worker<T> {}

impl<T> Destination<T> for Worker<T> {
    #[inline]
    fn has_room(&self, _ahead: usize) -> bool {
        true
    }

    #[inline]
    fn put(&self, item: T) {
        self.push(item);
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A thief's end of a growable deque, which takes the oldest item first. It can be cloned, shared and sent
/// to other threads.
///
/// ```
/// let (worker, stealer) = heist_deque::growable::new();
/// worker.push("loot");
/// let thief = std::thread::spawn(move || stealer.steal().success());
/// assert_eq!(thief.join().unwrap(), Some("loot"));
/// ```
pub struct Stealer<T> {
    shared: Shared<Body<T>>,
}

impl<T> Stealer<T> {
    /// Steals the oldest item. Returns `Retry` if another thief or the owner was faster, or if the owner is
    /// moving to a larger ring.
    ///
    /// ```
    /// use heist_deque::{Steal, growable};
    ///
    /// let (worker, stealer) = growable::new();
    /// worker.push("loot");
    /// assert_eq!(stealer.steal(), Steal::Success("loot"));
    /// ```
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.shared.with_current_ring(|ring| ring.steal(&self.shared.top))
    }

    /// Moves about half of the items to `dest`, at most [`BATCH_LIMIT`](crate::BATCH_LIMIT). The oldest
    /// item is moved first, so `dest` pops the newest of them first.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::growable::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = heist_deque::growable::new();
    /// assert!(stealer.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(2), Some(1), None));
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        if self.shared.ptr_eq(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        self.steal_batch_and_pop(dest).map(|newest| dest.push(newest))
    }

    /// Like [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
    ///
    /// ```
    /// use heist_deque::{Steal, growable};
    ///
    /// let (worker, stealer) = growable::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = growable::new();
    /// assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(2));
    /// assert_eq!(mine.pop(), Some(1));
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        if self.shared.ptr_eq(&dest.shared) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        self.shared.with_current_ring(|ring| ring.steal_half(&self.shared.top, dest, 0, 0))
    }

    /// Returns the number of items. The number may be outdated if other threads use the deque at the same
    /// time.
    ///
    /// ```
    /// assert_eq!(heist_deque::growable::new::<u8>().1.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        loop {
            let generation = self.shared.current();
            let len = generation.ring.len(&self.shared.top);
            // A ring that the owner has left may look empty.
            if len > 0 || !self.shared.is_outdated(generation) {
                return len;
            }
        }
    }

    /// Returns whether there is nothing to steal. The answer may be outdated if other threads use the deque
    /// at the same time.
    ///
    /// ```
    /// assert!(heist_deque::growable::new::<u8>().1.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        loop {
            let generation = self.shared.current();
            let is_empty = generation.ring.is_empty(&self.shared.top);
            // A ring that the owner has left may look empty.
            if !is_empty || !self.shared.is_outdated(generation) {
                return is_empty;
            }
        }
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer").field("len", &self.len()).finish_non_exhaustive()
    }
}
