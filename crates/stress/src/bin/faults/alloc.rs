//! A global allocator that refuses one allocation, and counts bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

static MADE: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
/// The allocation that is refused. All before it, and all after it, are granted.
static REFUSED: AtomicU64 = AtomicU64::new(u64::MAX);

pub(crate) struct Failing;

// SAFETY: memory comes from `System` and goes back there with the same layout.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if MADE.fetch_add(1, Relaxed) == REFUSED.load(Relaxed) {
            return ptr::null_mut();
        }
        LIVE.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Refuses the allocation that comes after this number of others from now on.
pub(crate) fn refuse_after(others: u64) {
    REFUSED.store(MADE.load(Relaxed) + others, Relaxed);
}

/// Refuses none any more. Returns whether one was refused since [`refuse_after`].
pub(crate) fn refuse_none() -> bool {
    MADE.load(Relaxed) > REFUSED.swap(u64::MAX, Relaxed)
}

/// Returns the number of bytes that are allocated now.
pub(crate) fn live_bytes() -> i64 {
    LIVE.load(Relaxed)
}
