//! The pushers' end of an injector: pushing one item, and many at once.

use core::ptr::NonNull;

use super::Injector;
use super::buffer::PushBuffer;
use super::claim::Claim;
use super::segment::{CELLS, Cell, LAP, Segment};
use crate::order;
use crate::sync::{Backoff, Ordering};

impl<T> Injector<T> {
    /// Pushes an item.
    ///
    /// ```
    /// let injector = heist_deque::Injector::new();
    /// injector.push("work");
    /// assert_eq!(injector.len(), 1);
    /// ```
    pub fn push(&self, item: T) {
        let mut spare = None;
        let claim = self.reserve(1, &mut spare);
        // SAFETY: a claim has at least one cell.
        let cell = unsafe { claim.cell(0) };
        // SAFETY: this thread claimed the cell above, and has not written it yet.
        unsafe { Cell::write(NonNull::from(cell), item) };
        self.return_spare(spare);
    }

    /// Pushes many items, in their order. This makes one claim for all items that go into the same segment,
    /// where [`push`](Self::push) makes one for each item. Items of other pushers may come between two
    /// claims.
    ///
    /// The iterator may be slow, panic, or use this injector: up to 63 items are taken from it before the
    /// first of them is pushed. If it panics, the items that it has returned are pushed or dropped. (Items
    /// of more than about 250 bytes are pushed one by one.)
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
        if PushBuffer::<T>::FITS {
            self.push_buffered(items);
        } else {
            items.for_each(|item| self.push(item));
        }
    }

    /// Pushes many items through a buffer. This is a function of its own so that a buffer that is too large
    /// never gets onto the stack.
    fn push_buffered(&self, mut items: impl Iterator<Item = T>) {
        let mut buffer = PushBuffer::new();
        loop {
            // The caller's code runs only here, while nothing is claimed.
            let more = buffer.fill(&mut items, self.cells_left());
            self.flush(&mut buffer);
            if !more {
                return;
            }
        }
    }

    /// Pushes all items of the buffer.
    fn flush(&self, buffer: &mut PushBuffer<T>) {
        let mut spare = None;
        while buffer.len() > 0 {
            let claim = self.reserve(buffer.len(), &mut spare);
            for n in 0..claim.count {
                let item = buffer.take_oldest().expect("a claim is not longer than requested");
                // SAFETY: `n` is below the count. The segment is alive, because this cell is not written yet.
                let cell = unsafe { claim.cell(n) };
                // SAFETY: this thread claimed the cell above, and has not written it yet.
                unsafe { Cell::write(NonNull::from(cell), item) };
            }
        }
        self.return_spare(spare);
    }

    /// Claims cells of one segment at the tail: at least one, at most `limit`. The caller writes all of them
    /// without delay, because thieves may be waiting for them.
    ///
    /// `spare` is the segment that follows. It is taken from the stash before the last cell of a segment is
    /// claimed. If the claim then does not include the last cell, the segment stays in `spare`, and the
    /// caller returns it after writing the cells.
    #[inline(always)]
    fn reserve(&self, limit: usize, spare: &mut Option<NonNull<Segment<T>>>) -> Claim<T> {
        let mut backoff = Backoff::new();
        loop {
            let index = self.tail.index.load(order::tail_follow());
            let offset = index % LAP;
            if offset == CELLS {
                backoff.wait();
                continue;
            }
            let count = limit.min(CELLS - offset);
            if offset + count == CELLS && spare.is_none() {
                // Before the last cell is claimed, so that no other thread waits for the allocator.
                *spare = Some(self.stash.take());
            }
            // Ordering: relaxed. The segment is visible because of `tail_follow` on the index. If the
            // compare-exchange below succeeds, this load cannot have seen a later segment: the thread that
            // stores a later segment has acquired this claim, and `tail_claim` orders this load before it.
            let segment = self.tail.segment.load(Ordering::Relaxed);
            let exchange = self.tail.index.compare_exchange_weak(
                index,
                index.wrapping_add(count),
                order::tail_claim(),
                Ordering::Relaxed,
            );
            if exchange.is_err() {
                backoff.spin();
                continue;
            }
            // SAFETY: the segment of an end is never null.
            let segment = unsafe { NonNull::new_unchecked(segment) };
            let claim = Claim { segment, offset, count };
            if offset + count == CELLS {
                let next = spare.take().expect("taken from the stash above");
                claim.segment().link(next);
                self.tail.cross_boundary(
                    next,
                    index.wrapping_add(count - 1),
                    order::tail_advance(),
                );
            }
            return claim;
        }
    }

    /// Puts a spare segment that was not needed into the stash.
    #[inline]
    fn return_spare(&self, spare: Option<NonNull<Segment<T>>>) {
        if let Some(spare) = spare {
            // SAFETY: no other thread has seen the segment.
            unsafe { self.stash.put(spare) };
        }
    }

    /// Estimates how many cells the tail's segment has left; at the boundary, how many the next segment has.
    fn cells_left(&self) -> usize {
        // Ordering: relaxed. This is an estimate of what can be claimed; the claim decides.
        match CELLS - self.tail.index.load(Ordering::Relaxed) % LAP {
            0 => CELLS,
            left => left,
        }
    }
}
