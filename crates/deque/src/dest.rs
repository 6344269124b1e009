//! Where a batch of stolen items goes.

/// A worker's end of a deque, as the destination of a batch steal: the `Worker` of any flavour.
///
/// The trait is sealed: it promises that only the owner's thread can call it, which is what makes
/// "there is room" stay true until the item is put.
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
    /// If there is room for `ahead` items, is there for one more?
    #[doc(hidden)]
    fn has_room(&self, ahead: usize) -> bool;

    /// Pushes an item for which there is room.
    #[doc(hidden)]
    fn put(&self, item: T);
}

/// A destination that looks at each item on its way. For the other crates of the house.
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
    #[allow(missing_docs, reason = "sealed")]
    pub trait Sealed {}
}
