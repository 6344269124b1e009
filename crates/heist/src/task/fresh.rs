//! Slots that come straight from the allocator and go back to it, for the model checkers.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;

use super::slot::Slot;
use crate::sync::{alloc, dealloc};

/// Returns memory for a slot, not initialized.
pub(super) fn take() -> NonNull<Slot> {
    let layout = Layout::new::<Slot>();
    // SAFETY: a slot is not zero-sized.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees a slot.
///
/// # Safety
///
/// The slot came from [`take`], was initialized, belongs to the caller alone, and its room is empty.
pub(super) unsafe fn give(slot: NonNull<Slot>) {
    // SAFETY: initialized, and alive until the end of this call, by the caller's promise.
    unsafe { slot.as_ref() }.memory.with_mut(|_| ());
    // SAFETY: initialized, and the caller's alone, by the caller's promise. The atomics of a checker have something to
    // drop.
    unsafe { slot.drop_in_place() };
    // SAFETY: allocated by `take`, with the same layout.
    unsafe { dealloc(slot.as_ptr().cast(), Layout::new::<Slot>()) };
}

/// Does nothing: without recycling, threads exchange no slots.
pub(crate) fn settle(_group: usize) {}

/// Does nothing: the next slot is not known.
pub(crate) fn prefetch_next() {}

/// Does nothing: without recycling, there are no free slots to keep.
pub(crate) struct SlotLease(());

impl SlotLease {
    pub(crate) fn begin(_groups: usize) -> Self {
        Self(())
    }
}

/// Does nothing: there are no locks.
pub(crate) unsafe extern "C" fn hold() {}

/// Does nothing: there are no locks.
pub(crate) unsafe extern "C" fn release_held() {}
