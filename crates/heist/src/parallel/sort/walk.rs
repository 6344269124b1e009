//! Merges two sorted runs on one thread, from both ends at once.
//!
//! The next element at the front and the next at the back do not depend on each other, so the processor works on
//! both. No branch depends on a comparison, so there is nothing to mispredict.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use super::Compare;

/// A merge in progress. Between any two steps, and during each comparison, the following holds:
///
/// * The ranges lie within their slices. Elements of the runs outside of them have been moved to `dest`.
/// * `dest` has been filled up to the sum of the starts, and from the sum of the ends on. So the gap
///   is as long as both ranges.
///
/// If it is dropped at any time, it moves what is left of both runs into the gap.
pub(super) struct Walk<'a, T> {
    left: &'a mut [MaybeUninit<T>],
    right: &'a mut [MaybeUninit<T>],
    dest: &'a mut [MaybeUninit<T>],
    in_left: Range<usize>,
    in_right: Range<usize>,
}

impl<'a, T> Walk<'a, T> {
    /// Returns a merge that has made no step.
    ///
    /// # Safety
    ///
    /// All places of `left` and `right` hold elements, and `dest` is as long as both. When the merge is over, in
    /// whatever way, all places of `dest` hold the same elements, each once; of the two copies of an element, the
    /// caller uses only one from then on.
    pub(super) unsafe fn new(
        left: &'a mut [MaybeUninit<T>],
        right: &'a mut [MaybeUninit<T>],
        dest: &'a mut [MaybeUninit<T>],
    ) -> Self {
        let (in_left, in_right) = (0..left.len(), 0..right.len());
        Self { left, right, dest, in_left, in_right }
    }

    pub(super) fn run(mut self, compare: &impl Compare<T>) {
        if self.is_in_order(compare) {
            return;
        }
        loop {
            // A step from both ends takes two elements, so at most two of the same run.
            let steps = self.in_left.len().min(self.in_right.len()) / 2;
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                // SAFETY: while such a step remains, each run has at least two elements left.
                unsafe { self.step_at_front(compare) };
                // SAFETY: the step before took one element, so each run has at least one left.
                unsafe { self.step_at_back(compare) };
            }
        }
        while !self.in_left.is_empty() && !self.in_right.is_empty() {
            // SAFETY: both runs have an element left, by the condition of the loop.
            unsafe { self.step_at_front(compare) };
        }
    }

    /// Returns whether no element of the right run goes before any of the left one.
    fn is_in_order(&self, compare: &impl Compare<T>) -> bool {
        let (Some(last), Some(first)) = (self.left.last(), self.right.first()) else { return true };
        // SAFETY: no step has been made, so all places hold elements.
        let last = unsafe { last.assume_init_ref() };
        // SAFETY: no step has been made, so all places hold elements.
        let first = unsafe { first.assume_init_ref() };
        !compare.is_less(first, last)
    }

    /// Moves the lesser of the two first elements to the front of the gap; of equal ones, the left one.
    ///
    /// # Safety
    ///
    /// Each run has an element left.
    unsafe fn step_at_front(&mut self, compare: &impl Compare<T>) {
        let (l, r) = (self.in_left.start, self.in_right.start);
        let (left, right) = (&self.left[l], &self.right[r]);
        // SAFETY: in the range, by the caller's promise.
        let left_element = unsafe { left.assume_init_ref() };
        // SAFETY: in the range, by the caller's promise.
        let right_element = unsafe { right.assume_init_ref() };
        let from_right = compare.is_less(right_element, left_element);
        place(if from_right { right } else { left }, &mut self.dest[l + r]);
        self.in_left.start += usize::from(!from_right);
        self.in_right.start += usize::from(from_right);
    }

    /// Moves the greater of the two last elements to the back of the gap; of equal ones, the right one.
    ///
    /// # Safety
    ///
    /// Each run has an element left.
    unsafe fn step_at_back(&mut self, compare: &impl Compare<T>) {
        let (l, r) = (self.in_left.end - 1, self.in_right.end - 1);
        let (left, right) = (&self.left[l], &self.right[r]);
        // SAFETY: in the range, by the caller's promise.
        let left_element = unsafe { left.assume_init_ref() };
        // SAFETY: in the range, by the caller's promise.
        let right_element = unsafe { right.assume_init_ref() };
        let from_left = compare.is_less(right_element, left_element);
        place(if from_left { left } else { right }, &mut self.dest[l + r + 1]);
        self.in_left.end -= usize::from(from_left);
        self.in_right.end -= usize::from(!from_left);
    }
}

impl<T> Drop for Walk<'_, T> {
    fn drop(&mut self) {
        let start = self.in_left.start + self.in_right.start;
        let end = self.in_left.end + self.in_right.end;
        let (left, right) = self.dest[start..end].split_at_mut(self.in_left.len());
        place_all(&self.left[self.in_left.clone()], left);
        place_all(&self.right[self.in_right.clone()], right);
    }
}

/// Copies the contents of one place to another. If that is an element, the caller uses only the copy from then
/// on.
fn place<T>(from: &MaybeUninit<T>, to: &mut MaybeUninit<T>) {
    // SAFETY: both are references, and one is exclusive; the contents need not be an element.
    unsafe { ptr::copy_nonoverlapping(from, to, 1) };
}

/// Copies the contents of places to as many others.
fn place_all<T>(from: &[MaybeUninit<T>], to: &mut [MaybeUninit<T>]) {
    assert_eq!(from.len(), to.len());
    // SAFETY: both are references of the same length, and one is exclusive.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
}
