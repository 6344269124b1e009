//! The ring: a circular array of slots, and how thieves find the oldest item in it.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::destination::Destination;
use crate::slot::{Slot, SlotState};
use crate::steal::Steal;
use crate::sync::{AtomicUsize, Ordering, alloc, dealloc};
use crate::teardown::drop_all;
use crate::ticket::Ticket;
use crate::{BATCH_LIMIT, CapacityError};

/// The location of the slots of a [`Ring`], as a copyable value that a handle can keep.
pub(crate) struct View<T> {
    slots: NonNull<Slot<T>>,
    mask: usize,
}

impl<T> Clone for View<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<T> {}

impl<T> View<T> {
    #[inline(always)]
    pub(crate) fn capacity(self) -> usize {
        self.mask + 1
    }

    /// Returns the address of the slot of `ticket`.
    pub(crate) fn place(self, ticket: Ticket) -> *const u8 {
        self.slots
            .as_ptr()
            .cast::<u8>()
            .wrapping_add(ticket.position(self.mask) * size_of::<Slot<T>>())
    }

    /// Returns the slot of `ticket`.
    ///
    /// # Safety
    ///
    /// The ring lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn slot<'a>(self, ticket: Ticket) -> &'a Slot<T> {
        // SAFETY: a position is at most `mask`, and the ring has `mask + 1` slots.
        let slot = unsafe { self.slots.add(ticket.position(self.mask)) };
        // SAFETY: `Ring::try_new` initialized the slot, only shared references to it exist, and the caller
        // guarantees that the ring is alive.
        unsafe { slot.as_ref() }
    }
}

/// A circular array of slots. It owns the memory of the slots. The body of a deque drops the items that are left in them.
pub(crate) struct Ring<T> {
    /// Points to `view.capacity()` initialized slots, which `alloc` allocated with the layout of that array.
    view: View<T>,
}

// SAFETY: the protocol of `slot` makes shared slots sound; items move to the thread that takes them.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: see `Send`. No reference to an item is handed out.
unsafe impl<T: Send> Sync for Ring<T> {}

/// What a thief finds at its end of the ring.
#[must_use]
enum Oldest {
    /// An item; every older one is claimed.
    Item(Ticket),
    /// No item.
    Nothing,
    /// An item that the owner moved to a larger ring.
    Moved(Ticket),
}

/// The outcome of an attempt to steal from one ring.
#[must_use]
pub(crate) enum RingSteal<R> {
    /// The attempt ended in this ring.
    Done(Steal<R>),
    /// The owner moved the items to a larger ring.
    Moved,
}

impl<T> Ring<T> {
    /// Allocates a ring of `capacity` vacant slots, of which the first is for `origin`. `capacity` is a power
    /// of two.
    pub(crate) fn try_new(capacity: usize, origin: Ticket) -> Result<Self, CapacityError> {
        assert!(capacity.is_power_of_two(), "the capacity of a ring is a power of two");
        let too_large = CapacityError::TooLarge { requested: capacity };
        let layout = Layout::array::<Slot<T>>(capacity).map_err(|_| too_large)?;
        // SAFETY: the layout is not zero-sized: there is at least one slot, and a slot has a word.
        let raw = unsafe { alloc(layout) };
        let out_of_memory =
            CapacityError::OutOfMemory { requested: capacity, bytes: layout.size() };
        let slots = NonNull::new(raw.cast::<Slot<T>>()).ok_or(out_of_memory)?;
        let mask = capacity - 1;
        for ticket in (0..capacity).map(|n| origin.plus(n)) {
            // SAFETY: a position is at most `mask`, so it is within the array.
            let slot = unsafe { slots.add(ticket.position(mask)) };
            // SAFETY: the memory is new and of the right layout, and no other thread knows it.
            unsafe { slot.write(Slot::vacant(ticket)) };
        }
        Ok(Self { view: View { slots, mask } })
    }

    #[inline(always)]
    pub(crate) fn view(&self) -> View<T> {
        self.view
    }

    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.view.capacity()
    }

    /// Returns the slot of `ticket`.
    #[inline(always)]
    pub(crate) fn slot(&self, ticket: Ticket) -> &Slot<T> {
        // SAFETY: the ring is borrowed for as long as the slot.
        unsafe { self.view.slot(ticket) }
    }

    /// Finds the oldest item, starting at the thieves' hint.
    ///
    /// The hint is outdated if other thieves overtook its writer between the writer's claim and its store.
    /// The next thief then walks over the claimed slots, at most once around the ring, and corrects the
    /// hint.
    #[inline]
    fn oldest(&self, hint: &AtomicUsize) -> Oldest {
        // Ordering: relaxed. Before any ticket that was ever stored here, all tickets are claimed; the
        // words of the slots give the rest.
        let mut ticket = Ticket::of(hint.load(Ordering::Relaxed));
        loop {
            match self.slot(ticket).look(ticket, self.capacity()) {
                SlotState::Full => return Oldest::Item(ticket),
                SlotState::Vacant => return Oldest::Nothing,
                SlotState::Moved => return Oldest::Moved(ticket),
                SlotState::Claimed { next } => {
                    ticket = next;
                    hint.store(ticket.vacant(), Ordering::Relaxed);
                }
            }
        }
    }

    /// Claims `ticket`, advances the hint for the next thief, and returns the item. Returns `None` if another
    /// thread was faster.
    ///
    /// # Safety
    ///
    /// All tickets before this one have been claimed.
    #[inline]
    unsafe fn claim(&self, ticket: Ticket, hint: &AtomicUsize) -> Option<T> {
        let slot = self.slot(ticket);
        // SAFETY: 1. the caller guarantees it. 2. `carry_off` is called below.
        if !unsafe { slot.claim(ticket) } {
            return None;
        }
        // Ordering: relaxed, see `oldest`.
        hint.store(ticket.plus(1).vacant(), Ordering::Relaxed);
        // SAFETY: 1. this thread claimed the ticket above. 2. the capacity is that of this ring.
        Some(unsafe { slot.carry_off(ticket, self.capacity()) })
    }

    /// Steals the oldest item.
    #[inline]
    pub(crate) fn steal(&self, hint: &AtomicUsize) -> RingSteal<T> {
        match self.oldest(hint) {
            Oldest::Item(ticket) => {
                // SAFETY: `oldest` starts at a ticket before which all are claimed, and skips only
                // claimed tickets.
                let item = unsafe { self.claim(ticket, hint) };
                RingSteal::Done(item.map_or(Steal::Retry, Steal::Success))
            }
            Oldest::Nothing => RingSteal::Done(Steal::Empty),
            Oldest::Moved(_) => RingSteal::Moved,
        }
    }

    /// Steals about half of the items, oldest first, at most [`BATCH_LIMIT`]. Returns the newest of them, and
    /// puts the others into `dest`, where it leaves room for `spare` more items. Steals only one item if there
    /// are no more than `few`.
    ///
    /// If `spare` is one, the caller must have checked that `dest` has room for one item: this function only
    /// checks for the second one.
    ///
    /// Each item is claimed separately. The owner pops without synchronizing with the thieves through
    /// anything but the slot, so a claim of several items at once could take an item that the owner has
    /// already taken back.
    pub(crate) fn steal_half(
        &self,
        hint: &AtomicUsize,
        dest: &impl Destination<T>,
        spare: usize,
        few: usize,
    ) -> RingSteal<T> {
        let oldest = match self.oldest(hint) {
            Oldest::Item(ticket) => ticket,
            Oldest::Nothing => return RingSteal::Done(Steal::Empty),
            Oldest::Moved(_) => return RingSteal::Moved,
        };
        let half = if self.has_more_than(few, oldest) { self.half(oldest) } else { 1 };
        // SAFETY: as in `steal`, `oldest` skips only claimed tickets.
        let Some(mut newest) = (unsafe { self.claim(oldest, hint) }) else {
            return RingSteal::Done(Steal::Retry);
        };
        for ticket in (1..half).map(|n| oldest.plus(n)) {
            if !dest.has_room(spare) {
                break;
            }
            // SAFETY: this thread has just claimed the tickets from `oldest` up to this one, and all earlier
            // tickets were claimed before.
            let Some(item) = (unsafe { self.claim(ticket, hint) }) else {
                break;
            };
            dest.put(core::mem::replace(&mut newest, item));
        }
        RingSteal::Done(Steal::Success(newest))
    }

    /// Returns whether there are more than `few` items from `oldest` on, of which there is one.
    #[inline(always)]
    fn has_more_than(&self, few: usize, oldest: Ticket) -> bool {
        let next = oldest.plus(few);
        few == 0 || (few < self.capacity() && self.slot(next).is_full(next))
    }

    /// Returns half of the number of items from `oldest` on, rounded up, at least one and at most
    /// [`BATCH_LIMIT`].
    ///
    /// A thief may take `n` items if there are `2n - 1`. A binary search inspects few slots, which matters
    /// because even a slot that is only inspected costs the owner a cache miss.
    fn half(&self, oldest: Ticket) -> usize {
        let may_take = |n: usize| {
            let last = oldest.plus(2 * n - 2);
            2 * n - 1 <= self.capacity() && self.slot(last).is_full(last)
        };
        if may_take(BATCH_LIMIT) {
            return BATCH_LIMIT;
        }
        // Invariant: the result is at least `least` and less than `more`.
        let (mut least, mut more) = (1, BATCH_LIMIT);
        while more - least > 1 {
            let middle = least.midpoint(more);
            *if may_take(middle) { &mut least } else { &mut more } = middle;
        }
        least
    }

    /// Returns the number of items, counted from the thieves' end.
    pub(crate) fn len(&self, hint: &AtomicUsize) -> usize {
        let (Oldest::Item(oldest) | Oldest::Moved(oldest)) = self.oldest(hint) else {
            return 0;
        };
        let holds = |len: usize| {
            let newest = oldest.plus(len - 1);
            len <= self.capacity() && self.slot(newest).was_full(newest)
        };
        // There is at least one item. Double the number until it is too large, then search between.
        let mut some = 1;
        while holds(2 * some) {
            some *= 2;
        }
        let mut step = some / 2;
        while step > 0 {
            if holds(some + step) {
                some += step;
            }
            step /= 2;
        }
        some
    }

    /// Returns whether there is nothing to steal.
    pub(crate) fn is_empty(&self, hint: &AtomicUsize) -> bool {
        matches!(self.oldest(hint), Oldest::Nothing)
    }

    /// Last handle: drops the items that are left.
    ///
    /// It takes them as a thief does. So it looks at the slots that have an item, and at one more, and not at all slots, most
    /// of which may be in the cache of another processor.
    pub(crate) fn drop_items(&mut self, hint: &AtomicUsize) {
        drop_all(|| match self.steal(hint) {
            RingSteal::Done(Steal::Success(item)) => {
                drop(item);
                true
            }
            // There is no other thread that could be in the way.
            RingSteal::Done(_) | RingSteal::Moved => false,
        });
    }

    /// Returns the number of items of an owner whose next ticket is `bottom`.
    pub(crate) fn len_below(&self, bottom: Ticket, hint: &AtomicUsize) -> usize {
        match self.oldest(hint) {
            Oldest::Item(oldest) => bottom.distance_from(oldest) as usize,
            Oldest::Nothing | Oldest::Moved(_) => 0,
        }
    }
}

impl<T> Drop for Ring<T> {
    /// Frees the slots. What is left in them was dropped by [`Ring::drop_items`].
    fn drop(&mut self) {
        for n in 0..self.capacity() {
            // SAFETY: `n` is less than the capacity, so it is within the array.
            let slot = unsafe { self.view.slots.add(n) };
            // SAFETY: `try_new` initialized the slot, and it is dropped only here.
            unsafe { slot.drop_in_place() };
        }
        let layout =
            Layout::array::<Slot<T>>(self.capacity()).expect("`try_new` computed the same layout");
        // SAFETY: `try_new` allocated the memory with this layout, and it is freed only here.
        unsafe { dealloc(self.view.slots.as_ptr().cast(), layout) };
    }
}
