//! Where the results of a loop go: places in a vector, in the order of the items. Each result is dropped exactly once whatever
//! happens.

use std::mem;
use std::ptr;

use super::Pieces;

/// Returns the results that `run` makes of the items, in the order of the items.
///
/// `run` is given the items with a place for each, and returns the results, together with another value. If that value is
/// `Err`, it is returned, and all results are dropped.
pub(super) fn collect<P, R, E>(
    pieces: P,
    run: impl FnOnce(Places<P, R>) -> Result<Made<R>, E>,
) -> Result<Vec<R>, E>
where
    P: Pieces,
    R: Send,
{
    let size = pieces.len();
    let mut results = Vec::with_capacity(size);
    let first = results.spare_capacity_mut().as_mut_ptr().cast();
    let made = run(Places { pieces, first, size })?;
    assert_eq!(made.first, first, "the results begin at the first place");
    assert_eq!(made.count, size, "each item has brought a result");
    mem::forget(made);
    // SAFETY: the results fill the places of the vector from the first on, without a gap.
    unsafe { results.set_len(size) };
    Ok(results)
}

/// Items, and the places where their results go. The vector with these places outlives this value: [`collect`] keeps it until
/// the loop has ended.
pub(super) struct Places<P, R> {
    pieces: P,
    /// The first of consecutive places, with access to the memory of the whole vector.
    first: *mut R,
    /// The number of places, which belong to this value alone. It is the number of items, if the user's `Pieces` can
    /// be trusted with that.
    size: usize,
}

// SAFETY: the places belong to this value alone, and the thread that has it may write `R: Send` to them.
unsafe impl<P: Send, R: Send> Send for Places<P, R> {}

impl<P: Pieces, R> Places<P, R> {
    pub(super) fn pieces(&self) -> &P {
        &self.pieces
    }

    /// Writes the result of each item to its place, in order, until `make` returns `None`.
    #[inline]
    pub(super) fn fill(self, mut make: impl FnMut(P::Item) -> Option<R>) -> Made<R> {
        let mut made = Made { first: self.first, count: 0 };
        for item in self.pieces.into_iter().take(self.size) {
            let Some(result) = make(item) else { break };
            // SAFETY: below the number of places.
            let place = unsafe { made.first.add(made.count) };
            // SAFETY: the place belongs to this value, and nothing was written to it.
            unsafe { place.write(result) };
            made.count += 1;
        }
        made
    }
}

impl<P: Pieces, R: Send> Pieces for Places<P, R> {
    type Item = P::Item;
    type IntoIter = P::IntoIter;

    fn len(&self) -> usize {
        self.size
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        assert!(middle <= self.size, "cut beyond its end");
        let (left, right) = self.pieces.split_at(middle);
        // SAFETY: in bounds, by the assertion.
        let there = unsafe { self.first.add(middle) };
        let places = |pieces, first, size| Self { pieces, first, size };
        (places(left, self.first, middle), places(right, there, self.size - middle))
    }

    fn into_iter(self) -> P::IntoIter {
        self.pieces.into_iter()
    }
}

/// Consecutive results, which are dropped together with this value unless they are kept. The vector with their places outlives
/// this value, as it does [`Places`].
pub(super) struct Made<R> {
    first: *mut R,
    /// The number of results, which belong to this value alone.
    count: usize,
}

// SAFETY: it owns results that are `Send`.
unsafe impl<R: Send> Send for Made<R> {}

impl<R> Made<R> {
    /// Adds the results of the items that follow. If results are missing between the two, those after the gap are dropped.
    #[inline]
    pub(super) fn and(self, right: Self) -> Self {
        if self.first.wrapping_add(self.count) != right.first {
            return self;
        }
        let (first, count) = (self.first, self.count + right.count);
        mem::forget((self, right));
        Self { first, count }
    }
}

impl<R> Drop for Made<R> {
    fn drop(&mut self) {
        let results = ptr::slice_from_raw_parts_mut(self.first, self.count);
        // SAFETY: that many results were written, one after the other, and nothing else owns them.
        unsafe { ptr::drop_in_place(results) };
    }
}
