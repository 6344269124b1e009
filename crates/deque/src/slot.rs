//! Who holds an item: the protocol between owner and thieves, one slot at a time.
//!
//! A slot is a word and a value. The word names a [`Ticket`] and what has become of it; every
//! transfer of an item is one atomic step on that word, so an item has one taker, whatever else
//! is going on. The word says *which* ticket, so a thief that slept through a lap of the ring
//! cannot take an item out of turn: its compare-exchange expects the old ticket's word. (The owner
//! may have popped the ticket and pushed another item under it meanwhile. That one is the oldest
//! now, and the thief reads it only once it has claimed it.)
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
//! Thieves claim in order: ticket `t` only once `t - 1` is claimed. Whatever is claimed is
//! therefore a prefix, and an owner whose newest item is claimed knows that nothing is left.

use core::mem::MaybeUninit;

use crate::order;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use crate::ticket::Ticket;

pub(crate) struct Slot<T> {
    /// See the table at [`Ticket`] for who writes what, when.
    word: AtomicUsize,
    /// Written by the owner while the word is vacant; read by whoever took the word from full:
    /// the owner after `take_back` or `evict`, a thief between claim and finish.
    value: UnsafeCell<MaybeUninit<T>>,
}

/// What a thief sees in the slot of a ticket.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The item is there to be claimed.
    Full,
    /// The ticket has not been pushed yet, or was popped again: there is nothing to steal.
    Vacant,
    /// The ticket was claimed; no ticket before this one can still be there.
    Gone(Ticket),
    /// The item went to a larger ring.
    Moved,
}

impl<T> Slot<T> {
    /// A slot that waits for this ticket.
    pub(crate) fn vacant(ticket: Ticket) -> Self {
        Self {
            word: AtomicUsize::new(ticket.vacant()),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Owner: may the item of `ticket` be written here?
    #[inline(always)]
    pub(crate) fn is_vacant(&self, ticket: Ticket) -> bool {
        self.word.load(order::slot_reuse()) == ticket.vacant()
    }

    /// Owner: puts the item of `ticket` here, for everyone to see.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `is_vacant(ticket)` was true, and the owner has not filled the slot since.
    #[inline(always)]
    pub(crate) unsafe fn fill(&self, ticket: Ticket, item: T) {
        self.value.with_mut(|value| {
            // SAFETY: nobody else touches the value while the word is vacant for a ticket that
            // the owner has not pushed: thieves read only what they claimed, which takes a full
            // word, and the one that emptied the slot had finished before it became vacant.
            unsafe { (*value).write(item) };
        });
        self.word.store(ticket.full(), order::slot_publish());
    }

    /// Owner: takes the item of `ticket` back, unless a thief has it.
    ///
    /// # Safety
    ///
    /// 1. The caller is the owner.
    /// 2. `ticket` is the newest that the owner has pushed and not taken back.
    #[inline(always)]
    pub(crate) unsafe fn take_back(&self, ticket: Ticket) -> Option<T> {
        // A swap, not a compare-exchange: it is a tenth faster where the word is what it should
        // be. `restore` mends the other case, which comes once for each time that thieves empty
        // the deque: the owner then knows better than to look again.
        //
        // Ordering: relaxed. The value is the owner's own writing.
        let word = self.word.swap(ticket.vacant(), Ordering::Relaxed);
        if word == ticket.full() {
            // SAFETY: the swap took the word from full, so the item is this caller's.
            return Some(unsafe { self.read() });
        }
        self.restore(ticket, word);
        None
    }

    /// Owner: puts back the thief's word that `take_back` has swapped away.
    #[cold]
    #[inline(never)]
    fn restore(&self, ticket: Ticket, word: usize) {
        if word == ticket.claimed() {
            // The thief is still reading and will store its finish mark, now or later; a failure
            // means that it has. In the meantime thieves saw a vacant slot, which is the truth:
            // this was the newest item, and all older ones are claimed.
            //
            // Ordering: relaxed. The mark that the next push looks for is the thief's own store.
            let _ = self.word.compare_exchange(
                ticket.vacant(),
                word,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        } else {
            // The thief has finished: the slot is vacant for the next lap, and the owner is the
            // only one who writes to it now. The next push will read this store of the owner's
            // instead of the thief's, so the thief's reading must be ordered before it here: the
            // owner's swap passes on what the thief released, and this load acquires it.
            self.word.load(order::slot_restore());
            self.word.store(word, Ordering::Relaxed);
        }
    }

    /// Owner: takes the item of `ticket` for good, to put it into another ring.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    pub(crate) unsafe fn evict(&self, ticket: Ticket) -> Option<T> {
        // Ordering: relaxed, for success and failure. The value is the owner's own writing, and
        // `ring_publish` orders the other ring.
        self.word
            .compare_exchange(ticket.full(), ticket.moved(), Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        // SAFETY: the exchange took the word from full, so the item is this caller's.
        Some(unsafe { self.read() })
    }

    /// Anyone: what has become of `ticket`, whose slot this is in a ring of `capacity` slots?
    #[inline]
    pub(crate) fn look(&self, ticket: Ticket, capacity: usize) -> Look {
        // Ordering: relaxed. Nothing is read on the strength of this; a claim looks again.
        let word = self.word.load(Ordering::Relaxed);
        if word == ticket.full() {
            return Look::Full;
        }
        if word == ticket.vacant() {
            return Look::Vacant;
        }
        Self::look_further(ticket, word, capacity)
    }

    #[cold]
    fn look_further(ticket: Ticket, word: usize, capacity: usize) -> Look {
        if word == ticket.moved() {
            return Look::Moved;
        }
        let found = Ticket::of(word);
        let ahead = found.distance_from(ticket);
        if ahead < 0 {
            // The thief of one lap before is still reading, so the owner has not come here yet; or
            // this ring was left before this ticket, and the caller looks for a newer one.
            Look::Vacant
        } else if ahead == 0 {
            Look::Gone(ticket.plus(1))
        } else {
            // The slot waits for `found`, so the ticket one lap before it was claimed, and with it
            // all that came earlier.
            Look::Gone(found.minus(capacity).plus(1))
        }
    }

    /// Anyone: is the item of `ticket` here right now?
    #[inline]
    pub(crate) fn is_full(&self, ticket: Ticket) -> bool {
        // Ordering: relaxed. Nothing is read on the strength of this.
        self.word.load(Ordering::Relaxed) == ticket.full()
    }

    /// Anyone: is the item of `ticket` here right now, or was it until the ring was left?
    pub(crate) fn was_full(&self, ticket: Ticket) -> bool {
        // Ordering: relaxed. Nothing is read on the strength of this.
        let word = self.word.load(Ordering::Relaxed);
        word == ticket.full() || word == ticket.moved()
    }

    /// Thief: claims the item of `ticket`, and is told whether it was the one who got it.
    ///
    /// # Safety
    ///
    /// 1. Ticket `ticket - 1` was claimed before, or is older than the deque.
    /// 2. If this returns true, the caller calls `carry_off` with the same ticket, once.
    #[inline]
    pub(crate) unsafe fn claim(&self, ticket: Ticket) -> bool {
        // Ordering: on failure relaxed, for nothing is read then.
        self.word
            .compare_exchange(
                ticket.full(),
                ticket.claimed(),
                order::slot_claim(),
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Thief: reads the item that it claimed and leaves the slot to the owner's next lap.
    ///
    /// # Safety
    ///
    /// `claim(ticket)` returned true to this thread, and this is the first call since. `capacity`
    /// is that of the ring.
    #[inline]
    pub(crate) unsafe fn carry_off(&self, ticket: Ticket, capacity: usize) -> T {
        // SAFETY: the claim took the word from full, so the item is this caller's.
        let item = unsafe { self.read() };
        self.word.store(ticket.plus(capacity).vacant(), order::slot_finish());
        item
    }

    /// Owner of a ring that nobody else knows: the ticket was claimed elsewhere.
    ///
    /// # Safety
    ///
    /// The ring has not been published.
    pub(crate) unsafe fn skip(&self, ticket: Ticket, capacity: usize) {
        // Ordering: relaxed. `ring_publish` orders it.
        self.word.store(ticket.plus(capacity).vacant(), Ordering::Relaxed);
    }

    /// The last handle: drops the item, if one is here.
    ///
    /// # Safety
    ///
    /// Nobody else has access to the slot, and nobody will use it again.
    pub(crate) unsafe fn drop_item(&self) {
        // Ordering: relaxed. Exclusive access came with an ordering of its own.
        let word = self.word.load(Ordering::Relaxed);
        if Ticket::is_full(word) {
            self.word.store(Ticket::of(word).vacant(), Ordering::Relaxed);
            // SAFETY: the word was full and the caller has the slot to itself.
            drop(unsafe { self.read() });
        }
    }

    /// # Safety
    ///
    /// The caller has taken the word from full, so that the item is its own, and reads it once.
    #[inline(always)]
    unsafe fn read(&self) -> T {
        let value = self.value.with(|value| {
            // SAFETY: the caller alone has taken the word from full, so nobody writes here.
            unsafe { value.read() }
        });
        // SAFETY: a full word means that `fill` wrote the value; the caller reads it once.
        unsafe { value.assume_init() }
    }
}
