//! The rings of a growable deque, and how the owner and the thieves go from one to the next.

use alloc::boxed::Box;
use core::ptr;

use crate::pad::Padded;
use crate::ring::{Ring, RingSteal, View};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::ticket::Ticket;
use crate::{CapacityError, Steal, order};

/// What the handles share.
pub(super) struct Body<T> {
    /// A hint for thieves where to start looking: a ticket before which all tickets are claimed. Thieves
    /// write it after a claim; a thread that walks over claimed slots corrects it; any thread reads it.
    pub(super) top: Padded<AtomicUsize>,
    /// The current ring. The owner changes it when it grows; any thread reads it.
    current: Padded<AtomicPtr<Generation<T>>>,
}

/// A ring, and a link to the one that it replaced.
pub(super) struct Generation<T> {
    pub(super) ring: Ring<T>,
    /// Null for the first ring. Thieves may still use the older rings, so they are kept until the body is
    /// dropped.
    older: *mut Self,
}

// SAFETY: the body owns all generations through raw pointers, and their rings are `Send`.
unsafe impl<T: Send> Send for Body<T> {}
// SAFETY: the rings are `Sync`, and only the owner changes `current`.
unsafe impl<T: Send> Sync for Body<T> {}

impl<T> Body<T> {
    /// Returns a body with one ring whose first ticket is `origin`, and the location of that ring.
    pub(super) fn new(capacity: usize, origin: Ticket) -> (Self, View<T>) {
        let ring = allocate_ring(capacity, origin);
        let view = ring.view();
        let first = Box::into_raw(Box::new(Generation { ring, older: ptr::null_mut() }));
        let top = Padded(AtomicUsize::new(origin.vacant()));
        (Self { top, current: Padded(AtomicPtr::new(first)) }, view)
    }

    /// Returns the current ring.
    #[inline(always)]
    pub(super) fn current(&self) -> &Generation<T> {
        let current = self.current.load(order::ring_follow());
        // SAFETY: the pointer is never null, comes from `Box::into_raw`, and is not freed before the body is
        // dropped. No mutable reference to a generation exists while the body is alive.
        unsafe { &*current }
    }

    /// Returns whether the owner has left this ring.
    pub(super) fn is_outdated(&self, generation: &Generation<T>) -> bool {
        !ptr::eq(self.current(), generation)
    }

    /// Owner: moves all items to a ring of twice the capacity, and returns the location of that ring.
    /// `bottom` is the ticket of the next push.
    ///
    /// This is a method of the body, not of the worker: if a reference to the worker were passed to a
    /// function that is not inlined, the compiler could not keep the worker's fields in registers around
    /// the calls that are inlined.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `old` is the location of the current ring.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn grow(&self, old: View<T>, bottom: Ticket) -> View<T> {
        let capacity = 2 * old.capacity();
        // The old ring has slots for the tickets from here on; no older item can still be there.
        let oldest = bottom.minus(old.capacity());
        // Ordering: relaxed. Only the owner changes it.
        let older = self.current.load(Ordering::Relaxed);
        // Everything that can fail comes before the first item is moved.
        let new = Box::new(Generation { ring: allocate_ring(capacity, oldest), older });
        // The newest item is moved first. Thieves take the oldest first, and a thief that meets a moved item
        // does not go further. The items that thieves take from the old ring are therefore a prefix.
        for ticket in (0..old.capacity()).rev().map(|n| oldest.plus(n)) {
            // SAFETY: the old ring lives as long as the body.
            let from = unsafe { old.slot(ticket) };
            let to = new.ring.slot(ticket);
            // SAFETY: the caller is the owner.
            match unsafe { from.evict(ticket) } {
                // SAFETY: 1. the caller is the owner. 2. the slot is new, and vacant for this ticket.
                Some(item) => unsafe { to.fill(ticket, item) },
                // SAFETY: the new ring is published only below.
                None => unsafe { to.skip(ticket, capacity) },
            }
        }
        let view = new.ring.view();
        self.current.store(Box::into_raw(new), order::ring_publish());
        view
    }

    /// Calls `attempt` with the current ring, and repeats it if the owner left that ring in the meantime.
    #[inline(always)]
    pub(super) fn with_current_ring<R>(
        &self,
        attempt: impl Fn(&Ring<T>) -> RingSteal<R>,
    ) -> Steal<R> {
        loop {
            let generation = self.current();
            match attempt(&generation.ring) {
                // A ring that the owner has left may look empty.
                RingSteal::Done(Steal::Empty) if self.is_outdated(generation) => {}
                RingSteal::Done(steal) => return steal,
                // The owner is moving the items at this moment.
                RingSteal::Moved if !self.is_outdated(generation) => return Steal::Retry,
                RingSteal::Moved => {}
            }
        }
    }
}

impl<T> Drop for Body<T> {
    fn drop(&mut self) {
        // Ordering: relaxed. `&mut self` is exclusive access, and whatever gave it to this thread is ordered.
        let newest = self.current.load(Ordering::Relaxed);
        // SAFETY: the pointer comes from `Box::into_raw`, and nothing else uses it: `&mut self` is exclusive access.
        let mut generations = Generations { newest: unsafe { Box::from_raw(newest) } };
        // The owner has moved all items of the older rings to the newest one.
        generations.newest.ring.drop_items(&self.top);
    }
}

/// All rings of a deque whose last handle is being dropped. They are freed even when the destructor of an item panics.
struct Generations<T> {
    newest: Box<Generation<T>>,
}

impl<T> Drop for Generations<T> {
    fn drop(&mut self) {
        let mut older = self.newest.older;
        while !older.is_null() {
            // SAFETY: the pointer comes from `Box::into_raw`, and is freed once: each generation is `older` of only one
            // other.
            let generation = unsafe { Box::from_raw(older) };
            older = generation.older;
        }
    }
}

/// Allocates a ring. Aborts or panics on failure as a `Vec` does.
fn allocate_ring<T>(capacity: usize, origin: Ticket) -> Ring<T> {
    match Ring::try_new(capacity, origin) {
        Ok(ring) => ring,
        Err(CapacityError::OutOfMemory { bytes, .. }) => {
            let layout = core::alloc::Layout::from_size_align(bytes, align_of::<usize>());
            out_of_memory(layout.expect("`Ring::try_new` computed the same layout"))
        }
        Err(error) => panic!("the deque cannot grow further: {error}"),
    }
}

pub(super) fn out_of_memory(layout: core::alloc::Layout) -> ! {
    alloc::alloc::handle_alloc_error(layout)
}
