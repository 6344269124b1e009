//! What a parallel loop runs over: something with a length that can be cut in two.

use std::ops::Range;
use std::slice;

/// Items in a row that can be cut in two: slices, shared or mutable, and ranges of integers.
///
/// ```
/// use heist::parallel::Pieces;
///
/// let (left, right) = (0..10_i32).cut(4);
/// assert_eq!((left.size(), right.items().sum::<i32>()), (4, 39));
/// ```
pub trait Pieces: Sized + Send {
    /// What the loop sees of each.
    type Item;
    /// One after the other.
    type Items: Iterator<Item = Self::Item>;

    /// How many there are.
    fn size(&self) -> usize;

    /// The first `middle` of them, and the rest.
    fn cut(self, middle: usize) -> (Self, Self);

    /// All of them, one after the other.
    fn items(self) -> Self::Items;
}

/// What can be seen as [`Pieces`]: those themselves, and references to vectors and arrays.
///
/// ```
/// use heist::parallel::{IntoPieces, Pieces};
///
/// let numbers = vec![1, 2, 3];
/// assert_eq!((&numbers).into_pieces().size(), 3);
/// ```
pub trait IntoPieces {
    /// As what.
    type Pieces: Pieces;

    /// The same items, to be cut.
    fn into_pieces(self) -> Self::Pieces;
}

impl<'a, T: Sync> Pieces for &'a [T] {
    type Item = &'a T;
    type Items = slice::Iter<'a, T>;

    fn size(&self) -> usize {
        self.len()
    }

    fn cut(self, middle: usize) -> (Self, Self) {
        self.split_at(middle)
    }

    fn items(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Send> Pieces for &'a mut [T] {
    type Item = &'a mut T;
    type Items = slice::IterMut<'a, T>;

    fn size(&self) -> usize {
        self.len()
    }

    fn cut(self, middle: usize) -> (Self, Self) {
        self.split_at_mut(middle)
    }

    fn items(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

/// As the standard library does for the lengths of ranges of these.
macro_rules! ranges {
    ($($integer:ty)*) => {
        $(
            impl Pieces for Range<$integer> {
                type Item = $integer;
                type Items = Self;

                fn size(&self) -> usize {
                    // Of the widest, a range can be longer than that; nobody would see its end.
                    self.size_hint().0
                }

                fn cut(self, middle: usize) -> (Self, Self) {
                    assert!(middle <= self.size(), "cut beyond its end");
                    // By the assertion it is in bounds, whatever happens on the way there.
                    let middle = self.start.wrapping_add(middle as $integer);
                    (self.start..middle, middle..self.end)
                }

                fn items(self) -> Self {
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
