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

use alloc::boxed::Box;
use core::cell::Cell;
use core::{fmt, ptr};

use crate::dest::{Destination, sealed};
use crate::pad::Padded;
use crate::ring::{Ring, Theft, View};
use crate::shared::Shared;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::teardown::drop_all;
use crate::ticket::Ticket;
use crate::{CapacityError, Steal, order};

/// The slots of a new deque. A guess: what a worker of a scheduler rarely exceeds.
///
/// ```
/// let (worker, _stealer) = heist_deque::growable::new::<u8>();
/// assert_eq!(worker.capacity(), heist_deque::growable::FIRST_CAPACITY);
/// ```
pub const FIRST_CAPACITY: usize = 64;

struct Body<T> {
    /// Where the next thief should begin to look: a ticket before which all are claimed. Thieves
    /// write it after a claim; anyone reads it.
    top: Padded<AtomicUsize>,
    /// The ring in use. The owner changes it when it grows; thieves follow.
    current: Padded<AtomicPtr<Generation<T>>>,
}

/// A ring, and the one that it replaced.
struct Generation<T> {
    ring: Ring<T>,
    /// Null for the first. Kept for thieves that may be inside, until the body goes.
    older: *mut Self,
}

// SAFETY: a `Generation` owns its ring and the older ones: it is as `Send` as they are.
unsafe impl<T: Send> Send for Body<T> {}
// SAFETY: likewise; `current` is changed by the owner alone.
unsafe impl<T: Send> Sync for Body<T> {}

impl<T> Body<T> {
    /// The ring in use.
    #[inline(always)]
    fn current(&self) -> &Generation<T> {
        let current = self.current.load(order::ring_follow());
        // SAFETY: never null, made by `Box::into_raw`, and not freed before the body. Nobody has a
        // mutable reference to a generation while the body lives.
        unsafe { &*current }
    }

    /// Has the owner left this ring?
    fn has_left(&self, generation: &Generation<T>) -> bool {
        !ptr::eq(self.current(), generation)
    }

    /// Owner: moves everything to a ring of twice the capacity, and returns where that is. `bottom`
    /// is the ticket of the next push.
    ///
    /// A method of the body: were the worker to lend itself to a call that is not inlined, it could
    /// not be kept in registers around those that are.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `old` is of the current ring.
    #[cold]
    #[inline(never)]
    unsafe fn grow(&self, old: View<T>, bottom: Ticket) -> View<T> {
        let capacity = 2 * old.capacity();
        // The window of the old ring: nothing older can still be there.
        let oldest = bottom.minus(old.capacity());
        // Ordering: relaxed. The owner alone changes it.
        let older = self.current.load(Ordering::Relaxed);
        // All that can fail comes before the first item moves.
        let new = Box::new(Generation { ring: ring_or_die(capacity, oldest), older });
        // Newest first: thieves come from the other end, and once one meets an item that has moved
        // it goes no further. So what thieves take from the old ring stays a prefix.
        for ticket in (0..old.capacity()).rev().map(|n| oldest.plus(n)) {
            // SAFETY: the ring lives as long as the body.
            let from = unsafe { old.slot(ticket) };
            let to = new.ring.slot(ticket);
            // SAFETY: the caller is the owner.
            match unsafe { from.evict(ticket) } {
                // SAFETY: 1. as above. 2. new, and vacant for this ticket.
                Some(item) => unsafe { to.fill(ticket, item) },
                // SAFETY: the ring is published below.
                None => unsafe { to.skip(ticket, capacity) },
            }
        }
        let view = new.ring.view();
        self.current.store(Box::into_raw(new), order::ring_publish());
        view
    }

    /// Repeats an attempt until it was made on a ring that was still in use.
    #[inline(always)]
    fn follow<R>(&self, attempt: impl Fn(&Ring<T>) -> Theft<R>) -> Steal<R> {
        loop {
            let generation = self.current();
            match attempt(&generation.ring) {
                // The old ring may look empty to a thief that comes late.
                Theft::Done(Steal::Empty) if self.has_left(generation) => {}
                Theft::Done(steal) => return steal,
                // The owner is in the middle of its move.
                Theft::Moved if !self.has_left(generation) => return Steal::Retry,
                Theft::Moved => {}
            }
        }
    }
}

impl<T> Drop for Body<T> {
    fn drop(&mut self) {
        // Ordering: relaxed. Exclusive access came with an ordering of its own.
        let mut newest = self.current.load(Ordering::Relaxed);
        drop_all(|| {
            if newest.is_null() {
                return false;
            }
            // SAFETY: made by `Box::into_raw`, and freed once: each is `older` of one other.
            let generation = unsafe { Box::from_raw(newest) };
            newest = generation.older;
            drop(generation);
            true
        });
    }
}

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
    let ring = ring_or_die(capacity, origin);
    let view = ring.view();
    let first = Box::into_raw(Box::new(Generation { ring, older: ptr::null_mut() }));
    let body = Body {
        top: Padded(AtomicUsize::new(origin.vacant())),
        current: Padded(AtomicPtr::new(first)),
    };
    let Ok(shared) = Shared::try_new(body) else {
        out_of_memory(core::alloc::Layout::new::<Body<T>>())
    };
    let stealer = Stealer { shared: shared.clone() };
    let (bottom, floor) = (Cell::new(origin), Cell::new(origin));
    (Worker { bottom, floor, view: Cell::new(view), shared }, stealer)
}

/// A ring, or the end that a `Vec` would come to.
fn ring_or_die<T>(capacity: usize, origin: Ticket) -> Ring<T> {
    match Ring::try_new(capacity, origin) {
        Ok(ring) => ring,
        Err(CapacityError::OutOfMemory { bytes, .. }) => {
            let layout = core::alloc::Layout::from_size_align(bytes, align_of::<usize>());
            out_of_memory(layout.expect("it was a layout a moment ago"))
        }
        Err(error) => panic!("a deque cannot grow further: {error}"),
    }
}

fn out_of_memory(layout: core::alloc::Layout) -> ! {
    alloc::alloc::handle_alloc_error(layout)
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
    /// The ticket of the next push. The owner's alone.
    bottom: Cell<Ticket>,
    /// Below this ticket nothing is left: where the last pop found nothing. The owner's alone.
    floor: Cell<Ticket>,
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
        let ticket = self.bottom.get();
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
        unsafe { slot.fill(ticket, item) };
        self.bottom.set(ticket.plus(1));
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
        let bottom = self.bottom.get();
        if bottom == self.floor.get() {
            return None;
        }
        let ticket = bottom.minus(1);
        // SAFETY: the ring lives as long as `self.shared`.
        let slot = unsafe { self.view.get().slot(ticket) };
        // SAFETY: 1. a `Worker` is the owner. 2. `bottom - 1`, above the floor, is the newest.
        let item = unsafe { slot.take_back(ticket) };
        if item.is_some() {
            self.bottom.set(ticket);
        } else {
            // A thief has the newest, so thieves have all.
            self.floor.set(bottom);
        }
        item
    }

    /// How many items there are. While thieves are at work, a moment ago.
    ///
    /// ```
    /// assert_eq!(heist_deque::growable::new::<u8>().0.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.current().ring.len_below(self.bottom.get(), &self.shared.top)
    }

    /// Would a pop find nothing? If so, this is final until the next push.
    ///
    /// ```
    /// assert!(heist_deque::growable::new::<u8>().0.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        let newest = self.bottom.get().minus(1);
        self.bottom == self.floor || !self.shared.current().ring.slot(newest).is_full(newest)
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
