//! How many slots of a slab have come back.

use crate::order;
use crate::sync::AtomicUsize;

/// Counts the slots of a slab that have come back. The thread that returns the last one frees the slab.
pub(crate) struct Returned(AtomicUsize);

impl Returned {
    pub(crate) fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Counts slots that have come back. Returns whether all of them have: then no other thread uses the slab any more.
    #[must_use]
    pub(crate) fn add(&self, slots: usize, of: usize) -> bool {
        self.0.fetch_add(slots, order::slot_return()) + slots == of
    }
}
