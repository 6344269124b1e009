//! A circle of slots, and how thieves go around it.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::dest::Destination;
use crate::slot::{Look, Slot};
use crate::steal::Steal;
use crate::sync::{AtomicUsize, Ordering, alloc, dealloc};
use crate::teardown::drop_all;
use crate::ticket::Ticket;
use crate::{BATCH_LIMIT, CapacityError};

/// Where the slots are: what a handle needs to know of a [`Ring`].
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

    /// The slot of `ticket`.
    ///
    /// # Safety
    ///
    /// The ring lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn slot<'a>(self, ticket: Ticket) -> &'a Slot<T> {
        // SAFETY: a position is at most `mask`, and the ring has `mask + 1` slots.
        let slot = unsafe { self.slots.add(ticket.position(self.mask)) };
        // SAFETY: initialized by `Ring::try_new`, only ever shared, and alive as the caller says.
        unsafe { slot.as_ref() }
    }
}

/// The owner of the slots' memory, and of the items that are left at the end.
pub(crate) struct Ring<T> {
    /// As many initialized slots as the view says, made by `alloc` with the layout of that array.
    view: View<T>,
}

// SAFETY: the slots are shared by design, see `slot`; items move to the thread that takes them.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

/// What there is at the thieves' end.
#[must_use]
enum Oldest {
    /// An item; everything older is claimed.
    Item(Ticket),
    Nothing,
    /// An item that went to a larger ring.
    Moved(Ticket),
}

/// Why a thief went no further.
#[must_use]
pub(crate) enum Theft<R> {
    /// As it says.
    Done(Steal<R>),
    /// The items went to a larger ring.
    Moved,
}

impl<T> Ring<T> {
    /// A ring of `capacity` vacant slots, a power of two, the first of which waits for `origin`.
    pub(crate) fn try_new(capacity: usize, origin: Ticket) -> Result<Self, CapacityError> {
        assert!(capacity.is_power_of_two(), "a ring has 2^n slots");
        let too_large = CapacityError::TooLarge { requested: capacity };
        let layout = Layout::array::<Slot<T>>(capacity).map_err(|_| too_large)?;
        // SAFETY: the layout is not zero-sized: there is a slot, and it has a word.
        let raw = unsafe { alloc(layout) };
        let out_of_memory =
            CapacityError::OutOfMemory { requested: capacity, bytes: layout.size() };
        let slots = NonNull::new(raw.cast::<Slot<T>>()).ok_or(out_of_memory)?;
        let mask = capacity - 1;
        for ticket in (0..capacity).map(|n| origin.plus(n)) {
            // SAFETY: a position is within the array.
            let slot = unsafe { slots.add(ticket.position(mask)) };
            // SAFETY: fresh memory that nobody else knows.
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

    /// The slot of `ticket`.
    #[inline(always)]
    pub(crate) fn slot(&self, ticket: Ticket) -> &Slot<T> {
        // SAFETY: the ring is borrowed for as long as the slot.
        unsafe { self.view.slot(ticket) }
    }

    /// Where the oldest item is, from the thieves' hint on.
    ///
    /// The hint is behind if its writer was overtaken between its claim and its store. Whoever
    /// comes next walks over what is gone, at most once around the ring, and mends it.
    #[inline]
    fn oldest(&self, hint: &AtomicUsize) -> Oldest {
        // Ordering: relaxed. Any ticket that was ever stored here has all before it claimed, and
        // the slots say the rest.
        let mut ticket = Ticket::of(hint.load(Ordering::Relaxed));
        loop {
            match self.slot(ticket).look(ticket, self.capacity()) {
                Look::Full => return Oldest::Item(ticket),
                Look::Vacant => return Oldest::Nothing,
                Look::Moved => return Oldest::Moved(ticket),
                Look::Gone(next) => {
                    ticket = next;
                    hint.store(ticket.vacant(), Ordering::Relaxed);
                }
            }
        }
    }

    /// Claims `ticket` and tells the next thief where to begin. `None` if somebody was faster.
    ///
    /// # Safety
    ///
    /// All tickets before this one were claimed.
    #[inline]
    unsafe fn claim(&self, ticket: Ticket, hint: &AtomicUsize) -> Option<T> {
        let slot = self.slot(ticket);
        // SAFETY: 1. the caller says so. 2. `carry_off` follows below.
        if !unsafe { slot.claim(ticket) } {
            return None;
        }
        // Ordering: relaxed, see `oldest`.
        hint.store(ticket.plus(1).vacant(), Ordering::Relaxed);
        // SAFETY: claimed just above.
        Some(unsafe { slot.carry_off(ticket, self.capacity()) })
    }

    /// Takes the oldest item.
    #[inline]
    pub(crate) fn steal(&self, hint: &AtomicUsize) -> Theft<T> {
        match self.oldest(hint) {
            Oldest::Item(ticket) => {
                // SAFETY: `oldest` begins at a ticket before which all are claimed and goes past
                // claimed ones only.
                let item = unsafe { self.claim(ticket, hint) };
                Theft::Done(item.map_or(Steal::Retry, Steal::Success))
            }
            Oldest::Nothing => Theft::Done(Steal::Empty),
            Oldest::Moved(_) => Theft::Moved,
        }
    }

    /// Takes about half of the items, oldest first, at most [`BATCH_LIMIT`]; returns the newest of
    /// them and puts the others into `dest`, where it leaves room for `spare` more.
    ///
    /// If `spare` is one, there must be room for one item before: `dest` is asked about the second
    /// only.
    ///
    /// One claim an item. The owner pops without asking the thieves, so a claim of several at once
    /// could take what the owner has already taken back.
    pub(crate) fn steal_half(
        &self,
        hint: &AtomicUsize,
        dest: &impl Destination<T>,
        spare: usize,
    ) -> Theft<T> {
        let oldest = match self.oldest(hint) {
            Oldest::Item(ticket) => ticket,
            Oldest::Nothing => return Theft::Done(Steal::Empty),
            Oldest::Moved(_) => return Theft::Moved,
        };
        let half = self.half(oldest);
        // SAFETY: as in `steal`.
        let Some(mut newest) = (unsafe { self.claim(oldest, hint) }) else {
            return Theft::Done(Steal::Retry);
        };
        for ticket in (1..half).map(|n| oldest.plus(n)) {
            if !dest.has_room(spare) {
                break;
            }
            // SAFETY: the tickets up to this one were claimed just now, by this thread.
            let Some(item) = (unsafe { self.claim(ticket, hint) }) else {
                break;
            };
            dest.put(core::mem::replace(&mut newest, item));
        }
        Theft::Done(Steal::Success(newest))
    }

    /// Half of the items from `oldest` on, rounded up, at least one and at most [`BATCH_LIMIT`].
    ///
    /// A thief may take `n` if there are `2n - 1`, so few slots need a look: those that are only
    /// looked at cost the owner a cache miss all the same.
    fn half(&self, oldest: Ticket) -> usize {
        let may_take = |n: usize| {
            let last = oldest.plus(2 * n - 2);
            2 * n - 1 <= self.capacity() && self.slot(last).is_full(last)
        };
        if may_take(BATCH_LIMIT) {
            return BATCH_LIMIT;
        }
        // At least `least`, fewer than `more`.
        let (mut least, mut more) = (1, BATCH_LIMIT);
        while more - least > 1 {
            let middle = least.midpoint(more);
            *if may_take(middle) { &mut least } else { &mut more } = middle;
        }
        least
    }

    /// How many items there are, seen from the thieves' end.
    pub(crate) fn len(&self, hint: &AtomicUsize) -> usize {
        let (Oldest::Item(oldest) | Oldest::Moved(oldest)) = self.oldest(hint) else {
            return 0;
        };
        let holds = |len: usize| {
            let newest = oldest.plus(len - 1);
            len <= self.capacity() && self.slot(newest).was_full(newest)
        };
        // One item is there. Double until too many, then halve the doubt.
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

    /// Is there nothing to steal?
    pub(crate) fn is_empty(&self, hint: &AtomicUsize) -> bool {
        matches!(self.oldest(hint), Oldest::Nothing)
    }

    /// How many items an owner has whose next ticket is `bottom`.
    pub(crate) fn len_below(&self, bottom: Ticket, hint: &AtomicUsize) -> usize {
        match self.oldest(hint) {
            Oldest::Item(oldest) => bottom.distance_from(oldest).cast_unsigned(),
            Oldest::Nothing | Oldest::Moved(_) => 0,
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        /// Frees the slots, also when an item's drop panics.
        struct Free<T>(View<T>);
        impl<T> Drop for Free<T> {
            fn drop(&mut self) {
                for n in 0..self.0.capacity() {
                    // SAFETY: within the array.
                    let slot = unsafe { self.0.slots.add(n) };
                    // SAFETY: initialized by `try_new`, dropped only here.
                    unsafe { slot.drop_in_place() };
                }
                let layout = Layout::array::<Slot<T>>(self.0.capacity()).expect("as in try_new");
                // SAFETY: made by `alloc` with this layout in `try_new`, freed only here.
                unsafe { dealloc(self.0.slots.as_ptr().cast(), layout) };
            }
        }
        let free = Free(self.view);
        let mut tickets = (0..self.capacity()).map(Ticket::new);
        drop_all(|| {
            let Some(ticket) = tickets.next() else {
                return false;
            };
            // SAFETY: `self` is borrowed mutably, and this is its end.
            unsafe { self.slot(ticket).drop_item() };
            true
        });
        drop(free);
    }
}
