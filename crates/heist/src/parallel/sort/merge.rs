//! Merges two sorted runs into another slice, with several workers.
//!
//! The longer run is split in the middle, the other one where that middle element would be inserted, and the
//! parts are merged independently. Each part of the destination is filled from its own parts of the runs, whether
//! their merge ends, panics or never starts; so the whole destination is always filled.

use std::mem::{self, MaybeUninit};

use super::Compare;
use super::walk::Walk;
use crate::api::join::join;

/// A merge that has not begun: all places of `left` and `right` hold elements. If it is dropped, it moves them to
/// `dest` unmerged.
pub(super) struct Merge<'a, T> {
    left: &'a mut [MaybeUninit<T>],
    right: &'a mut [MaybeUninit<T>],
    /// As long as both runs together.
    dest: &'a mut [MaybeUninit<T>],
}

impl<'a, T> Merge<'a, T> {
    /// Returns the merge of the two parts of a slice.
    ///
    /// # Safety
    ///
    /// All places of `runs` hold elements. When the merge is over, in whatever way, all places of `dest` hold the
    /// same elements, each once; of the two copies of an element, the caller uses only one from then on.
    ///
    /// # Panics
    ///
    /// Panics if the slices differ in length, before anything is moved.
    pub(super) unsafe fn new(
        runs: &'a mut [MaybeUninit<T>],
        middle: usize,
        dest: &'a mut [MaybeUninit<T>],
    ) -> Self {
        assert_eq!(runs.len(), dest.len());
        let (left, right) = runs.split_at_mut(middle);
        Self { left, right, dest }
    }

    /// Merges in parts of at most `grain` elements.
    pub(super) fn run(mut self, compare: &impl Compare<T>, grain: usize)
    where
        T: Send,
    {
        if self.dest.len() <= grain {
            return self.begin().run(compare);
        }
        let (low, high) = self.split(compare);
        join(|| low.run(compare, grain), || high.run(compare, grain));
    }

    /// Splits the merge in two: no element of the first part goes after any of the second. Each part has at least
    /// about a quarter of the elements, because it has half of the longer run.
    fn split(mut self, compare: &impl Compare<T>) -> (Self, Self) {
        // SAFETY: every place of a run holds an element.
        let left = unsafe { elements(self.left) };
        // SAFETY: every place of a run holds an element.
        let right = unsafe { elements(self.right) };
        let (in_left, in_right) = if left.len() > right.len() {
            let middle = left.len() / 2;
            let pivot = &left[middle];
            (middle, right.partition_point(|element| compare.is_less(element, pivot)))
        } else {
            let middle = right.len() / 2;
            let pivot = &right[middle];
            (left.partition_point(|element| !compare.is_less(pivot, element)), middle)
        };
        // From here on nothing panics: each split is within its run.
        let (left, left_of_high) = mem::take(&mut self.left).split_at_mut(in_left);
        let (right, right_of_high) = mem::take(&mut self.right).split_at_mut(in_right);
        let (dest, dest_of_high) = mem::take(&mut self.dest).split_at_mut(in_left + in_right);
        let high = Self { left: left_of_high, right: right_of_high, dest: dest_of_high };
        (Self { left, right, dest }, high)
    }

    /// Takes everything out of this merge, in order to merge it on this thread.
    fn begin(&mut self) -> Walk<'a, T> {
        let (left, right) = (mem::take(&mut self.left), mem::take(&mut self.right));
        let dest = mem::take(&mut self.dest);
        // SAFETY: all places hold elements, which this merge does not own any more. `dest` is as long as both runs.
        unsafe { Walk::new(left, right, dest) }
    }
}

impl<T> Drop for Merge<'_, T> {
    fn drop(&mut self) {
        drop(self.begin());
    }
}

/// Returns the elements in a row of places.
///
/// # Safety
///
/// Every place holds an element.
unsafe fn elements<T>(places: &[MaybeUninit<T>]) -> &[T] {
    // SAFETY: a place has the layout of its element, and all of them are initialized.
    unsafe { &*(std::ptr::from_ref(places) as *const [T]) }
}
