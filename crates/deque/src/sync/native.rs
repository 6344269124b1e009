//! The real machine: `core`, `alloc` and, with the feature of that name, `std`.

#[cfg(feature = "std")]
pub(crate) use std::thread::panicking;

pub(crate) use alloc::alloc::{alloc, alloc_zeroed as alloc_maybe_zeroed, dealloc};
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

#[cfg(feature = "std")]
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};

/// `core::cell::UnsafeCell` with the interface of loom, through which a model checker sees each access.
#[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Calls the closure with a pointer for reading.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls the closure with a pointer for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Whether `alloc_maybe_zeroed` returns memory that is a valid, zero atomic.
pub(crate) const ALLOC_IS_ZEROED: bool = true;

/// Returns the ordering. The version of this function for loom can weaken it by its name.
#[inline(always)]
pub const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

pub(crate) use core::hint::spin_loop;

#[cfg(feature = "std")]
pub(crate) use std::thread::yield_now as yield_processor;

// Without std there is no operating system to yield to.
#[cfg(not(feature = "std"))]
pub(crate) use core::hint::spin_loop as yield_processor;
