//! Merge sort through a buffer as long as the slice.
//!
//! A slice is sorted in quarters. The quarters are merged into halves in the buffer, and the halves are merged
//! back into the slice: no element is copied without being merged. Each quarter is sorted in the same way, with
//! its part of the buffer.
//!
//! A comparison may panic at any time. While quarters are merged into the buffer, nothing is written to the
//! slice, so its elements are still there; and merging back fills the slice whatever happens.

use std::mem::MaybeUninit;

use super::merge::Merge;
use super::{Compare, ordered, sorters};
use crate::api::join::join;
use crate::fork::job;
use crate::parallel::external::inside;

/// The number of leaves for each worker, or up to four times as many: enough that a worker which is late has
/// little left that no other worker can take.
const LEAVES: usize = 4;

/// Slices of up to this length are not worth sorting in quarters.
const LEAF: usize = 5_000;

/// The smallest number of elements whose merge is worth a task of its own. A guess.
const GRAIN: usize = 1 << 12;

pub(super) fn sort<T: Send>(v: &mut [T], compare: &impl Compare<T>) {
    let workers = sorters(v);
    if workers < 2 {
        return v.sort_by(compare);
    }
    let sort = || {
        if ordered::is_settled(v, compare) {
            return;
        }
        let share = v.len() / (LEAVES * workers);
        let mergesort = Mergesort { compare, leaf: share.max(LEAF), grain: share.max(GRAIN) };
        let mut buffer = Vec::with_capacity(v.len());
        mergesort.sort(v, &mut buffer.spare_capacity_mut()[..v.len()]);
    };
    job::enter(|| inside(sort));
}

struct Mergesort<'a, F> {
    compare: &'a F,
    /// The longest slice that the standard library sorts.
    leaf: usize,
    /// The longest merge that is not split.
    grain: usize,
}

impl<F> Mergesort<'_, F> {
    /// Sorts a slice in place, with a buffer of the same length.
    fn sort<T>(&self, v: &mut [T], buffer: &mut [MaybeUninit<T>])
    where
        T: Send,
        F: Compare<T>,
    {
        job::stop_point();
        if v.len() <= self.leaf {
            return v.sort_by(self.compare);
        }
        let middle = v.len() / 2;
        let (left, right) = v.split_at_mut(middle);
        let (left_buffer, right_buffer) = buffer.split_at_mut(middle);
        let (left_middle, right_middle) =
            join(|| self.sort_halves(left, left_buffer), || self.sort_halves(right, right_buffer));
        let seams = [left_middle, middle, middle + right_middle];
        if seams.iter().any(|&seam| self.compare.is_less(&v[seam], &v[seam - 1])) {
            self.merge(v, buffer, seams);
        }
    }

    /// Sorts each half of a slice, and returns where the second one begins.
    fn sort_halves<T>(&self, v: &mut [T], buffer: &mut [MaybeUninit<T>]) -> usize
    where
        T: Send,
        F: Compare<T>,
    {
        let middle = v.len() / 2;
        let (left, right) = v.split_at_mut(middle);
        let (left_buffer, right_buffer) = buffer.split_at_mut(middle);
        join(|| self.sort(left, left_buffer), || self.sort(right, right_buffer));
        middle
    }

    /// Merges four runs: two and two into the buffer, and both back.
    fn merge<T>(&self, v: &mut [T], buffer: &mut [MaybeUninit<T>], seams: [usize; 3])
    where
        T: Send,
        F: Compare<T>,
    {
        let [left_middle, middle, right_middle] = seams;
        // SAFETY: its places hold elements whenever this function ends: only the last merge writes to it, and fills
        // it with all elements.
        let v = unsafe { as_places(v) };
        {
            let (left, right) = v.split_at_mut(middle);
            let (left_half, right_half) = buffer.split_at_mut(middle);
            // SAFETY: all places hold elements. If this function unwinds before the last merge, the copies in the
            // slice are used and those in the buffer are forgotten; otherwise it is the other way round.
            let left = unsafe { Merge::new(left, left_middle, left_half) };
            // SAFETY: as for the left half.
            let right = unsafe { Merge::new(right, right_middle - middle, right_half) };
            join(|| left.run(self.compare, self.grain), || right.run(self.compare, self.grain));
        }
        // SAFETY: both merges are over, so all places of the buffer hold elements, and from here on only those are
        // used. When this merge is over, only those in the slice are.
        let merge = unsafe { Merge::new(buffer, middle, v) };
        merge.run(self.compare, self.grain);
    }
}

/// Returns the places of the elements, from which they can be moved.
///
/// # Safety
///
/// When the borrow ends, every place holds an element again.
unsafe fn as_places<T>(v: &mut [T]) -> &mut [MaybeUninit<T>] {
    let places = v as *mut [T] as *mut [MaybeUninit<T>];
    // SAFETY: a place for an element has the layout of an element. The reference is exclusive, as `v` is.
    unsafe { &mut *places }
}
