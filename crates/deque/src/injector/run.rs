//! What a pusher or a thief has claimed, and how a thief reads it.

use core::ptr::NonNull;

use super::segment::{Cell, Segment};
use super::stash::Stash;
use crate::teardown::drop_all;

/// Cells of one segment, side by side, that one pusher or one thief has claimed.
#[must_use]
pub(super) struct Run<T> {
    /// Live until the pusher has written all cells of the run, or the thief has left it.
    pub(super) segment: NonNull<Segment<T>>,
    /// The oldest cell.
    pub(super) offset: usize,
    pub(super) count: usize,
}

impl<T> Run<T> {
    #[inline(always)]
    pub(super) fn segment(&self) -> &Segment<T> {
        // SAFETY: claimed cells keep their segment alive until they are written, or left.
        unsafe { self.segment.as_ref() }
    }

    /// The `n`-th cell, from the oldest on.
    ///
    /// # Safety
    ///
    /// `n < count`.
    #[inline(always)]
    pub(super) unsafe fn cell(&self, n: usize) -> &Cell<T> {
        // SAFETY: a run lies within its segment.
        unsafe { self.segment().cell(self.offset + n) }
    }

    /// Thief: is done with it. The last of a segment takes the segment to the stash.
    ///
    /// # Safety
    ///
    /// All cells of the run were read; it is not used again.
    #[inline(always)]
    pub(super) unsafe fn leave(&self, stash: &Stash<T>) {
        // SAFETY: as the caller says.
        if unsafe { Segment::leave(self.segment, self.count) } {
            // SAFETY: we were the last.
            unsafe { stash.give(self.segment) };
        }
    }
}

/// A run that is being moved elsewhere, from the newest on. What has not been moved when it ends,
/// because the destination panicked, is dropped.
pub(super) struct Batch<'a, T> {
    run: Run<T>,
    /// Where the segment goes if the run is the last of it.
    stash: &'a Stash<T>,
    /// How many cells are still to be read: the oldest.
    unread: usize,
}

impl<'a, T> Batch<'a, T> {
    /// Waits for the pushers of all cells first, in the order in which they came, so that the cache
    /// lines come as the cache expects them.
    pub(super) fn begin(run: Run<T>, stash: &'a Stash<T>) -> Self {
        for n in 0..run.count {
            // SAFETY: below the count.
            unsafe { run.cell(n) }.wait();
        }
        Self { unread: run.count, run, stash }
    }

    /// How many items are still to be read.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.unread
    }

    /// The newest item of those that are still to be read.
    #[inline]
    pub(super) fn take_newest(&mut self) -> Option<T> {
        self.unread = self.unread.checked_sub(1)?;
        // SAFETY: below the count.
        let cell = unsafe { self.run.cell(self.unread) };
        // SAFETY: claimed, waited for in `begin`, and read once: `unread` has passed it.
        Some(unsafe { cell.take() })
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        if self.unread > 0 {
            drop_all(|| self.take_newest().is_some());
        }
        // SAFETY: all was read, and the batch ends here.
        unsafe { self.run.leave(self.stash) };
    }
}
