//! A deque that doubles when it is full.
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
//! The first ring has [`FIRST_CAPACITY`] slots, each later one twice as many as the one before. A
//! thief may still be looking into a ring that the owner has left, so rings are kept until the
//! last handle is gone; no thief ever pays for saying where it is. The rings that were left have
//! together fewer slots than the current one: **a deque never holds more than twice the slots of
//! its largest ring**, and that has at most twice as many slots as there were ever items at once,
//! or [`FIRST_CAPACITY`]. (A thief that stalls in the middle of a steal counts as an item where it
//! stalls, and so do the places that the others take after it.) The capacity does not shrink.

mod rings;

use core::cell::Cell;
use core::fmt;

use crate::Steal;
use crate::dest::{Destination, sealed};
use crate::owner::Bottom;
use crate::ring::View;
use crate::shared::Shared;
use crate::ticket::Ticket;
use rings::{Body, out_of_memory};

/// The slots of a new deque. A guess: what a worker of a scheduler rarely exceeds.
///
/// ```
/// let (worker, _stealer) = heist_deque::growable::new::<u8>();
/// assert_eq!(worker.capacity(), heist_deque::growable::FIRST_CAPACITY);
/// ```
pub const FIRST_CAPACITY: usize = 64;

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

/// As [`new`], with the first capacity and the first item's number, for tests.
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

/// The owner's end of a growable deque: newest first. It moves between threads, but is used by
/// one at a time.
///
/// ```
/// let (worker, _stealer) = heist_deque::growable::new();
/// worker.push(1);
/// worker.push(2);
/// assert_eq!(worker.pop(), Some(2));
/// ```
pub struct Worker<T> {
    bottom: Bottom,
    /// Of the current ring, which lives as long as `shared`.
    view: Cell<View<T>>,
    shared: Shared<Body<T>>,
}

// SAFETY: what a `Worker` points to is shared by design (`Shared` and `Body` are `Sync` for
// `T: Send`), and the cells go with it.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// Adds an item at the owner's end. Doubles the capacity if the slot is taken.
    ///
    /// # Panics
    ///
    /// If the capacity would not fit into memory's addresses. If the allocator refuses, the
    /// program ends as it does for a `Vec`.
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
            // SAFETY: 1. a `Worker` is the owner. 2. `view` always is.
            let view = unsafe { self.shared.grow(self.view.get(), ticket) };
            self.view.set(view);
            // SAFETY: as above.
            slot = unsafe { view.slot(ticket) };
        }
        // SAFETY: 1. a `Worker` is the owner. 2. checked above, or new: the larger ring has slots
        // beyond the old window, and `ticket` is the first of them.
        unsafe { self.bottom.push(slot, item) };
    }

    /// Takes the newest item. `None` is final until the next push: whatever was left is a thief's.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// worker.push('a');
    /// assert_eq!((worker.pop(), worker.pop()), (Some('a'), None));
    /// ```
    #[inline]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: 1. a `Worker` is the owner. 2. `view` always is of the current ring, which lives as
        // long as `self.shared`.
        unsafe { self.bottom.pop(self.view.get()) }
    }

    /// How many items there are. While thieves are at work, a moment ago.
    ///
    /// ```
    /// assert_eq!(heist_deque::growable::new::<u8>().0.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.current().ring.len_below(self.bottom.next(), &self.shared.top)
    }

    /// Would a pop find nothing? If so, this is final until the next push.
    ///
    /// ```
    /// assert!(heist_deque::growable::new::<u8>().0.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        // SAFETY: `view` always is of the current ring, which lives as long as `self.shared`.
        unsafe { self.bottom.is_empty(self.view.get()) }
    }

    /// How many items fit before the next doubling.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::growable::new();
    /// (0..100).for_each(|n| worker.push(n));
    /// assert_eq!(worker.capacity(), 128);
    /// ```
    pub fn capacity(&self) -> usize {
        self.view.get().capacity()
    }

    /// A handle for a thief.
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

/// A thief's end of a growable deque: oldest first. Clone it, share it, send it anywhere.
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
    /// Takes the oldest item. `Retry`: another thief or the owner was faster, or the owner is
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
        self.shared.follow(|ring| ring.steal(&self.shared.top))
    }

    /// Moves about half of the items to `dest`, at most [`BATCH_LIMIT`](crate::BATCH_LIMIT). The
    /// oldest go first, so `dest` pops the newest of them first.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::growable::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = heist_deque::growable::new();
    /// assert!(stealer.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(2), Some(1), None));
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        if self.shared.same(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        self.steal_batch_and_pop(dest).map(|newest| dest.push(newest))
    }

    /// As [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
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
        if self.shared.same(&dest.shared) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        self.shared.follow(|ring| ring.steal_half(&self.shared.top, dest, 0))
    }

    /// How many items there are. While others are at work, a moment ago.
    ///
    /// ```
    /// assert_eq!(heist_deque::growable::new::<u8>().1.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        loop {
            let generation = self.shared.current();
            let len = generation.ring.len(&self.shared.top);
            // The old ring may look empty to one who comes late.
            if len > 0 || !self.shared.has_left(generation) {
                return len;
            }
        }
    }

    /// Is there nothing to steal? While others are at work, a moment ago.
    ///
    /// ```
    /// assert!(heist_deque::growable::new::<u8>().1.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        loop {
            let generation = self.shared.current();
            let is_empty = generation.ring.is_empty(&self.shared.top);
            // As in `len`.
            if !is_empty || !self.shared.has_left(generation) {
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
