//! The pushers' end: how items come in, one by one and many at once.

use core::ptr::NonNull;

use super::Injector;
use super::hand::Hand;
use super::run::Run;
use super::segment::{CELLS, Cell, LAP, Segment};
use crate::order;
use crate::sync::{Backoff, Ordering};

impl<T> Injector<T> {
    /// Adds an item.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// injector.push("work");
    /// assert_eq!(injector.len(), 1);
    /// ```
    pub fn push(&self, item: T) {
        let mut spare = None;
        let run = self.reserve(1, &mut spare);
        // SAFETY: a run has a cell.
        let cell = unsafe { run.cell(0) };
        // SAFETY: claimed above, and not yet written.
        unsafe { Cell::write(NonNull::from_ref(cell), item) };
        self.give_up(spare);
    }

    /// Adds many items, in their order. Takes one claim for the items of a segment, where
    /// [`push`](Self::push) takes one for each; the items of other pushers may come between claims.
    ///
    /// The iterator may take its time, panic, or use this injector: up to 63 items are taken from it
    /// before the first of them is pushed. If it panics, the items that it has given are pushed or
    /// dropped. (Items of more than about 250 bytes are pushed one by one.)
    ///
    /// ```
    /// use heist_deque::{Injector, Steal};
    ///
    /// let injector = Injector::new();
    /// injector.push_batch(1..=100);
    /// assert_eq!(injector.len(), 100);
    /// assert_eq!(injector.steal(), Steal::Success(1));
    /// assert_eq!(injector.steal(), Steal::Success(2));
    /// ```
    pub fn push_batch(&self, items: impl IntoIterator<Item = T>) {
        let items = items.into_iter();
        if Hand::<T>::FITS {
            self.push_by_hand(items);
        } else {
            items.for_each(|item| self.push(item));
        }
    }

    /// As `push_batch`; apart from it, so that a hand that is too large is on no stack.
    fn push_by_hand(&self, mut items: impl Iterator<Item = T>) {
        let mut hand = Hand::new();
        loop {
            // The caller's code runs here, while nothing is claimed, and nowhere else.
            let more = hand.fill(&mut items, self.room());
            self.push_hand(&mut hand);
            if !more {
                return;
            }
        }
    }

    /// Pushes all that is in hand.
    fn push_hand(&self, hand: &mut Hand<T>) {
        let mut spare = None;
        while hand.len() > 0 {
            let run = self.reserve(hand.len(), &mut spare);
            for n in 0..run.count {
                let item = hand.take_oldest().expect("a run is no longer than was asked for");
                // SAFETY: below the count. The segment is live: this cell is not written.
                let cell = unsafe { run.cell(n) };
                // SAFETY: claimed above, and not yet written.
                unsafe { Cell::write(NonNull::from_ref(cell), item) };
            }
        }
        self.give_up(spare);
    }

    /// Claims cells at the tail, at least one, at most `most`, of one segment. The caller writes all of
    /// them, with nothing in between that others should not wait for.
    ///
    /// `spare` is the segment to come after, taken if the last cell may be claimed and left there if it
    /// was not: the caller gives it up when the cells are written.
    #[inline(always)]
    fn reserve(&self, most: usize, spare: &mut Option<NonNull<Segment<T>>>) -> Run<T> {
        let mut backoff = Backoff::new();
        loop {
            let index = self.tail.index.load(order::tail_follow());
            let offset = index % LAP;
            if offset == CELLS {
                backoff.wait();
                continue;
            }
            let count = most.min(CELLS - offset);
            if offset + count == CELLS && spare.is_none() {
                // Before the last cell is claimed, so that nobody waits for the allocator.
                *spare = Some(self.stash.take());
            }
            // Ordering: relaxed. `tail_follow` on the index has brought the segment with it. A later
            // segment is not seen here if the claim below succeeds: whoever stores it has acquired
            // that claim, which `tail_claim` orders behind this load.
            let segment = self.tail.segment.load(Ordering::Relaxed);
            let claim = self.tail.index.compare_exchange_weak(
                index,
                index.wrapping_add(count),
                order::tail_claim(),
                Ordering::Relaxed,
            );
            if claim.is_err() {
                backoff.yield_line();
                continue;
            }
            // SAFETY: an end's segment is never null.
            let segment = unsafe { NonNull::new_unchecked(segment) };
            let run = Run { segment, offset, count };
            if offset + count == CELLS {
                let next = spare.take().expect("taken above");
                run.segment().link(next);
                self.tail.cross(next, index.wrapping_add(count - 1), order::tail_advance());
            }
            return run;
        }
    }

    /// A spare segment that was not needed.
    #[inline]
    fn give_up(&self, spare: Option<NonNull<Segment<T>>>) {
        if let Some(spare) = spare {
            // SAFETY: nobody else has seen it.
            unsafe { self.stash.give(spare) };
        }
    }

    /// How many cells the tail's segment has left, as it looks; on the border, those of the next.
    fn room(&self) -> usize {
        // Ordering: relaxed. It is a guess at what a claim can have; the claim decides.
        match CELLS - self.tail.index.load(Ordering::Relaxed) % LAP {
            0 => CELLS,
            left => left,
        }
    }
}
