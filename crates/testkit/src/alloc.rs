//! A global allocator that counts.
//!
//! ```text
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//! ```
//!
//! The counts belong to the whole process, so a test binary that installs the allocator must run its tests
//! one at a time: each test holds the guard that [`exclusive`] returns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOCATIONS_HERE: Cell<u64> = const { Cell::new(0) };
    static LIVE_HERE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with counts.
///
/// Most counts are for all threads together, because a task may be made on one thread and end on another.
#[derive(Debug)]
pub struct CountingAllocator;

// SAFETY: memory comes from `System` and goes back there with the same layout; the counters
// allocate nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATIONS_HERE.set(ALLOCATIONS_HERE.get() + 1);
        LIVE_HERE.set(LIVE_HERE.get() + layout.size() as isize);
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        LIVE_HERE.set(LIVE_HERE.get() - layout.size() as isize);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Returns the number of allocations of all threads since the process started.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Returns the number of allocations of the current thread. Threads of the test harness allocate at any
/// time and are not in this count.
#[must_use]
pub fn allocations_here() -> u64 {
    ALLOCATIONS_HERE.get()
}

/// Returns the number of bytes that are allocated now.
#[must_use]
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Returns the number of bytes that the current thread has allocated, without those that it has freed: negative if it has
/// freed more, which others have allocated.
#[must_use]
pub fn live_bytes_here() -> isize {
    LIVE_HERE.get()
}

/// Returns the largest number of bytes that were allocated at once since the last [`reset_peak`].
#[must_use]
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Starts a new measurement of the peak, and returns the number of bytes that are allocated now.
pub fn reset_peak() -> usize {
    let live = live_bytes();
    PEAK.store(live, Ordering::Relaxed);
    live
}

/// Waits until no other test measures. The counts belong to the caller until the guard is dropped.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
