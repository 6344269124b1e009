//! The cells that a pusher or a thief has claimed, and how a thief reads them.

use core::ptr::NonNull;

use super::segment::{Cell, Segment};
use super::stash::Stash;
use crate::teardown::drop_all;

/// Adjacent cells of one segment that one pusher or one thief has claimed. There is at least one.
#[must_use]
pub(super) struct Claim<T> {
    /// Alive until the pusher has written all claimed cells, or the thief has left the segment.
    pub(super) segment: NonNull<Segment<T>>,
    /// The offset of the oldest cell.
    pub(super) offset: usize,
    /// The number of cells.
    pub(super) count: usize,
}

impl<T> Claim<T> {
    #[inline(always)]
    pub(super) fn segment(&self) -> &Segment<T> {
        // SAFETY: claimed cells keep their segment alive until the pusher has written them or the thief has
        // left the segment.
        unsafe { self.segment.as_ref() }
    }

    /// Returns the `n`-th cell, where 0 is the oldest.
    ///
    /// # Safety
    ///
    /// `n < count`.
    #[inline(always)]
    pub(super) unsafe fn cell(&self, n: usize) -> &Cell<T> {
        // SAFETY: the claimed cells are within the segment.
        unsafe { self.segment().cell(self.offset + n) }
    }

    /// Thief: gives the claim up. The last thief of a segment moves the segment to the stash.
    ///
    /// # Safety
    ///
    /// The thief has read all claimed cells, and does not use the claim again.
    #[inline(always)]
    pub(super) unsafe fn leave(&self, stash: &Stash<T>) {
        // SAFETY: the claim keeps the segment alive, and the caller has read `count` cells of it.
        if unsafe { Segment::leave(self.segment, self.count) } {
            // SAFETY: this thread was the last to leave, so no other thread uses the segment.
            unsafe { stash.put(self.segment) };
        }
    }
}

/// Claimed items that are being moved elsewhere, the newest first. If the destination panics, the items that
/// have not been moved are dropped.
pub(super) struct Batch<'a, T> {
    claim: Claim<T>,
    /// Takes the segment if this thief is the last to leave it.
    stash: &'a Stash<T>,
    /// How many cells are still to be read. These are the oldest ones.
    unread: usize,
}

impl<'a, T> Batch<'a, T> {
    /// Waits until the pushers have written all claimed cells. The oldest cell comes first, so that the
    /// processor's prefetcher recognizes the sequence of cache lines.
    pub(super) fn begin(claim: Claim<T>, stash: &'a Stash<T>) -> Self {
        for n in 0..claim.count {
            // SAFETY: `n` is below the count.
            unsafe { claim.cell(n) }.wait();
        }
        Self { unread: claim.count, claim, stash }
    }

    /// Returns how many items are still to be read.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.unread
    }

    /// Takes the newest item of those that are still to be read.
    #[inline]
    pub(super) fn take_newest(&mut self) -> Option<T> {
        self.unread = self.unread.checked_sub(1)?;
        // SAFETY: `unread` is below the count.
        let cell = unsafe { self.claim.cell(self.unread) };
        // SAFETY: this thread has claimed the cell, `begin` has waited for it, and it is read once, because
        // `unread` has passed it.
        Some(unsafe { cell.take() })
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        if self.unread > 0 {
            drop_all(|| self.take_newest().is_some());
        }
        // SAFETY: all cells have been read, and the claim is not used again.
        unsafe { self.claim.leave(self.stash) };
    }
}
