//! The owner's end of a ring: where the next item goes, and which one comes back first.

use core::cell::Cell;

use crate::ring::View;
use crate::slot::Slot;
use crate::ticket::Ticket;

/// The owner's end. The owner's alone: in a loop both tickets live in registers.
pub(crate) struct Bottom {
    /// The ticket of the next push.
    next: Cell<Ticket>,
    /// Below this ticket nothing is left: where the last pop found nothing.
    floor: Cell<Ticket>,
}

impl Bottom {
    pub(crate) fn new(origin: Ticket) -> Self {
        Self { next: Cell::new(origin), floor: Cell::new(origin) }
    }

    /// The ticket of the next push.
    #[inline(always)]
    pub(crate) fn next(&self) -> Ticket {
        self.next.get()
    }

    /// Fills the slot of the next ticket, and moves on.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `slot` is that of `next()` in the current ring, and vacant for it.
    #[inline(always)]
    pub(crate) unsafe fn push<T>(&self, slot: &Slot<T>, item: T) {
        let ticket = self.next();
        // SAFETY: 1. and 2. as the caller says.
        unsafe { slot.fill(ticket, item) };
        self.next.set(ticket.plus(1));
    }

    /// Takes the newest item back, if thieves have left any.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `view` is of the current ring, which lives.
    #[inline(always)]
    pub(crate) unsafe fn pop<T>(&self, view: View<T>) -> Option<T> {
        let next = self.next();
        if next == self.floor.get() {
            return None;
        }
        let ticket = next.minus(1);
        // SAFETY: the ring lives, as the caller says.
        let slot = unsafe { view.slot(ticket) };
        // SAFETY: 1. as the caller says. 2. the last ticket above the floor is the newest.
        let item = unsafe { slot.take_back(ticket) };
        if item.is_some() {
            self.next.set(ticket);
        } else {
            // A thief has the newest, so thieves have all.
            self.floor.set(next);
        }
        item
    }

    /// Would a pop find nothing?
    ///
    /// # Safety
    ///
    /// `view` is of the current ring, which lives.
    pub(crate) unsafe fn is_empty<T>(&self, view: View<T>) -> bool {
        let newest = self.next().minus(1);
        // SAFETY: the ring lives, as the caller says.
        self.next == self.floor || !unsafe { view.slot(newest) }.is_full(newest)
    }
}
