//! What a pusher of many items has in hand.

use core::mem::MaybeUninit;

use super::segment::CELLS;
use crate::teardown::drop_all;

/// The most bytes of a hand, which is on the stack of its pusher. A guess: items that do not fit take
/// longer to move than a claim of their own takes.
const MOST_BYTES: usize = 16 << 10;

/// Items that came out of an iterator and are not pushed yet. What is left when it ends, because
/// the iterator panicked, is dropped.
pub(super) struct Hand<T> {
    /// Those from `next` up to `end` are there. As many as a claim can have.
    items: [MaybeUninit<T>; CELLS],
    next: usize,
    end: usize,
}

impl<T> Hand<T> {
    /// Is one small enough for the stack?
    pub(super) const FITS: bool = size_of::<Self>() <= MOST_BYTES;

    pub(super) const fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; CELLS], next: 0, end: 0 }
    }

    /// Takes items from an iterator into an empty hand, at most `most`. Are there more?
    #[inline]
    pub(super) fn fill(&mut self, from: &mut impl Iterator<Item = T>, most: usize) -> bool {
        debug_assert_eq!(self.len(), 0, "what is in hand would be forgotten");
        (self.next, self.end) = (0, 0);
        for place in self.items.iter_mut().take(most) {
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

    #[inline]
    pub(super) fn take_oldest(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let place = &self.items[self.next];
        self.next += 1;
        // SAFETY: written by `fill`, and read once: `next` has passed it.
        Some(unsafe { place.assume_init_read() })
    }
}

impl<T> Drop for Hand<T> {
    fn drop(&mut self) {
        if self.len() > 0 {
            drop_all(|| self.take_oldest().is_some());
        }
    }
}
