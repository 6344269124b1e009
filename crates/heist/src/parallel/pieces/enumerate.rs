//! Items together with their index.

use std::iter;
use std::ops::Range;

use super::{IntoPieces, Pieces};

/// Adds its index to each item: the items of the loop are pairs of an index, from zero on, and an item.
///
/// ```
/// use heist::parallel;
///
/// let mut numbers = [0; 5];
/// parallel::for_each(parallel::enumerate(&mut numbers), |(index, number)| *number = index * index);
/// assert_eq!(numbers, [0, 1, 4, 9, 16]);
/// ```
///
/// ```
/// use heist::parallel;
///
/// let mut pixels = [0_u8; 6];
/// let rows = parallel::chunks_mut(&mut pixels, 3);
/// parallel::for_each(parallel::enumerate(rows), |(y, row)| row.fill(y as u8));
/// assert_eq!(pixels, [0, 0, 0, 1, 1, 1]);
/// ```
pub fn enumerate<I: IntoPieces>(items: I) -> Enumerate<I::Pieces> {
    Enumerate { first: 0, pieces: items.into_pieces() }
}

/// Items together with their index: see [`enumerate`].
///
/// ```
/// use heist::parallel::{Enumerate, Pieces, enumerate};
///
/// let letters: Enumerate<&[char]> = enumerate(&['a', 'b', 'c']);
/// let (_, right) = letters.split_at(1);
/// assert_eq!(right.into_iter().next(), Some((1, &'b')));
/// ```
#[derive(Debug, Clone)]
pub struct Enumerate<P> {
    /// The index of the first item.
    first: usize,
    pieces: P,
}

impl<P> Enumerate<P> {
    /// Returns the index of the first item, if there is one.
    pub(in crate::parallel) fn first(&self) -> usize {
        self.first
    }
}

impl<P: Pieces> Pieces for Enumerate<P> {
    type Item = (usize, P::Item);
    type IntoIter = iter::Zip<Range<usize>, P::IntoIter>;

    fn len(&self) -> usize {
        // No index is above `usize::MAX`.
        self.pieces.len().min(usize::MAX - self.first)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.pieces.split_at(middle);
        let there = self.first.saturating_add(middle);
        (Self { first: self.first, pieces: left }, Self { first: there, pieces: right })
    }

    fn into_iter(self) -> Self::IntoIter {
        (self.first..self.first + self.len()).zip(self.pieces.into_iter())
    }
}
