//! The slot: the protocol between the owner and the thieves, for one item at a time.
//!
//! A slot is a word and a value. The word names a [`Ticket`] and the state of that ticket. Every transfer of
//! an item is one atomic step on that word, so exactly one thread takes the item, whatever other threads do.
//! Because the word names the ticket, a thief that was suspended for a whole lap of the ring cannot take an
//! item out of turn: its compare-exchange expects the word of the old ticket. (The owner may have popped the
//! ticket and pushed another item with it in the meantime. That item is now the oldest one, and the thief
//! reads it only after it has claimed it.)
//!
//! ```text
//!                 fill (owner)                 claim (thief)
//!   vacant(t) ------------------> full(t) ------------------> claimed(t)
//!       ^                          |   |                          |
//!       +--- take_back (owner) ----+   |                          | carry_off (thief)
//!                                      | evict (owner)            v
//!                                      +-------> moved(t)    vacant(t + capacity)
//! ```
//!
//! Thieves claim in order: a thief claims ticket `t` only after `t - 1` is claimed. The claimed tickets are
//! therefore a prefix, and an owner whose newest item is claimed knows that nothing is left.

use core::mem::MaybeUninit;

use crate::order;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use crate::ticket::Ticket;

/// A place for one item of a ring.
pub(crate) struct Slot<T> {
    /// The state of the slot. The list at [`Ticket`] says which thread writes which word, and when.
    word: AtomicUsize,
    /// The item. The owner writes it while the word is vacant. The thread that changed the word from full
    /// reads it: the owner in `take_back` or `evict`, a thief between its claim and its finish mark.
    value: UnsafeCell<MaybeUninit<T>>,
}

/// What a thief finds in the slot of a ticket.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// The item can be claimed.
    Full,
    /// The ticket has not been pushed yet, or was popped again. There is nothing to steal.
    Vacant,
    /// The ticket is claimed, and so is every ticket before `next`.
    Claimed { next: Ticket },
    /// The item is in a larger ring.
    Moved,
}

impl<T> Slot<T> {
    /// Returns a slot that is vacant for this ticket.
    pub(crate) fn vacant(ticket: Ticket) -> Self {
        Self {
            word: AtomicUsize::new(ticket.vacant()),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Owner: returns whether the item of `ticket` may be written here.
    #[inline(always)]
    pub(crate) fn is_vacant(&self, ticket: Ticket) -> bool {
        self.word.load(order::slot_reuse()) == ticket.vacant()
    }

    /// Owner: writes the item of `ticket` and publishes it to the thieves.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `is_vacant(ticket)` was true, and the owner has not filled the slot since.
    #[inline(always)]
    pub(crate) unsafe fn fill(&self, ticket: Ticket, item: T) {
        self.value.with_mut(|value| {
            // SAFETY: no other thread accesses the value while the word is vacant for a ticket that the
            // owner has not pushed. Thieves read only what they have claimed, which requires a full word,
            // and the thief that emptied the slot had finished before the slot became vacant.
            unsafe { (*value).write(item) };
        });
        self.word.store(ticket.full(), order::slot_publish());
    }

    /// Owner: takes the item of `ticket` back, unless a thief has claimed it.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `ticket` is the newest that the owner has pushed and not taken back.
    #[inline(always)]
    pub(crate) unsafe fn take_back(&self, ticket: Ticket) -> Option<T> {
        // A swap instead of a compare-exchange: it is a tenth faster if the word is full. Otherwise
        // `restore` repairs the word. That happens only once each time thieves empty the deque, because
        // the owner then remembers that nothing is left.
        //
        // Ordering: relaxed. The owner wrote the value itself.
        let word = self.word.swap(ticket.vacant(), Ordering::Relaxed);
        if word == ticket.full() {
            // SAFETY: the swap changed the word from full, so the item belongs to the caller.
            return Some(unsafe { self.read() });
        }
        self.restore(ticket, word);
        None
    }

    /// Owner: puts back the thief's word that `take_back` swapped away.
    #[cold]
    #[inline(never)]
    fn restore(&self, ticket: Ticket, word: usize) {
        if word == ticket.claimed() {
            // The thief was still reading at the swap and stores its finish mark later. A failure means
            // that it has already done so. In the meantime thieves saw a vacant slot, which is correct:
            // this was the newest item, and all older ones are claimed.
            //
            // Ordering: relaxed. The next push waits for the finish mark, which is the thief's own store.
            let _ = self.word.compare_exchange(
                ticket.vacant(),
                word,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        } else {
            // The thief has finished: the slot is vacant for the next lap, and only the owner writes to
            // it now. The next push reads the store below instead of the thief's store, so the thief's
            // read of the value must be ordered before this store. The owner's swap continues the release
            // sequence of the thief's store, and this load acquires it.
            self.word.load(order::slot_restore());
            self.word.store(word, Ordering::Relaxed);
        }
    }

    /// Owner: takes the item of `ticket` out of this ring, to move it to another ring. Returns `None` if the
    /// slot does not hold that item.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    pub(crate) unsafe fn evict(&self, ticket: Ticket) -> Option<T> {
        // Ordering: relaxed, for success and failure. The owner wrote the value itself, and
        // `ring_publish` orders the other ring.
        self.word
            .compare_exchange(ticket.full(), ticket.moved(), Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        // SAFETY: the exchange changed the word from full, so the item belongs to the caller.
        Some(unsafe { self.read() })
    }

    /// Any thread: returns the state of `ticket`, whose slot this is in a ring of `capacity` slots.
    #[inline]
    pub(crate) fn look(&self, ticket: Ticket, capacity: usize) -> SlotState {
        // Ordering: relaxed. No value is read because of this load; a claim checks the word again.
        let word = self.word.load(Ordering::Relaxed);
        if word == ticket.full() {
            return SlotState::Full;
        }
        if word == ticket.vacant() {
            return SlotState::Vacant;
        }
        Self::look_further(ticket, word, capacity)
    }

    /// The states that `look` finds rarely.
    #[cold]
    fn look_further(ticket: Ticket, word: usize, capacity: usize) -> SlotState {
        if word == ticket.moved() {
            return SlotState::Moved;
        }
        let found = Ticket::of(word);
        let ahead = found.distance_from(ticket);
        if ahead < 0 {
            // Either the thief of the previous lap is still reading, so the owner has not pushed this
            // ticket yet; or the owner left this ring before this ticket, and the caller will go on to
            // the newer ring.
            SlotState::Vacant
        } else if ahead == 0 {
            SlotState::Claimed { next: ticket.plus(1) }
        } else {
            // The slot is at `found` already, so the ticket one lap before `found` is claimed, and so are
            // all earlier tickets.
            SlotState::Claimed { next: found.minus(capacity).plus(1) }
        }
    }

    /// Any thread: returns whether the item of `ticket` is here at this moment.
    #[inline]
    pub(crate) fn is_full(&self, ticket: Ticket) -> bool {
        // Ordering: relaxed. No value is read because of this load.
        self.word.load(Ordering::Relaxed) == ticket.full()
    }

    /// Any thread: returns whether the item of `ticket` is here at this moment, or was here until the owner
    /// moved it to a larger ring.
    pub(crate) fn was_full(&self, ticket: Ticket) -> bool {
        // Ordering: relaxed. No value is read because of this load.
        let word = self.word.load(Ordering::Relaxed);
        word == ticket.full() || word == ticket.moved()
    }

    /// Thief: tries to claim the item of `ticket`. Returns whether this thread got it.
    ///
    /// # Safety
    ///
    /// 1. Ticket `ticket - 1` has been claimed, or is older than the deque.
    /// 2. If this returns true, the caller calls `carry_off` with the same ticket exactly once.
    #[inline]
    pub(crate) unsafe fn claim(&self, ticket: Ticket) -> bool {
        // Ordering: relaxed on failure, because no value is read then.
        self.word
            .compare_exchange(
                ticket.full(),
                ticket.claimed(),
                order::slot_claim(),
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Thief: reads the item that it claimed and makes the slot vacant for the owner's next lap.
    ///
    /// # Safety
    ///
    /// 1. `claim(ticket)` returned true on this thread, and this is the first call since.
    /// 2. `capacity` is that of the ring.
    #[inline]
    pub(crate) unsafe fn carry_off(&self, ticket: Ticket, capacity: usize) -> T {
        // SAFETY: the claim changed the word from full, so the item belongs to the caller.
        let item = unsafe { self.read() };
        self.word.store(ticket.plus(capacity).vacant(), order::slot_finish());
        item
    }

    /// Owner: marks `ticket` as already claimed, in a new ring, because a thief claimed it in the old ring.
    ///
    /// # Safety
    ///
    /// The ring has not been published.
    pub(crate) unsafe fn skip(&self, ticket: Ticket, capacity: usize) {
        // Ordering: relaxed. `ring_publish` orders this store.
        self.word.store(ticket.plus(capacity).vacant(), Ordering::Relaxed);
    }

    /// Reads the item.
    ///
    /// # Safety
    ///
    /// The caller changed the word from full, so that the item belongs to it, and calls this once.
    #[inline(always)]
    unsafe fn read(&self) -> T {
        let value = self.value.with(|value| {
            // SAFETY: only the caller changed the word from full, so no other thread writes here.
            unsafe { value.read() }
        });
        // SAFETY: the word was full, so `fill` wrote the value, and the caller reads it once.
        unsafe { value.assume_init() }
    }
}
