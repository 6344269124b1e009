//! Chunks: items that are slices of the same length.

use std::slice;

use super::{Pieces, check_split};

/// Divides a slice into chunks of `size` elements for a loop whose items are these chunks. The last chunk is shorter if
/// `size` does not divide the length.
///
/// ```
/// use heist::parallel;
///
/// let sums = parallel::map(parallel::chunks(&[1, 2, 3, 4, 5], 2), |chunk| chunk.iter().sum::<i32>());
/// assert_eq!(sums, [3, 7, 5]);
/// ```
///
/// If every chunk must have `size` elements, separate the remainder first:
///
/// ```
/// use heist::parallel;
///
/// let numbers = [1, 2, 3, 4, 5];
/// let (exact, rest) = numbers.split_at(numbers.len() - numbers.len() % 2);
/// parallel::for_each(parallel::chunks(exact, 2), |chunk| assert_eq!(chunk.len(), 2));
/// assert_eq!(rest, [5]);
/// ```
///
/// The loop still decides which chunks are processed together. If the length of a chunk does not matter,
/// [`reduce_pieces`](crate::parallel::reduce_pieces) is faster, because it chooses the length itself.
///
/// # Panics
///
/// Panics if `size` is zero.
#[track_caller]
pub fn chunks<T: Sync>(slice: &[T], size: usize) -> Chunks<'_, T> {
    check_size(size);
    Chunks { slice, size }
}

/// Like [`chunks`], with chunks that can be changed.
///
/// ```
/// use heist::parallel;
///
/// let mut numbers = [1, 2, 3, 4, 5];
/// parallel::for_each(parallel::chunks_mut(&mut numbers, 2), |chunk| chunk.reverse());
/// assert_eq!(numbers, [2, 1, 4, 3, 5]);
/// ```
///
/// # Panics
///
/// Panics if `size` is zero.
#[track_caller]
pub fn chunks_mut<T: Send>(slice: &mut [T], size: usize) -> ChunksMut<'_, T> {
    check_size(size);
    ChunksMut { slice, size }
}

/// The chunks of a slice: see [`chunks`].
///
/// ```
/// use heist::parallel::{Chunks, Pieces, chunks};
///
/// let text: Chunks<'_, u8> = chunks(b"abcde", 2);
/// let (left, right) = text.split_at(1);
/// assert_eq!((left.len(), right.len()), (1, 2));
/// ```
#[derive(Debug)]
pub struct Chunks<'a, T> {
    slice: &'a [T],
    /// Not zero.
    size: usize,
}

/// The chunks of a slice that can be changed: see [`chunks_mut`].
///
/// ```
/// use heist::parallel::{ChunksMut, Pieces, chunks_mut};
///
/// let mut numbers = [1, 2, 3];
/// let pairs: ChunksMut<'_, i32> = chunks_mut(&mut numbers, 2);
/// assert_eq!(pairs.len(), 2);
/// ```
#[derive(Debug)]
pub struct ChunksMut<'a, T> {
    slice: &'a mut [T],
    /// Not zero.
    size: usize,
}

#[track_caller]
fn check_size(size: usize) {
    assert!(size != 0, "chunks of zero elements: the size of a chunk must be at least one");
}

/// Returns how many elements the first `middle` chunks of `size` elements have, out of `len`.
fn elements(middle: usize, size: usize, len: usize) -> usize {
    check_split(middle, len.div_ceil(size));
    // The last chunk may be shorter.
    middle.saturating_mul(size).min(len)
}

impl<T> Clone for Chunks<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Chunks<'_, T> {}

impl<'a, T: Sync> Pieces for Chunks<'a, T> {
    type Item = &'a [T];
    type IntoIter = slice::Chunks<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let Self { slice, size } = self;
        let (left, right) = slice.split_at(elements(middle, size, slice.len()));
        (Self { slice: left, size }, Self { slice: right, size })
    }

    fn into_iter(self) -> slice::Chunks<'a, T> {
        self.slice.chunks(self.size)
    }
}

impl<'a, T: Send> Pieces for ChunksMut<'a, T> {
    type Item = &'a mut [T];
    type IntoIter = slice::ChunksMut<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let Self { slice, size } = self;
        let (left, right) = slice.split_at_mut(elements(middle, size, slice.len()));
        (Self { slice: left, size }, Self { slice: right, size })
    }

    fn into_iter(self) -> slice::ChunksMut<'a, T> {
        self.slice.chunks_mut(self.size)
    }
}
