//! Slots straight from the allocator and back.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::slot::Slot;
use crate::sync::{alloc, dealloc};

pub(super) fn take() -> NonNull<Slot> {
    let layout = Layout::new::<Slot>();
    // SAFETY: a slot is not zero-sized.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// # Safety
///
/// From [`take`], written, the caller's alone, and its room is empty.
pub(super) unsafe fn give(slot: NonNull<Slot>) {
    // SAFETY: live until the end of this call.
    unsafe { slot.as_ref() }.memory.with_mut(|_| ());
    // SAFETY: as the caller says; a checker's atomics have something to drop.
    unsafe { slot.drop_in_place() };
    // SAFETY: from `take`, with the same layout.
    unsafe { dealloc(slot.as_ptr().cast(), Layout::new::<Slot>()) };
}

/// Nothing is kept.
pub(crate) struct SlotLease(());

impl SlotLease {
    pub(crate) fn begin() -> Self {
        Self(())
    }
}
