//! The rings of a growable deque, and the way from one to the next.

use alloc::boxed::Box;
use core::ptr;

use crate::pad::Padded;
use crate::ring::{Ring, Theft, View};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::teardown::drop_all;
use crate::ticket::Ticket;
use crate::{CapacityError, Steal, order};

/// What the handles share.
pub(super) struct Body<T> {
    /// Where the next thief should begin to look: a ticket before which all are claimed. Thieves
    /// write it after a claim, and whoever walks over claimed slots mends it; anyone reads it.
    pub(super) top: Padded<AtomicUsize>,
    /// The ring in use. The owner changes it when it grows; thieves follow.
    current: Padded<AtomicPtr<Generation<T>>>,
}

/// A ring, and the one that it replaced.
pub(super) struct Generation<T> {
    pub(super) ring: Ring<T>,
    /// Null for the first. Kept for thieves that may be inside, until the body goes.
    older: *mut Self,
}

// SAFETY: a `Generation` owns its ring and the older ones: it is as `Send` as they are.
unsafe impl<T: Send> Send for Body<T> {}
// SAFETY: likewise; `current` is changed by the owner alone.
unsafe impl<T: Send> Sync for Body<T> {}

impl<T> Body<T> {
    /// With one ring, which waits for `origin`; and where that is.
    pub(super) fn new(capacity: usize, origin: Ticket) -> (Self, View<T>) {
        let ring = ring_or_die(capacity, origin);
        let view = ring.view();
        let first = Box::into_raw(Box::new(Generation { ring, older: ptr::null_mut() }));
        let top = Padded(AtomicUsize::new(origin.vacant()));
        (Self { top, current: Padded(AtomicPtr::new(first)) }, view)
    }

    /// The ring in use.
    #[inline(always)]
    pub(super) fn current(&self) -> &Generation<T> {
        let current = self.current.load(order::ring_follow());
        // SAFETY: never null, made by `Box::into_raw`, and not freed before the body. Nobody has a
        // mutable reference to a generation while the body lives.
        unsafe { &*current }
    }

    /// Has the owner left this ring?
    pub(super) fn has_left(&self, generation: &Generation<T>) -> bool {
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
    pub(super) unsafe fn grow(&self, old: View<T>, bottom: Ticket) -> View<T> {
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
    pub(super) fn follow<R>(&self, attempt: impl Fn(&Ring<T>) -> Theft<R>) -> Steal<R> {
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

pub(super) fn out_of_memory(layout: core::alloc::Layout) -> ! {
    alloc::alloc::handle_alloc_error(layout)
}
