//! The smaller elements to the front, by several workers at once and in place.
//!
//! Elements are `Send`, not `Sync`: no two threads may compare with the same pivot. So every piece of
//! a slice has a pivot of its own. They are neighbours in a sorted sample, so that they agree on
//! almost all elements; what they disagree on is for the caller to mend. Nothing but swaps moves an
//! element, so a panic at any moment loses none.

use crate::api::join::join;

/// Elements that are worth a task of their own when all that is done is to swap them; a guess.
const SWAPS: usize = 1 << 15;

/// Elements up to this size are swapped whether they need it or not, which spares the processor a
/// guess for each; for larger ones that costs more than a wrong guess.
const CHEAP: usize = 64;

/// Brings those to the front of `v` that `goes_first` when compared with the pivot of their piece, and
/// counts them. There are as many pieces as pivots, and at least one.
pub(super) fn partition<T, P>(pivots: &mut [T], v: &mut [T], goes_first: &P) -> usize
where
    T: Send,
    P: Fn(&T, &T) -> bool + Sync,
{
    if let [pivot] = pivots {
        return partition_piece(v, |element| goes_first(element, pivot));
    }
    let (count, half) = (pivots.len(), pivots.len() / 2);
    let (left_pivots, right_pivots) = pivots.split_at_mut(half);
    let middle = v.len() / count * half;
    let (left, right) = v.split_at_mut(middle);
    let (in_left, in_right) = join(
        || partition(left_pivots, left, goes_first),
        || partition(right_pivots, right, goes_first),
    );
    exchange(&mut v[in_left..middle + in_right], middle - in_left);
    in_left + in_right
}

/// The same for one piece, on this thread.
fn partition_piece<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    if size_of::<T>() <= CHEAP { swap_all(v, goes_first) } else { swap_misplaced(v, goes_first) }
}

/// From front to back; no branch depends on the elements.
fn swap_all<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    let mut first = 0;
    for index in 0..v.len() {
        let goes_first = goes_first(&v[index]);
        v.swap(first, index);
        first += usize::from(goes_first);
    }
    first
}

/// From both ends, with as few swaps as can be.
fn swap_misplaced<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    let (mut start, mut end) = (0, v.len());
    loop {
        while start < end && goes_first(&v[start]) {
            start += 1;
        }
        while start < end && !goes_first(&v[end - 1]) {
            end -= 1;
        }
        // One is left only if an element was judged in two ways.
        if end - start < 2 {
            return start;
        }
        v.swap(start, end - 1);
        start += 1;
        end -= 1;
    }
}

/// Makes `[front, back]` of `v` to `[back, front]`; within each, in any order.
pub(super) fn exchange<T: Send>(v: &mut [T], middle: usize) {
    let count = middle.min(v.len() - middle);
    let (front, rest) = v.split_at_mut(count);
    let back = rest.len() - count;
    swap(front, &mut rest[back..]);
}

/// Swaps two slices of the same length.
fn swap<T: Send>(a: &mut [T], b: &mut [T]) {
    if a.len() <= SWAPS {
        return a.swap_with_slice(b);
    }
    let middle = a.len() / 2;
    let (a, rest_of_a) = a.split_at_mut(middle);
    let (b, rest_of_b) = b.split_at_mut(middle);
    join(|| swap(a, b), || swap(rest_of_a, rest_of_b));
}
