//! A deque of fixed capacity: when it is full, a push hands the item back.
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
//! The owner's end is known to the owner alone: a push is two plain stores into a slot, a pop is
//! one atomic exchange on it, and neither touches anything shared but that slot. See `ARCHITECTURE.md` for the protocol and why it needs no fence.

use core::fmt;

use crate::dest::{Destination, sealed};
use crate::owner::Bottom;
use crate::pad::Padded;
use crate::ring::{Ring, Theft, View};
use crate::shared::Shared;
use crate::sync::AtomicUsize;
use crate::ticket::Ticket;
use crate::{CapacityError, Full, Steal};

struct Body<T> {
    /// Where the next thief should begin to look: a ticket before which all are claimed. Thieves
    /// write it after a claim, and whoever walks over claimed slots mends it; anyone reads it.
    top: Padded<AtomicUsize>,
    /// Written never; its slots as `slot` says.
    ring: Ring<T>,
}

/// Makes a deque that holds `capacity` items, a power of two.
///
/// # Errors
///
/// [`CapacityError`], if the capacity is zero or not a power of two (it names the nearest ones),
/// or if there is no memory for it.
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

/// As [`new`], with the first item's number, so that tests can begin just below the wrap-around.
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

/// The owner's end of a bounded deque: newest first. It moves between threads, but is used by one
/// at a time.
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
    /// Of `shared.ring`, which lives as long as `shared`.
    view: View<T>,
    shared: Shared<Body<T>>,
}

// SAFETY: what a `Worker` points to is shared by design (`Shared` and `Ring` are `Sync` for
// `T: Send`), and `bottom` goes with it.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// Adds an item at the owner's end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the item, if its slot is taken: by an item, or by a thief that has claimed
    /// one and is still reading it.
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
        // SAFETY: 1. a `Worker` is the owner. 2. checked just above.
        unsafe { self.bottom.push(slot, item) };
        Ok(())
    }

    /// Takes the newest item. `None` is final until the next push: whatever was left is a thief's.
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
        // SAFETY: 1. a `Worker` is the owner. 2. the only ring, which lives as long as `self.shared`.
        unsafe { self.bottom.pop(self.view) }
    }

    /// How many items there are. While thieves are at work, a moment ago.
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

    /// Would a pop find nothing? If so, this is final until the next push.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::bounded::new::<u8>(8)?;
    /// assert!(worker.is_empty());
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        // SAFETY: the only ring, which lives as long as `self.shared`.
        unsafe { self.bottom.is_empty(self.view) }
    }

    /// How many items fit.
    ///
    /// ```
    /// assert_eq!(heist_deque::bounded::new::<u8>(8)?.0.capacity(), 8);
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.view.capacity()
    }

    /// A handle for a thief.
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
        self.push(item).expect("there was room, and only the owner fills it");
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A thief's end of a bounded deque: oldest first. Clone it, share it, send it anywhere.
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
    /// Takes the oldest item. `Retry`: another thief or the owner was faster.
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

    /// Moves about half of the items to `dest`, at most [`BATCH_LIMIT`](crate::BATCH_LIMIT) and no
    /// more than fit there. The oldest go first, so `dest` pops the newest of them first. `Empty`
    /// also means that `dest` is full.
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
        if self.shared.same(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        if !dest.has_room(0) {
            return Steal::Empty;
        }
        done(self.shared.ring.steal_half(&self.shared.top, dest, 1)).map(|newest| dest.put(newest))
    }

    /// As [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
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
        if self.shared.same(&dest.shared) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        done(self.shared.ring.steal_half(&self.shared.top, dest, 0))
    }

    /// How many items there are. While others are at work, a moment ago.
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

    /// Is there nothing to steal? While others are at work, a moment ago.
    ///
    /// ```
    /// assert!(heist_deque::bounded::new::<u8>(8)?.1.is_empty());
    /// # Ok::<(), heist_deque::CapacityError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.shared.ring.is_empty(&self.shared.top)
    }
}

/// A bounded ring is never left for another.
#[inline(always)]
fn done<R>(theft: Theft<R>) -> Steal<R> {
    match theft {
        Theft::Done(steal) => steal,
        Theft::Moved => unreachable!("a bounded ring does not move"),
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
