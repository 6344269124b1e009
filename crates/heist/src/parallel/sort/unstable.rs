//! Quicksort in place, with a partition that is as parallel as the rest.
//!
//! All of it is safe code that only swaps: whatever the comparison does, the slice holds the same elements.

use std::ops::Range;

use super::partition::{exchange, partition};
use super::{Compare, ordered, sorters};
use crate::api::join::join;
use crate::fork::job;
use crate::parallel::external::inside;

/// The number of leaves for each worker, if all have the same length: enough that a worker which is late has
/// little left that no other worker can take.
const LEAVES: usize = 32;

/// The shortest leaf that is worth a task of its own.
const LEAF: usize = 2_000;

/// The shortest piece that is worth a task of its own in a partition. A guess.
const PIECE: usize = 1 << 13;

pub(super) fn sort<T: Send>(v: &mut [T], compare: &impl Compare<T>) {
    let workers = sorters(v);
    if workers < 2 {
        return v.sort_unstable_by(compare);
    }
    let sort = || {
        if ordered::is_settled(v, compare) {
            return;
        }
        let leaf = (v.len() / (LEAVES * workers)).max(LEAF);
        let piece = (v.len() / workers).max(PIECE);
        // Twice as many splits as halves would need.
        let depth = 2 * (v.len() / leaf).ilog2() + 2;
        Quicksort { compare, leaf, piece }.sort(v, depth);
    };
    job::enter(|| inside(sort));
}

struct Quicksort<'a, F> {
    compare: &'a F,
    /// The longest slice that the standard library sorts.
    leaf: usize,
    /// The length of the pieces in which a slice is partitioned. It is a worker's share of the whole, so that a slice
    /// which is one of many is not split further.
    piece: usize,
}

impl<F> Quicksort<'_, F> {
    /// Sorts a slice. After too many splits on the way to it, the standard library sorts it however long it is: the
    /// samples have been misleading, or the order is not an order.
    fn sort<T>(&self, v: &mut [T], depth: u32)
    where
        T: Send,
        F: Compare<T>,
    {
        job::stop_point();
        if v.len() <= self.leaf || depth == 0 {
            return v.sort_unstable_by(self.compare);
        }
        let equal = self.split(v);
        let (lower, upper) = v.split_at_mut(equal.end);
        let lower = &mut lower[..equal.start];
        join(|| self.sort(lower, depth - 1), || self.sort(upper, depth - 1));
        if equal.is_empty() {
            self.mend(v, equal.start);
        }
    }

    /// Moves lesser elements to the front and greater ones to the back, and returns the range between them, whose
    /// elements are all equal.
    ///
    /// If a quarter of the sample is equal to the pivots, the elements that are equal to them are set apart, and need
    /// no further sorting. If not, that quarter is less and half is not less, so neither side is short. There is no
    /// range of equal elements then, and the pivots may differ, so that they may disagree on a few elements.
    fn split<T>(&self, v: &mut [T]) -> Range<usize>
    where
        T: Send,
        F: Compare<T>,
    {
        let size = v.len().isqrt();
        let count = (v.len() / self.piece).clamp(1, size / 8);
        draw_sample(v, size);
        let (sample, _) = v.split_at_mut(size);
        sample.sort_unstable_by(self.compare);
        let pivots = (size - count) / 2..(size + count) / 2;
        let (lowest, highest) = (&sample[pivots.start], &sample[pivots.end - 1]);
        let is_less = |a: &T, b: &T| self.compare.is_less(a, b);
        let all_the_same = count == 1 || !is_less(lowest, highest);
        let many_equal = all_the_same && !is_less(&sample[size / 4], lowest);

        exchange(&mut sample[..pivots.end], pivots.start);
        let (pivots, rest) = v.split_at_mut(count);
        let lesser = partition(pivots, rest, &is_less);
        let mut equal = lesser..lesser;
        if many_equal {
            let not_greater = |a: &T, b: &T| !is_less(b, a);
            equal.end += count + partition(pivots, &mut rest[lesser..], &not_greater);
        }
        exchange(&mut v[..count + lesser], count);
        equal
    }

    /// Makes one sorted slice of two, which overlap by little or by nothing.
    fn mend<T>(&self, v: &mut [T], middle: usize)
    where
        F: Compare<T>,
    {
        let (lower, upper) = v.split_at(middle);
        let (Some(last), Some(first)) = (lower.last(), upper.first()) else { return };
        if !self.compare.is_less(first, last) {
            return;
        }
        let start = lower.partition_point(|element| !self.compare.is_less(first, element));
        let end = upper.partition_point(|element| self.compare.is_less(element, last));
        v[start..middle + end].sort_unstable_by(self.compare);
    }
}

/// Moves elements from random positions to the front. They are the same every time, so that a sort which was slow
/// once can be examined again.
fn draw_sample<T>(v: &mut [T], size: usize) {
    let mut random = v.len() as u64 | 1;
    for index in 0..size {
        // Marsaglia's xorshift: every state but zero is followed by all others.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let choice = random % (v.len() - index) as u64;
        v.swap(index, index + choice as usize);
    }
}
