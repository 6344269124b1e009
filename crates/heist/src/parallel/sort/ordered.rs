//! Slices that need no sort: those in order, and those in reverse order.

use std::mem;

use super::Compare;
use crate::api::join::join;

/// The number of elements that are looked at before other workers are asked to help. In most slices they are out
/// of order already.
const FIRST: usize = 32;

/// The number of elements that are worth a task of their own when each is looked at once. A guess.
const GRAIN: usize = 1 << 15;

/// Returns whether the slice is sorted: because it was, or because each element was less than the one before it,
/// so that reversing the slice sorted it and no equal elements changed their order.
pub(super) fn is_settled<T: Send>(v: &mut [T], compare: &impl Compare<T>) -> bool {
    let [first, second, ..] = v else { return true };
    if compare.is_less(second, first) {
        let falls = is_ordered(v, &|a, b| compare.is_less(b, a));
        if falls {
            let (front, back) = v.split_at_mut(v.len() / 2);
            let odd = back.len() - front.len();
            mirror(front, &mut back[odd..]);
        }
        falls
    } else {
        is_ordered(v, &|a, b| !compare.is_less(b, a))
    }
}

fn is_ordered<T, P>(v: &mut [T], in_order: &P) -> bool
where
    T: Send,
    P: Fn(&T, &T) -> bool + Sync,
{
    v[..v.len().min(FIRST)].is_sorted_by(in_order) && is_ordered_throughout(v, in_order)
}

/// Returns whether all neighbours are in order. The slice is borrowed exclusively, because its elements may be
/// sent to another thread but not shared with it.
fn is_ordered_throughout<T, P>(v: &mut [T], in_order: &P) -> bool
where
    T: Send,
    P: Fn(&T, &T) -> bool + Sync,
{
    if v.len() <= GRAIN {
        return v.is_sorted_by(in_order);
    }
    let middle = v.len() / 2;
    if !in_order(&v[middle - 1], &v[middle]) {
        return false;
    }
    let (left, right) = v.split_at_mut(middle);
    let (left, right) =
        join(|| is_ordered_throughout(left, in_order), || is_ordered_throughout(right, in_order));
    left && right
}

/// Swaps the first element of one slice with the last of the other, and so on. Both have the same length.
fn mirror<T: Send>(front: &mut [T], back: &mut [T]) {
    if front.len() <= GRAIN {
        // By index, and with one length for both: the compiler vectorises this form.
        let count = front.len();
        let back = &mut back[..count];
        for index in 0..count {
            mem::swap(&mut front[index], &mut back[count - 1 - index]);
        }
        return;
    }
    let middle = front.len() / 2;
    let (front, rest_of_front) = front.split_at_mut(middle);
    let (rest_of_back, back) = back.split_at_mut(back.len() - middle);
    join(|| mirror(front, back), || mirror(rest_of_front, rest_of_back));
}
