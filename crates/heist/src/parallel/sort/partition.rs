//! A parallel partition in place: moves the smaller elements to the front.
//!
//! Elements are `Send`, not `Sync`: no two threads may compare with the same pivot. So every piece of a slice has
//! a pivot of its own. The pivots are neighbours in a sorted sample, so that they agree on almost all elements;
//! the caller corrects the rest. Elements are moved only by swaps, so a panic at any moment loses none.

use crate::api::join::join;

/// The number of elements that are worth a task of their own when they are only swapped. A guess.
const SWAPS: usize = 1 << 15;

/// Elements of up to this size are swapped whether they need it or not, which saves the processor a branch
/// prediction for each. For larger ones that costs more than a misprediction.
const CHEAP: usize = 64;

/// Moves those elements to the front of `v` for which `goes_first` is true when compared with the pivot of their
/// piece, and returns their number. There are as many pieces as pivots, and at least one.
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

/// Partitions one piece on this thread.
fn partition_piece<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    if const { size_of::<T>() <= CHEAP } {
        swap_all(v, goes_first)
    } else {
        swap_misplaced(v, goes_first)
    }
}

/// Partitions from front to back; no branch depends on the elements.
fn swap_all<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    let mut first = 0;
    for index in 0..v.len() {
        let goes_first = goes_first(&v[index]);
        v.swap(first, index);
        first += usize::from(goes_first);
    }
    first
}

/// Partitions from both ends, with as few swaps as possible.
fn swap_misplaced<T>(v: &mut [T], goes_first: impl Fn(&T) -> bool) -> usize {
    let (mut start, mut end) = (0, v.len());
    loop {
        while start < end && goes_first(&v[start]) {
            start += 1;
        }
        while start < end && !goes_first(&v[end - 1]) {
            end -= 1;
        }
        // An element is left over only if two comparisons of it disagreed.
        if end - start < 2 {
            return start;
        }
        v.swap(start, end - 1);
        start += 1;
        end -= 1;
    }
}

/// Turns `[front, back]` of `v` into `[back, front]`, each in an unspecified order.
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
