//! Merge sort, through a buffer as long as the slice.
//!
//! A slice is sorted in quarters. They are merged into halves in the buffer, and these back into the
//! slice: no element is ever just copied. Each quarter is sorted in the same way, with its part of the
//! buffer.
//!
//! A comparison may panic at any time. While quarters are merged into the buffer nothing is written to
//! the slice, so its elements are still there; and what is merged back fills the slice whatever
//! happens.

use std::mem::MaybeUninit;

use super::merge::Merge;
use super::{Compare, crew, ordered};
use crate::api::join::join;
use crate::parallel::external::inside;

/// Leaves for each worker, or up to four times as many: so many that one who is late has little left
/// that nobody can take.
const LEAVES: usize = 4;

/// Slices up to this are not worth being sorted in quarters.
const LEAF: usize = 5_000;

/// The fewest elements whose merge is worth a task of its own; a guess.
const GRAIN: usize = 1 << 12;

pub(super) fn sort<T: Send>(v: &mut [T], compare: &impl Compare<T>) {
    let workers = crew(v);
    if workers < 2 {
        return v.sort_by(compare);
    }
    inside(|| {
        if ordered::is_settled(v, compare) {
            return;
        }
        let share = v.len() / (LEAVES * workers);
        let mergesort = Mergesort { compare, leaf: share.max(LEAF), grain: share.max(GRAIN) };
        let mut buffer = Vec::with_capacity(v.len());
        mergesort.sort(v, &mut buffer.spare_capacity_mut()[..v.len()]);
    });
}

struct Mergesort<'a, F> {
    compare: &'a F,
    /// The longest slice that is left to the standard library.
    leaf: usize,
    /// The longest merge that is not cut up.
    grain: usize,
}

impl<F> Mergesort<'_, F> {
    /// Sorts a slice in place, with a buffer of the same length.
    fn sort<T>(&self, v: &mut [T], buffer: &mut [MaybeUninit<T>])
    where
        T: Send,
        F: Compare<T>,
    {
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

    /// Sorts each half of a slice, and says where the second begins.
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
        // SAFETY: there are elements in it whenever this function ends: nothing is written to it but by
        // the last merge, which fills it with all elements.
        let v = unsafe { as_places(v) };
        {
            let (left, right) = v.split_at_mut(middle);
            let (left_half, right_half) = buffer.split_at_mut(middle);
            // SAFETY: all are elements. If this function unwinds before the last merge, only these count,
            // and what is in the buffer is forgotten; else it is the other way round.
            let left = unsafe { Merge::new(left, left_middle, left_half) };
            // SAFETY: likewise.
            let right = unsafe { Merge::new(right, right_middle - middle, right_half) };
            join(|| left.run(self.compare, self.grain), || right.run(self.compare, self.grain));
        }
        // SAFETY: both merges are over, so all of the buffer are elements, and from here on only those
        // count. When this one is over only what is in the slice does.
        let merge = unsafe { Merge::new(buffer, middle, v) };
        merge.run(self.compare, self.grain);
    }
}

/// The places of elements, from which they can be moved.
///
/// # Safety
///
/// When the borrow ends there is an element in each again.
unsafe fn as_places<T>(v: &mut [T]) -> &mut [MaybeUninit<T>] {
    let places = v as *mut [T] as *mut [MaybeUninit<T>];
    // SAFETY: a place for an element is laid out like an element. The reference is exclusive, as `v` is.
    unsafe { &mut *places }
}
