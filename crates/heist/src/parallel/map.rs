//! `map`: results in the order of the items, each dropped exactly once whatever happens.

use std::marker::PhantomData;
use std::mem;
use std::ptr;

use super::Pieces;
use super::drive::{self, Work};

/// Calls `f` for each item and returns the results in the order of the items.
pub(super) fn map<P, F, R>(pieces: P, f: &F, min: usize) -> Vec<R>
where
    P: Pieces,
    F: Fn(P::Item) -> R + Sync,
    R: Send,
{
    let size = pieces.len();
    let mut results = Vec::with_capacity(size);
    let first = results.spare_capacity_mut().as_mut_ptr().cast();
    let places = Places { pieces, first, size, results: PhantomData };
    let made = drive::run(&Map(f, PhantomData), places, min);
    assert_eq!(made.count, size, "each item has brought a result");
    mem::forget(made);
    // SAFETY: the results fill the places of the vector from the first on, without a gap.
    unsafe { results.set_len(size) };
    results
}

/// Items, and the places where their results go.
struct Places<'r, P, R> {
    pieces: P,
    /// The first of consecutive places, with access to the memory of the whole vector.
    first: *mut R,
    /// The number of places, which belong to this value alone. It is the number of items, if the user's `Pieces` can
    /// be trusted with that.
    size: usize,
    results: PhantomData<&'r mut [R]>,
}

// SAFETY: the places belong to this value alone, and the thread that has it may write `R: Send` to them.
unsafe impl<P: Send, R: Send> Send for Places<'_, P, R> {}

impl<P: Pieces, R: Send> Pieces for Places<'_, P, R> {
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
        let places = |pieces, first, size| Self { pieces, first, size, results: PhantomData };
        (places(left, self.first, middle), places(right, there, self.size - middle))
    }

    fn into_iter(self) -> P::IntoIter {
        self.pieces.into_iter()
    }
}

/// Consecutive results, which are dropped together with this value unless they are kept.
struct Made<'r, R> {
    first: *mut R,
    count: usize,
    /// The number of results, which belong to this value alone.
    results: PhantomData<&'r mut [R]>,
}

// SAFETY: it owns results that are `Send`.
unsafe impl<R: Send> Send for Made<'_, R> {}

impl<R> Drop for Made<'_, R> {
    fn drop(&mut self) {
        let results = ptr::slice_from_raw_parts_mut(self.first, self.count);
        // SAFETY: that many results were written, one after the other, and nothing else owns them.
        unsafe { ptr::drop_in_place(results) };
    }
}

struct Map<'f, P, R, F>(&'f F, PhantomData<fn(P) -> R>);

impl<'r, P, R, F> Work for Map<'r, P, R, F>
where
    P: Pieces,
    F: Fn(P::Item) -> R + Sync,
    R: Send + 'r,
{
    type Pieces = Places<'r, P, R>;
    type Output = Made<'r, R>;

    fn each(&self, places: Places<'r, P, R>) -> Made<'r, R> {
        let mut made = Made { first: places.first, count: 0, results: PhantomData };
        for item in places.pieces.into_iter().take(places.size) {
            let result = (self.0)(item);
            // SAFETY: below the number of places.
            let place = unsafe { made.first.add(made.count) };
            // SAFETY: the place belongs to this value, and nothing was written to it.
            unsafe { place.write(result) };
            made.count += 1;
        }
        made
    }

    fn combine(&self, left: Made<'r, R>, right: Made<'r, R>) -> Made<'r, R> {
        if left.first.wrapping_add(left.count) != right.first {
            // There were fewer items than announced: the results after the gap are dropped.
            return left;
        }
        let (first, count) = (left.first, left.count + right.count);
        mem::forget((left, right));
        Made { first, count, results: PhantomData }
    }
}
