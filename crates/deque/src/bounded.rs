//! A deque of fixed capacity: when it is full, a push returns the item.
//!
//! ```
//! use heist_deque::{Full, Steal, bounded};
//!
//! let (worker, stealer) = bounded::new(2)?;
//! worker.push(1).unwrap();
//! worker.push(2).unwrap();
//! assert_eq!(worker.push(3), Err(Full(3)));
//! assert_eq!(stealer.steal(), Steal::Success(1));
//! worker.push(3).unwrap();
//! assert_eq!(worker.pop(), Some(3));
//! assert_eq!(worker.pop(), Some(2));
//! assert_eq!(worker.pop(), None);
//! # Ok::<(), heist_deque::CapacityError>(())
//! ```
//!
//! The owner's index is private to the owner. A push is two plain stores to a slot, a pop is one atomic
//! exchange on a slot, and neither accesses any other shared memory. `ARCHITECTURE.md` describes the protocol
//! and why it needs no fence.

use core::fmt;

use crate::destination::{Destination, sealed};
use crate::owner::Bottom;
use crate::pad::Padded;
use crate::ring::{Ring, RingSteal, View};
use crate::shared::Shared;
use crate::sync::AtomicUsize;
use crate::ticket::Ticket;
use crate::{CapacityError, Full, Steal};

/// What the handles share.
struct Body<T> {
    /// A hint for thieves where to start looking: a ticket before which all tickets are claimed. Thieves
    /// write it after a claim; a thread that walks over claimed slots corrects it; any thread reads it.
    top: Padded<AtomicUsize>,
    /// Never changes. The `slot` module says which thread accesses a slot, and when.
    ring: Ring<T>,
}

impl<T> Drop for Body<T> {
    fn drop(&mut self) {
        self.ring.drop_items(&self.top);
    }
}

/// Makes a deque that holds up to `capacity` items. The capacity must be a power of two.
///
/// # Errors
///
/// Returns a [`CapacityError`] if the capacity is zero or not a power of two (the error names the nearest
/// valid ones), or if there is not enough memory.
///
/// ```
/// use heist_deque::{CapacityError, bounded};
///
/// assert!(bounded::new::<String>(256).is_ok());
/// assert_eq!(bounded::new::<String>(0).unwrap_err(), CapacityError::Zero);
/// ```
pub fn new<T>(capacity: usize) -> Result<(Worker<T>, Stealer<T>), CapacityError> {
    new_at(capacity, 0)
}

/// Like [`new`], with the number of the first ticket, so that tests can start just below the wrap-around.
#[doc(hidden)]
pub fn new_at<T>(capacity: usize, number: usize) -> Result<(Worker<T>, Stealer<T>), CapacityError> {
    check(capacity)?;
    let origin = Ticket::new(number);
    let ring = Ring::try_new(capacity, origin)?;
    let view = ring.view();
    let body = Body { top: Padded(AtomicUsize::new(origin.vacant())), ring };
    let out_of_memory =
        CapacityError::OutOfMemory { requested: capacity, bytes: Shared::<Body<T>>::BYTES };
    let shared = Shared::try_new(body).map_err(|_| out_of_memory)?;
    let stealer = Stealer { shared: shared.clone() };
    Ok((Worker { bottom: Bottom::new(origin), view, shared }, stealer))
}

/// Returns an error unless a ring can have this capacity.
fn check(capacity: usize) -> Result<(), CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        _ if capacity.is_power_of_two() => Ok(()),
        requested => Err(CapacityError::NotPowerOfTwo {
            requested,
            below: 1 << requested.ilog2(),
            above: requested.checked_next_power_of_two(),
        }),
    }
}

/// The owner's end of a bounded deque, which pops the newest item first. It can be sent to another thread,
/// but only one thread can use it at a time.
///
/// ```
/// let (worker, _stealer) = heist_deque::bounded::new(8)?;
/// let worker = std::thread::spawn(move || {
///     worker.push("from another thread").unwrap();
///     worker
/// })
/// .join()
/// .unwrap();
/// assert_eq!(worker.pop(), Some("from another thread"));
/// # Ok::<(), heist_deque::CapacityError>(())
/// ```
pub struct Worker<T> {
    bottom: Bottom,
    /// The location of `shared.ring`, which lives as long as `shared`.
    view: View<T>,
    shared: Shared<Body<T>>,
}

// SAFETY: what a `Worker` points to may be used from any thread (`Shared` and `Ring` are `Sync` for
// `T: Send`), and `bottom` moves with the worker.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// Pushes an item at the owner's end.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] with the item if the next slot is occupied: by an item, or by a thief that has
    /// claimed an item and is still reading it.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new(1)?;
    /// assert!(worker.push("fits").is_ok());
    /// assert!(worker.push("does not").is_err());
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    #[inline]
    pub fn push(&self, item: T) -> Result<(), Full<T>> {
        let ticket = self.bottom.next();
        // SAFETY: the ring lives as long as `self.shared`.
        let slot = unsafe { self.view.slot(ticket) };
        if !slot.is_vacant(ticket) {
            return Err(Full(item));
        }
        // SAFETY: 1. a `Worker` is the owner. 2. the slot is that of `next()`, and vacant, as checked above.
        unsafe { self.bottom.push(slot, item) };
        Ok(())
    }

    /// Takes the newest item. Returns `None` if the deque is empty, which is final until the next push:
    /// thieves have claimed every item that was left.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new(2)?;
    /// worker.push(1).unwrap();
    /// worker.push(2).unwrap();
    /// assert_eq!((worker.pop(), worker.pop(), worker.pop()), (Some(2), Some(1), None));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    #[inline]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: 1. a `Worker` is the owner. 2. there is only one ring, and it lives as long as
        // `self.shared`.
        unsafe { self.bottom.pop(self.view) }
    }

    /// Returns the number of items. The number may be outdated if thieves are stealing at the same time.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new(8)?;
    /// worker.push('a').unwrap();
    /// assert_eq!(worker.len(), 1);
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.shared.ring.len_below(self.bottom.next(), &self.shared.top)
    }

    /// Returns whether a pop would find nothing. If it returns true, that is final until the next push.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new::<u8>(8)?;
    /// assert!(worker.is_empty());
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        // SAFETY: there is only one ring, and it lives as long as `self.shared`.
        unsafe { self.bottom.is_empty(self.view) }
    }

    /// Returns the number of items that the deque can hold.
    ///
    /// ```
    /// assert_eq!(heist_deque::bounded::new::<u8>(8)?.0.capacity(), 8);
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.view.capacity()
    }

    /// Returns a handle for a thief.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new(8)?;
    /// worker.push('a').unwrap();
    /// assert_eq!(worker.stealer().steal().success(), Some('a'));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { shared: self.shared.clone() }
    }
}

impl<T> sealed::Sealed for Worker<T> {}

impl<T> Destination<T> for Worker<T> {
    #[inline]
    fn has_room(&self, ahead: usize) -> bool {
        let ticket = self.bottom.next().plus(ahead);
        self.shared.ring.slot(ticket).is_vacant(ticket)
    }

    #[inline]
    fn put(&self, item: T) {
        self.push(item)
            .expect("the caller checked that there is room, and only the owner fills it");
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A thief's end of a bounded deque, which takes the oldest item first. It can be cloned, shared and sent
/// to other threads.
///
/// ```
/// let (worker, stealer) = heist_deque::bounded::new(8)?;
/// (0..4).for_each(|n| worker.push(n).unwrap());
/// let thieves: Vec<_> = (0..2)
///     .map(|_| stealer.clone())
///     .map(|stealer| std::thread::spawn(move || stealer.steal().is_success()))
///     .collect();
/// thieves.into_iter().for_each(|thief| drop(thief.join()));
/// # Ok::<(), heist_deque::CapacityError>(())
/// ```
pub struct Stealer<T> {
    shared: Shared<Body<T>>,
}

impl<T> Stealer<T> {
    /// Steals the oldest item. Returns `Retry` if another thief or the owner was faster.
    ///
    /// ```
    /// use heist_deque::{Steal, bounded};
    ///
    /// let (worker, stealer) = bounded::new(8)?;
    /// worker.push("loot").unwrap();
    /// assert_eq!(stealer.steal(), Steal::Success("loot"));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        done(self.shared.ring.steal(&self.shared.top))
    }

    /// Moves about half of the items to `dest`, at most [`BATCH_LIMIT`](crate::BATCH_LIMIT) and no more
    /// than fit there. The oldest item is moved first, so `dest` pops the newest of them first. Returns
    /// `Empty` if there is nothing to steal or `dest` is full.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::bounded::new(8)?;
    /// (1..=4).for_each(|n| worker.push(n).unwrap());
    /// let (mine, _) = heist_deque::bounded::new(8)?;
    /// assert!(stealer.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(2), Some(1), None));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        if self.shared.ptr_eq(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        if !dest.has_room(0) {
            return Steal::Empty;
        }
        done(self.shared.ring.steal_half(&self.shared.top, dest, 1, 0))
            .map(|newest| dest.put(newest))
    }

    /// Like [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
    ///
    /// ```
    /// use heist_deque::{Steal, bounded};
    ///
    /// let (worker, stealer) = bounded::new(8)?;
    /// (1..=4).for_each(|n| worker.push(n).unwrap());
    /// let (mine, _) = bounded::new(8)?;
    /// assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(2));
    /// assert_eq!(mine.pop(), Some(1));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_one_of_few(dest, 0)
    }

    /// Like [`steal_batch_and_pop`](Self::steal_batch_and_pop), but steals only the oldest item if there are
    /// no more than `few`. It finds that out by a look at one slot. An internal of the crates of this
    /// repository.
    ///
    /// ```
    /// use heist_deque::{Steal, bounded};
    ///
    /// let (worker, stealer) = bounded::new(8)?;
    /// (1..=4).for_each(|n| worker.push(n).unwrap());
    /// let (mine, _) = bounded::new(8)?;
    /// assert_eq!(stealer.steal_one_of_few(&mine, 4), Steal::Success(1));
    /// assert_eq!(stealer.steal_one_of_few(&mine, 2), Steal::Success(3));
    /// assert_eq!(mine.pop(), Some(2));
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    #[doc(hidden)]
    pub fn steal_one_of_few(&self, dest: &Worker<T>, few: usize) -> Steal<T> {
        if self.shared.ptr_eq(&dest.shared) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        done(self.shared.ring.steal_half(&self.shared.top, dest, 0, few))
    }

    /// Returns the number of items. The number may be outdated if other threads use the deque at the same
    /// time.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::bounded::new(8)?;
    /// worker.push('a').unwrap();
    /// assert_eq!(stealer.len(), 1);
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.shared.ring.len(&self.shared.top)
    }

    /// Returns whether there is nothing to steal. The answer may be outdated if other threads use the deque
    /// at the same time.
    ///
    /// ```
    /// assert!(heist_deque::bounded::new::<u8>(8)?.1.is_empty());
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.shared.ring.is_empty(&self.shared.top)
    }
}

/// Returns the outcome. The owner of a bounded deque never moves to another ring.
#[inline(always)]
fn done<R>(attempt: RingSteal<R>) -> Steal<R> {
    match attempt {
        RingSteal::Done(steal) => steal,
        RingSteal::Moved => unreachable!("a bounded ring does not move"),
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
