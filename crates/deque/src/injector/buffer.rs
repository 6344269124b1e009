//! The buffer in which a pusher of many items collects them before it claims cells.

use core::mem::MaybeUninit;

use super::segment::CELLS;
use crate::teardown::drop_all;

/// The maximum size of a buffer in bytes; it lives on the stack of the pusher. The value is a guess: moving
/// items that are too large for it takes longer than claiming a cell for each of them.
const MAX_BYTES: usize = 16 << 10;

/// Items that came out of an iterator and are not pushed yet. If the iterator panics, the items that are left
/// are dropped.
pub(super) struct PushBuffer<T> {
    /// The items from `next` up to `end` are initialized. The length is the largest possible claim.
    items: [MaybeUninit<T>; CELLS],
    next: usize,
    end: usize,
}

impl<T> PushBuffer<T> {
    /// Whether a buffer is small enough for the stack.
    pub(super) const FITS: bool = size_of::<Self>() <= MAX_BYTES;

    pub(super) const fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; CELLS], next: 0, end: 0 }
    }

    /// Fills the empty buffer with at most `limit` items of an iterator. Returns false if the iterator has
    /// ended.
    #[inline]
    pub(super) fn fill(&mut self, from: &mut impl Iterator<Item = T>, limit: usize) -> bool {
        debug_assert_eq!(self.len(), 0, "the items in the buffer would be leaked");
        (self.next, self.end) = (0, 0);
        for place in self.items.iter_mut().take(limit) {
            let Some(item) = from.next() else { return false };
            place.write(item);
            self.end += 1;
        }
        true
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.next
    }

    /// Takes the oldest item.
    #[inline]
    pub(super) fn take_oldest(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let place = &self.items[self.next];
        self.next += 1;
        // SAFETY: `fill` wrote the item, and it is read once: `next` has passed it.
        Some(unsafe { place.assume_init_read() })
    }
}

impl<T> Drop for PushBuffer<T> {
    fn drop(&mut self) {
        if self.len() > 0 {
            drop_all(|| self.take_oldest().is_some());
        }
    }
}
