//! Pairs of the items of two sequences.

use std::iter;

use super::{IntoPieces, Pieces};

/// Combines two sequences: the items of the loop are pairs of an item of each. If one sequence is longer, its last items are
/// left out.
///
/// ```
/// use heist::parallel;
///
/// let (prices, mut totals) = ([3, 5, 8], [1, 1, 1]);
/// parallel::for_each(parallel::zip(&mut totals, &prices), |(total, price)| *total += price);
/// assert_eq!(totals, [4, 6, 9]);
/// ```
///
/// Zips can be nested:
///
/// ```
/// use heist::parallel::{map, zip};
///
/// let (a, b) = ([1, 2, 3], [10, 20, 30]);
/// assert_eq!(map(zip(100..200, zip(&a, &b)), |(c, (a, b))| a + b + c), [111, 123, 135]);
/// ```
pub fn zip<A, B>(a: A, b: B) -> Zip<A::Pieces, B::Pieces>
where
    A: IntoPieces,
    B: IntoPieces,
{
    let (a, b) = (a.into_pieces(), b.into_pieces());
    let len = a.len().min(b.len());
    // The items after the first `len` are dropped.
    Zip { a: a.split_at(len).0, b: b.split_at(len).0 }
}

/// The items of two sequences of the same length: see [`zip`].
///
/// ```
/// use heist::parallel::{Pieces, Zip, zip};
/// use std::ops::Range;
///
/// let pairs: Zip<&[char], Range<u8>> = zip(&['a', 'b', 'c'], 0..2);
/// assert_eq!(pairs.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Zip<A, B> {
    a: A,
    /// As long as `a`.
    b: B,
}

impl<A: Pieces, B: Pieces> Pieces for Zip<A, B> {
    type Item = (A::Item, B::Item);
    type IntoIter = iter::Zip<A::IntoIter, B::IntoIter>;

    fn len(&self) -> usize {
        self.a.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (a_left, a_right) = self.a.split_at(middle);
        let (b_left, b_right) = self.b.split_at(middle);
        (Self { a: a_left, b: b_left }, Self { a: a_right, b: b_right })
    }

    fn into_iter(self) -> Self::IntoIter {
        self.a.into_iter().zip(self.b.into_iter())
    }
}
