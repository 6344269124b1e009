//! Vectors and arrays by value: each item is moved out once, or dropped where it is.

use std::fmt;
use std::iter::FusedIterator;
use std::ptr;
use std::slice;

use super::{IntoPieces, Pieces, check_split};
use crate::sync::Arc;

/// The items of a vector or an array that was passed by value, or some of them.
///
/// ```
/// let words = ["a", "b", "c"].map(String::from);
/// let words = heist::parallel::map(words, |word| word + "!"); // no copy: the closure receives a `String`
/// assert_eq!(words, ["a!", "b!", "c!"]);
/// ```
///
/// It is an iterator as well. Items that are not taken out are dropped with it, also if a closure of the loop panics or
/// the loop ends early.
///
/// ```
/// use heist::parallel::{VecPieces, reduce_pieces};
///
/// let words = vec![String::from("to"), String::from("gether")];
/// let text = reduce_pieces(words, |some: VecPieces<String>| some.collect::<String>(), |a, b| a + &b);
/// assert_eq!(text.as_deref(), Some("together"));
/// ```
///
/// The memory of the vector is freed when the last of its pieces is dropped. The loop counts them, in a word that its
/// threads share. References to items (`&v`, `&mut v`) need no such word.
pub struct VecPieces<T> {
    /// The first item, or any place in the vector if there are no items.
    first: *mut T,
    /// The number of items, one after the other, which belong to this value alone.
    len: usize,
    /// The vector, which has no elements any more. It keeps the memory of the items.
    memory: Arc<Vec<T>>,
}

// SAFETY: the items belong to this value alone, and are `Send`. The vector that several threads share has no elements, so no
// thread reaches an item through it. The last thread frees its memory, which any thread may do.
unsafe impl<T: Send> Send for VecPieces<T> {}

impl<T> VecPieces<T> {
    fn new(mut vector: Vec<T>) -> Self {
        let len = vector.len();
        // SAFETY: zero is not above the capacity, and the elements below zero, which are none, are initialized. The items
        // are forgotten by the vector, and belong to the new value.
        unsafe { vector.set_len(0) };
        let first = vector.as_mut_ptr();
        Self { first, len, memory: Arc::new(vector) }
    }

    fn as_slice(&self) -> &[T] {
        // SAFETY: `len` items are there, one after the other, in one allocation that `memory` keeps. They belong to this
        // value, which is borrowed, so that nothing changes them.
        unsafe { slice::from_raw_parts(self.first, self.len) }
    }
}

impl<T> Drop for VecPieces<T> {
    fn drop(&mut self) {
        let items = ptr::slice_from_raw_parts_mut(self.first, self.len);
        // SAFETY: these items are initialized, belong to this value alone, and are not used after this. The memory is
        // there: the field `memory` is dropped later.
        unsafe { ptr::drop_in_place(items) };
    }
}

impl<T> Iterator for VecPieces<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let item = self.first;
        // SAFETY: there was at least one item, so the place after it is in the vector or at its end.
        self.first = unsafe { item.add(1) };
        // SAFETY: the item is initialized and belonged to this value, which does not count it any more.
        Some(unsafe { item.read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for VecPieces<T> {}

impl<T> FusedIterator for VecPieces<T> {}

impl<T: fmt::Debug> fmt::Debug for VecPieces<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VecPieces").field(&self.as_slice()).finish()
    }
}

impl<T: Send> Pieces for VecPieces<T> {
    type Item = T;
    type IntoIter = Self;

    fn len(&self) -> usize {
        self.len
    }

    fn split_at(mut self, middle: usize) -> (Self, Self) {
        check_split(middle, self.len);
        let memory = Arc::clone(&self.memory);
        // SAFETY: in bounds, by the check.
        let there = unsafe { self.first.add(middle) };
        let right = Self { first: there, len: self.len - middle, memory };
        self.len = middle;
        (self, right)
    }

    fn into_iter(self) -> Self {
        self
    }
}

impl<T: Send> IntoPieces for Vec<T> {
    type Pieces = VecPieces<T>;

    fn into_pieces(self) -> VecPieces<T> {
        VecPieces::new(self)
    }
}

/// The items are moved to the heap first.
impl<T: Send, const N: usize> IntoPieces for [T; N] {
    type Pieces = VecPieces<T>;

    fn into_pieces(self) -> VecPieces<T> {
        VecPieces::new(Vec::from(self))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::ThreadBuilder;
    use heist_testkit::ledger::Ledger;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const ITEMS: usize = 6;

    /// Splits at `middle`, takes some items from each side, and drops the sides in one order or the other.
    fn take(middle: usize, from_left: usize, from_right: usize, left_first: bool) {
        let ledger = Ledger::new(ITEMS);
        let items: Vec<_> = (0..ITEMS).map(|number| ledger.item(number)).collect();
        let (mut left, mut right) = items.into_pieces().split_at(middle);
        for (place, item) in left.by_ref().take(from_left).enumerate() {
            assert_eq!(item.number, place);
        }
        for (place, item) in right.by_ref().take(from_right).enumerate() {
            assert_eq!(item.number, middle + place);
        }
        assert_eq!(ledger.dropped(), from_left.min(middle) + from_right.min(ITEMS - middle));
        if left_first {
            drop((left, right));
        } else {
            drop((right, left));
        }
        ledger.assert_each_once();
    }

    #[test]
    fn each_item_is_dropped_once() {
        for middle in 0..=ITEMS {
            for (from_left, from_right) in [(0, 0), (1, 2), (ITEMS, 0), (0, ITEMS), (ITEMS, ITEMS)]
            {
                take(middle, from_left, from_right, true);
                take(middle, from_left, from_right, false);
            }
        }
    }

    #[test]
    fn pieces_outlive_the_others_on_another_thread() {
        let ledger = Ledger::new(ITEMS);
        let items: Vec<_> = (0..ITEMS).map(|number| ledger.item(number)).collect();
        let (left, right) = items.into_pieces().split_at(2);
        let sum = || right.map(|item| item.number).sum::<usize>();
        let other = ThreadBuilder::new().spawn(sum).expect("a thread");
        drop(left);
        assert_eq!(other.join().expect("a sum"), 14);
        ledger.assert_each_once();
    }

    #[test]
    fn a_destructor_that_panics_keeps_no_other_item() {
        let ledger = Ledger::new(ITEMS);
        let item = |number| if number == 3 { ledger.bomb(3) } else { ledger.item(number) };
        let (left, right) = (0..ITEMS).map(item).collect::<Vec<_>>().into_pieces().split_at(1);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(right)));
        assert!(dropped.is_err());
        drop(left);
        ledger.assert_each_once();
    }

    #[test]
    fn items_without_a_size() {
        let (left, right) = [(); ITEMS].into_pieces().split_at(2);
        assert_eq!((left.count(), right.size_hint()), (2, (4, Some(4))));
    }

    #[test]
    fn it_shows_its_items() {
        let (left, right) = vec![1, 2, 3].into_pieces().split_at(1);
        assert_eq!(format!("{left:?} {right:?}"), "VecPieces([1]) VecPieces([2, 3])");
    }
}
