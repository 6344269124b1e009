//! The owner's end of a ring: the ticket of the next push, and how a pop takes the newest item.

use core::cell::Cell;

use crate::ring::View;
use crate::slot::Slot;
use crate::ticket::Ticket;

/// The owner's end of a ring. Only the owner accesses it, so in a loop both tickets stay in registers.
pub(crate) struct Bottom {
    /// The ticket of the next push.
    next: Cell<Ticket>,
    /// No item is left below this ticket: the value of `next` when a pop last found nothing.
    floor: Cell<Ticket>,
}

impl Bottom {
    pub(crate) fn new(origin: Ticket) -> Self {
        Self { next: Cell::new(origin), floor: Cell::new(origin) }
    }

    /// Returns the ticket of the next push.
    #[inline(always)]
    pub(crate) fn next(&self) -> Ticket {
        self.next.get()
    }

    /// Fills the slot of the next ticket, and advances to the following ticket.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `slot` is that of `next()` in the current ring, and vacant for it.
    #[inline(always)]
    pub(crate) unsafe fn push<T>(&self, slot: &Slot<T>, item: T) {
        let ticket = self.next();
        // SAFETY: the caller guarantees 1. and 2.
        unsafe { slot.fill(ticket, item) };
        self.next.set(ticket.plus(1));
    }

    /// Takes the newest item back, if the thieves have left one.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `view` is that of the current ring, which is alive.
    #[inline(always)]
    pub(crate) unsafe fn pop<T>(&self, view: View<T>) -> Option<T> {
        let next = self.next();
        if next == self.floor.get() {
            return None;
        }
        let ticket = next.minus(1);
        // SAFETY: the caller guarantees that the ring is alive.
        let slot = unsafe { view.slot(ticket) };
        // SAFETY: 1. the caller guarantees it. 2. the last ticket above the floor is the newest.
        let item = unsafe { slot.take_back(ticket) };
        if item.is_some() {
            self.next.set(ticket);
        } else {
            // A thief has claimed the newest item, so thieves have claimed all items.
            self.floor.set(next);
        }
        item
    }

    /// Returns whether a pop would find nothing.
    ///
    /// # Safety
    ///
    /// `view` is that of the current ring, which is alive.
    pub(crate) unsafe fn is_empty<T>(&self, view: View<T>) -> bool {
        let newest = self.next().minus(1);
        // SAFETY: the caller guarantees that the ring is alive.
        self.next == self.floor || !unsafe { view.slot(newest) }.is_full(newest)
    }
}
