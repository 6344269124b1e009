//! Loops that stop early: a search for any item, and a search for the first one.
//!
//! Before each item, and before what is left is shared, a relaxed load shows whether another thread has ended the loop. It
//! reads a word that is written only at the end, so that each thread has it in its own cache. Relaxed suffices: a thread that
//! sees the word late processes some items in vain, and the result itself is passed on by the joins of the loop.

use std::marker::PhantomData;

use super::drive::{self, Work};
use super::{Enumerate, Pieces, enumerate};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Calls `f` for the items until it returns a value for one of them, and returns such a value. The other threads stop at their
/// next item.
pub(super) fn search_any<P, F, B>(pieces: P, min: usize, f: F) -> Option<B>
where
    P: Pieces,
    F: Fn(P::Item) -> Option<B> + Sync,
    B: Send,
{
    drive::run(&Any { found: AtomicBool::new(false), f, pieces: PhantomData }, pieces, min)
}

/// Calls `f` for the items until it returns a value for one of them, and returns the value of the first such item. The other
/// threads go on with the items before it only.
pub(super) fn search_first<P, F, B>(pieces: P, min: usize, f: F) -> Option<B>
where
    P: Pieces,
    F: Fn(P::Item) -> Option<B> + Sync,
    B: Send,
{
    drive::run(&First { end: End::new(), f, pieces: PhantomData }, enumerate(pieces), min)
}

/// Where a loop ends: the least index of an item that ends it.
pub(super) struct End(AtomicUsize);

impl End {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }

    /// Returns whether the loop ends before the item with this index. Once that is true, it remains true.
    #[inline]
    pub(super) fn is_before(&self, index: usize) -> bool {
        // Relaxed: see the top of this file.
        self.0.load(Ordering::Relaxed) < index
    }

    /// The item with this index ends the loop.
    pub(super) fn at(&self, index: usize) {
        // Relaxed: the least index wins whatever the order is.
        self.0.fetch_min(index, Ordering::Relaxed);
    }
}

/// A loop that any item can end.
struct Any<P, F> {
    found: AtomicBool,
    f: F,
    pieces: PhantomData<fn(P)>,
}

impl<P, F, B> Work for Any<P, F>
where
    P: Pieces,
    F: Fn(P::Item) -> Option<B> + Sync,
    B: Send,
{
    type Pieces = P;
    type Output = Option<B>;

    fn each(&self, pieces: P) -> Option<B> {
        for item in pieces.into_iter() {
            // Both are relaxed: see the top of this file.
            if self.found.load(Ordering::Relaxed) {
                return None;
            }
            let found = (self.f)(item);
            if found.is_some() {
                self.found.store(true, Ordering::Relaxed);
                return found;
            }
        }
        None
    }

    fn combine(&self, left: Option<B>, right: Option<B>) -> Option<B> {
        left.or(right)
    }

    fn more(&self, done: Option<B>, pieces: P) -> Option<B> {
        if done.is_some() { done } else { self.each(pieces) }
    }

    fn is_over(&self, _: &P) -> bool {
        // Relaxed: see the top of this file.
        self.found.load(Ordering::Relaxed)
    }
}

/// A loop that ends with the first of the items that can end it.
///
/// An item is left out only if an item before it can end the loop. So all items before the one with the least index are
/// processed, and none of them can end the loop. In the order of the items, the first value is that of the least index.
struct First<P, F> {
    end: End,
    f: F,
    pieces: PhantomData<fn(P)>,
}

impl<P, F, B> Work for First<P, F>
where
    P: Pieces,
    F: Fn(P::Item) -> Option<B> + Sync,
    B: Send,
{
    type Pieces = Enumerate<P>;
    type Output = Option<B>;

    fn each(&self, pieces: Enumerate<P>) -> Option<B> {
        for (index, item) in pieces.into_iter() {
            if self.end.is_before(index) {
                return None;
            }
            let found = (self.f)(item);
            if found.is_some() {
                self.end.at(index);
                return found;
            }
        }
        None
    }

    fn combine(&self, left: Option<B>, right: Option<B>) -> Option<B> {
        left.or(right)
    }

    fn more(&self, done: Option<B>, pieces: Enumerate<P>) -> Option<B> {
        if done.is_some() { done } else { self.each(pieces) }
    }

    fn is_over(&self, left: &Enumerate<P>) -> bool {
        self.end.is_before(left.first())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn no_item_is_processed_after_the_end() {
        let unused = |_: i32| -> Option<()> { panic!("the loop has ended") };
        let any = Any { found: AtomicBool::new(true), f: unused, pieces: PhantomData };
        assert_eq!(any.each(0..10), None);
        assert_eq!(any.more(Some(()), 0..10), Some(()));
        let first = First { end: End::new(), f: unused, pieces: PhantomData };
        first.end.at(6);
        let (_, after) = enumerate(0..10).split_at(7);
        assert_eq!(first.each(after), None);
        assert_eq!(first.more(Some(()), enumerate(0..10)), Some(()));
    }

    #[test]
    fn items_before_the_end_are_processed() {
        let first = First { end: End::new(), f: |n| (n == 4).then_some(n), pieces: PhantomData };
        first.end.at(6);
        assert_eq!(first.each(enumerate(0..10)), Some(4));
        assert!(first.end.is_before(5) && !first.end.is_before(4));
    }
}
