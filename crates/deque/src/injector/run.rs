//! What a thief has claimed, and how it reads it.

use core::ptr::NonNull;

use super::segment::Segment;
use crate::teardown::drop_all;

/// Cells of one segment, side by side, that one thief has claimed.
#[must_use]
pub(super) struct Run<T> {
    /// Live until the run is left.
    pub(super) segment: NonNull<Segment<T>>,
    /// The oldest cell.
    pub(super) offset: usize,
    pub(super) count: usize,
}

impl<T> Run<T> {
    #[inline(always)]
    pub(super) fn segment(&self) -> &Segment<T> {
        // SAFETY: claimed cells keep their segment alive until they are left.
        unsafe { self.segment.as_ref() }
    }

    /// The item of the `n`-th cell, from the oldest on.
    ///
    /// # Safety
    ///
    /// `n < count`, and the cell was not read before.
    #[inline(always)]
    pub(super) unsafe fn read(&self, n: usize) -> T {
        // SAFETY: a run lies within its segment.
        let cell = unsafe { self.segment().cell(self.offset + n) };
        // SAFETY: claimed by this thief, and read once, as the caller says.
        unsafe { cell.read() }
    }

    /// # Safety
    ///
    /// All cells of the run were read; it is not used again.
    #[inline(always)]
    pub(super) unsafe fn leave(&self) {
        // SAFETY: as the caller says.
        unsafe { Segment::leave(self.segment, self.count) };
    }
}

/// A run that is being moved elsewhere, from the newest on. What has not been moved when it ends,
/// because the destination panicked, is dropped.
pub(super) struct Batch<T> {
    run: Run<T>,
    /// How many cells are still to be read: the oldest.
    pub(super) unread: usize,
}

impl<T> Batch<T> {
    /// Waits for the pushers of all cells first, in the order in which they came, so that the cache
    /// lines come as the cache expects them.
    pub(super) fn begin(run: Run<T>) -> Self {
        for n in 0..run.count {
            // SAFETY: a run lies within its segment.
            unsafe { run.segment().cell(run.offset + n) }.wait();
        }
        Self { unread: run.count, run }
    }

    /// The newest item of those that are still to be read, of which there must be one.
    #[inline]
    pub(super) fn take_newest(&mut self) -> T {
        assert!(self.unread > 0, "a batch is read once");
        self.unread -= 1;
        // SAFETY: below the count; and `unread` has passed it, so it is read once.
        unsafe { self.run.read(self.unread) }
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        drop_all(|| {
            let some = self.unread > 0;
            some.then(|| self.take_newest());
            some
        });
        // SAFETY: all was read, and the batch ends here.
        unsafe { self.run.leave() };
    }
}
