//! The virtual machine of heist-sim: virtual cores in virtual time, on which every access is charged.

#[cfg(feature = "std")]
pub(crate) use std::thread::panicking;

// The global allocator of a simulation charges allocations.
pub(crate) use alloc::alloc::{alloc, alloc_zeroed as alloc_maybe_zeroed, dealloc};

pub(crate) use heist_sim::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub use heist_sim::cell::UnsafeCell;
#[cfg(feature = "std")]
pub(crate) use heist_sim::mutex::{Mutex, MutexGuard, TryLockError};

pub(crate) use heist_sim::pause as spin_loop;
pub(crate) use heist_sim::thread::yield_now as yield_processor;

/// Whether `alloc_maybe_zeroed` returns memory that is a valid, zero atomic.
pub(crate) const ALLOC_IS_ZEROED: bool = true;

/// Returns the ordering. Virtual memory is sequentially consistent.
#[inline(always)]
pub const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}
