//! Two sorted runs made one, in another place, by several workers at once.
//!
//! The longer run is cut in the middle, the other where its elements would be put, and the parts are
//! merged apart from each other. Each part of the destination is filled from its own parts of the
//! runs, whether their merge ends, panics or never starts: so the whole is always filled.

use std::mem::{self, MaybeUninit};

use super::Compare;
use super::walk::Walk;
use crate::api::join::join;

/// A merge that has not begun: all of `left` and `right` are elements. Dropped, it moves them to `dest`
/// as they are.
pub(super) struct Merge<'a, T> {
    left: &'a mut [MaybeUninit<T>],
    right: &'a mut [MaybeUninit<T>],
    /// As long as both.
    dest: &'a mut [MaybeUninit<T>],
}

impl<'a, T> Merge<'a, T> {
    /// Of the two parts of a slice.
    ///
    /// # Safety
    ///
    /// All of `runs` are elements. When the merge is over, in whatever way, all of `dest` are the same
    /// ones, each once: of the two copies of an element, the caller goes on with one.
    ///
    /// # Panics
    ///
    /// If the slices are not of the same length: before anything is moved.
    pub(super) unsafe fn new(
        runs: &'a mut [MaybeUninit<T>],
        middle: usize,
        dest: &'a mut [MaybeUninit<T>],
    ) -> Self {
        assert_eq!(runs.len(), dest.len());
        let (left, right) = runs.split_at_mut(middle);
        Self { left, right, dest }
    }

    /// Merges, in parts of at most `grain` elements.
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

    /// Cuts the merge in two: nothing of the first goes after anything of the second. Each has at
    /// least about a quarter of the elements, as it has half of the longer run.
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
        // From here on nothing panics: a cut is within its run.
        let (left, left_of_high) = mem::take(&mut self.left).split_at_mut(in_left);
        let (right, right_of_high) = mem::take(&mut self.right).split_at_mut(in_right);
        let (dest, dest_of_high) = mem::take(&mut self.dest).split_at_mut(in_left + in_right);
        let high = Self { left: left_of_high, right: right_of_high, dest: dest_of_high };
        (Self { left, right, dest }, high)
    }

    /// Nothing is left to this merge.
    fn begin(&mut self) -> Walk<'a, T> {
        let (left, right) = (mem::take(&mut self.left), mem::take(&mut self.right));
        let dest = mem::take(&mut self.dest);
        // SAFETY: all are elements; this merge has none of them any more. `dest` is as long as both.
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
