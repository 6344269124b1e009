//! What a parallel loop runs over: a sequence of known length that can be split in two.

mod chunks;
mod enumerate;
mod owned;
mod range;
mod slice;
mod zip;

pub use chunks::{Chunks, ChunksMut, chunks, chunks_mut};
pub use enumerate::{Enumerate, enumerate};
pub use owned::VecPieces;
pub use zip::{Zip, zip};

/// A sequence of items that can be split in two: a slice, shared or mutable, a range of integers, the items of a vector, or
/// what [`chunks`], [`chunks_mut`], [`enumerate`] and [`zip`] return.
///
/// ```
/// use heist::parallel::Pieces;
///
/// let (left, right) = Pieces::split_at(0..10_i32, 4);
/// assert_eq!((Pieces::len(&left), right.sum::<i32>()), (4, 39));
/// ```
///
/// # Ranges that are longer than `usize::MAX`
///
/// A range such as `0..u128::MAX` returns `usize::MAX` as its length if there are more items than that. A loop over all of it
/// would never end. [`find_any`](super::find_any), [`any`](super::any) and [`all`](super::all), which stop early, look
/// at every item until then. Functions that number the items ([`enumerate`], [`zip`], [`find_first`](super::find_first),
/// [`try_for_each`](super::try_for_each), and those that return a vector) use the first `usize::MAX` items only.
///
/// # Other types
///
/// A type of your own can be used in all loops if it implements this trait. The items must not depend on where the sequence is
/// split, and [`len`](Self::len) must be the number of items that the iterator returns. If it is not, a loop may
/// panic or leave items out, but it has no undefined behaviour.
#[diagnostic::on_unimplemented(
    message = "a parallel loop cannot run over `{Self}`",
    label = "not a slice, a vector, an array or a range of integers; or its items are not `Send` (for `&v`: not `Sync`)",
    note = "write `&v`, `&mut v` or `v` instead of `v.iter()`, `v.iter_mut()` or `v.into_iter()`; and `&b[..]` for the slice in a `Box` or an `Arc`",
    note = "write `parallel::chunks_mut(&mut v, n)` instead of `v.chunks_mut(n)`, and `parallel::enumerate(&v)` or \
            `parallel::zip(&a, &b)` instead of an adaptor of an iterator",
    note = "collect the items of other collections first: `let items: Vec<_> = map.iter().collect();`",
    note = "compute floats, and every n-th number, from a range of integers: `parallel::map(0..n, |i| i as f64 * step)`"
)]
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

/// A conversion into [`Pieces`], for pieces themselves, for vectors and arrays, and for references to them.
///
/// ```
/// use heist::parallel::{IntoPieces, Pieces};
///
/// let numbers = vec![1, 2, 3];
/// assert_eq!((&numbers).into_pieces().len(), 3);
/// assert_eq!(numbers.into_pieces().sum::<i32>(), 6);
/// ```
///
/// Other collections are collected into a vector first:
///
/// ```
/// use std::collections::HashMap;
///
/// let prices = HashMap::from([("pear", 3), ("fig", 5)]);
/// let items: Vec<_> = prices.iter().collect();
/// let total = heist::parallel::reduce(&items, || 0, |sum, (_, price)| sum + *price, |a, b| a + b);
/// assert_eq!(total, 8);
/// ```
///
/// The collection itself is not accepted:
///
/// ```compile_fail
/// let prices = std::collections::HashMap::from([("pear", 3), ("fig", 5)]);
/// heist::parallel::for_each(&prices, |(_, price)| assert!(*price > 0));
/// ```
#[diagnostic::on_unimplemented(
    message = "a parallel loop cannot run over `{Self}`",
    label = "not a slice, a vector, an array or a range of integers; or its items are not `Send` (for `&v`: not `Sync`)",
    note = "write `&v`, `&mut v` or `v` instead of `v.iter()`, `v.iter_mut()` or `v.into_iter()`; and `&b[..]` for the slice in a `Box` or an `Arc`",
    note = "write `parallel::chunks_mut(&mut v, n)` instead of `v.chunks_mut(n)`, and `parallel::enumerate(&v)` or \
            `parallel::zip(&a, &b)` instead of an adaptor of an iterator",
    note = "collect the items of other collections first: `let items: Vec<_> = map.iter().collect();`",
    note = "compute floats, and every n-th number, from a range of integers: `parallel::map(0..n, |i| i as f64 * step)`"
)]
pub trait IntoPieces {
    /// The pieces that it is turned into.
    type Pieces: Pieces;

    /// Returns the same items as [`Pieces`].
    fn into_pieces(self) -> Self::Pieces;
}

impl<P: Pieces> IntoPieces for P {
    type Pieces = P;

    fn into_pieces(self) -> P {
        self
    }
}

/// The panic of every `split_at` that is asked for more items than there are.
#[track_caller]
fn check_split(middle: usize, len: usize) {
    assert!(middle <= len, "split beyond the end: {middle} of {len} items");
}
