//! The destination of a batch steal.

/// The destination of a batch steal: the `Worker` of a deque of any flavour.
///
/// The trait is sealed. Only the owner of a deque fills it, so once `has_room` has returned true it stays
/// true until the item is put.
///
/// ```
/// use heist_deque::{Injector, bounded, growable};
///
/// let injector = Injector::new();
/// (0..8).for_each(|n| injector.push(n));
/// let (small, _) = bounded::new(2)?;
/// let (large, _) = growable::new();
/// assert!(injector.steal_batch(&small).is_success());
/// assert!(injector.steal_batch(&large).is_success());
/// assert_eq!((small.len(), large.len()), (2, 3));
/// # Ok::<(), heist_deque::CapacityError>(())
/// ```
pub trait Destination<T>: sealed::Sealed {
    /// Returns whether there is room for one more item after `ahead` items, for which there is room.
    #[doc(hidden)]
    fn has_room(&self, ahead: usize) -> bool;

    /// Pushes an item. The caller has checked that there is room.
    #[doc(hidden)]
    fn put(&self, item: T);
}

/// A destination that calls a function with each item before it passes the item on. An internal of the
/// crates of this repository.
#[derive(Debug)]
pub struct Watched<'d, D, F>(pub &'d D, pub F);

impl<D, F> sealed::Sealed for Watched<'_, D, F> {}

impl<T, D: Destination<T>, F: Fn(&T)> Destination<T> for Watched<'_, D, F> {
    #[inline]
    fn has_room(&self, ahead: usize) -> bool {
        self.0.has_room(ahead)
    }

    #[inline]
    fn put(&self, item: T) {
        (self.1)(&item);
        self.0.put(item);
    }
}

pub(crate) mod sealed {
    #[allow(missing_docs, reason = "the trait cannot be named outside of the crate")]
    pub trait Sealed {}
}
