//! What a parallel loop runs over: a sequence of known length that can be split in two.

use std::ops::Range;
use std::slice;

/// A sequence of items that can be split in two: a slice, shared or mutable, or a range of integers.
///
/// ```
/// use heist::parallel::Pieces;
///
/// let (left, right) = Pieces::split_at(0..10_i32, 4);
/// assert_eq!((Pieces::len(&left), right.sum::<i32>()), (4, 39));
/// ```
pub trait Pieces: Sized + Send {
    /// The items that the loop's closure receives.
    type Item;
    /// The iterator over the items.
    type IntoIter: Iterator<Item = Self::Item>;

    /// Returns the number of items.
    fn len(&self) -> usize;

    /// Returns whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Splits after the first `middle` items.
    fn split_at(self, middle: usize) -> (Self, Self);

    /// Returns an iterator over all items, in order.
    fn into_iter(self) -> Self::IntoIter;
}

/// A conversion into [`Pieces`], for pieces themselves and for references to vectors and arrays.
///
/// ```
/// use heist::parallel::{IntoPieces, Pieces};
///
/// let numbers = vec![1, 2, 3];
/// assert_eq!((&numbers).into_pieces().len(), 3);
/// ```
pub trait IntoPieces {
    /// The pieces that it is turned into.
    type Pieces: Pieces;

    /// Returns the same items as [`Pieces`].
    fn into_pieces(self) -> Self::Pieces;
}

impl<'a, T: Sync> Pieces for &'a [T] {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at(middle)
    }

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Send> Pieces for &'a mut [T] {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at_mut(middle)
    }

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

/// Implements [`Pieces`] for ranges of the integer types whose ranges have a length in the standard library as well.
macro_rules! ranges {
    ($($integer:ty)*) => {
        $(
            impl Pieces for Range<$integer> {
                type Item = $integer;
                type IntoIter = Self;

                fn len(&self) -> usize {
                    // A range of the widest types can be longer than `usize`; no loop over it would ever end.
                    self.size_hint().0
                }

                fn split_at(self, middle: usize) -> (Self, Self) {
                    assert!(middle <= Pieces::len(&self), "split beyond its end");
                    // By the assertion the result is in bounds, even if the addition wraps on the way.
                    let middle = self.start.wrapping_add(middle as $integer);
                    (self.start..middle, middle..self.end)
                }

                fn into_iter(self) -> Self {
                    self
                }
            }
        )*
    };
}

ranges! { usize u64 u32 u16 u8 isize i64 i32 i16 i8 }

impl<P: Pieces> IntoPieces for P {
    type Pieces = P;

    fn into_pieces(self) -> P {
        self
    }
}

impl<'a, T: Sync> IntoPieces for &'a Vec<T> {
    type Pieces = &'a [T];

    fn into_pieces(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> IntoPieces for &'a mut Vec<T> {
    type Pieces = &'a mut [T];

    fn into_pieces(self) -> &'a mut [T] {
        self
    }
}

impl<'a, T: Sync, const N: usize> IntoPieces for &'a [T; N] {
    type Pieces = &'a [T];

    fn into_pieces(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send, const N: usize> IntoPieces for &'a mut [T; N] {
    type Pieces = &'a mut [T];

    fn into_pieces(self) -> &'a mut [T] {
        self
    }
}
