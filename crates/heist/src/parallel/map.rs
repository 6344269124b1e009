//! Results in their order, each dropped once whatever happens.

use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::slice;

use super::Pieces;
use super::drive::{self, Work};

/// What `f` makes of each item, in their order.
pub(super) fn map<P, F, R>(pieces: P, f: &F, min: usize) -> Vec<R>
where
    P: Pieces,
    F: Fn(P::Item) -> R + Sync,
    R: Send,
{
    let length = pieces.size();
    let mut results = Vec::with_capacity(length);
    let places = &mut results.spare_capacity_mut()[..length];
    let made = drive::run(&Map(f, PhantomData), Places { pieces, places }, min);
    assert_eq!(made.keep(), length, "each item has brought a result");
    // SAFETY: the first places of the vector, one after the other, and all of them.
    unsafe { results.set_len(length) };
    results
}

/// Items, and where their results go.
struct Places<'r, P, R> {
    pieces: P,
    /// As many.
    places: &'r mut [MaybeUninit<R>],
}

impl<'r, P: Pieces, R: Send> Pieces for Places<'r, P, R> {
    type Item = (P::Item, &'r mut MaybeUninit<R>);
    type Items = std::iter::Zip<P::Items, slice::IterMut<'r, MaybeUninit<R>>>;

    fn size(&self) -> usize {
        self.places.len()
    }

    fn cut(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.pieces.cut(middle);
        let (here, there) = self.places.split_at_mut(middle);
        (Self { pieces: left, places: here }, Self { pieces: right, places: there })
    }

    fn items(self) -> Self::Items {
        self.pieces.items().zip(self.places)
    }
}

/// Results that lie one after the other, and are dropped with this unless they are kept.
struct Made<'r, R> {
    first: *mut R,
    count: usize,
    /// They are its own.
    results: PhantomData<&'r mut [R]>,
}

// SAFETY: it stands for results that are `Send`.
unsafe impl<R: Send> Send for Made<'_, R> {}

impl<R> Made<'_, R> {
    /// They are the caller's. How many?
    fn keep(self) -> usize {
        mem::ManuallyDrop::new(self).count
    }
}

impl<R> Drop for Made<'_, R> {
    fn drop(&mut self) {
        let results = ptr::slice_from_raw_parts_mut(self.first, self.count);
        // SAFETY: that many were written, one after the other, and nobody else has them.
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

    fn each(&self, pieces: Places<'r, P, R>) -> Made<'r, R> {
        let first = pieces.places.as_mut_ptr().cast();
        let mut made = Made { first, count: 0, results: PhantomData };
        for (item, place) in pieces.items() {
            place.write((self.0)(item));
            made.count += 1;
        }
        made
    }

    fn combine(&self, left: Made<'r, R>, right: Made<'r, R>) -> Made<'r, R> {
        debug_assert_eq!(left.first.wrapping_add(left.count), right.first, "neighbours");
        let (first, count) = (left.first, left.keep() + right.keep());
        Made { first, count, results: PhantomData }
    }
}
