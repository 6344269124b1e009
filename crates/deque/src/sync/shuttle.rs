//! The shuttle checker: random schedules of larger scenarios, sequentially consistent.

pub(crate) use std::thread::panicking;

pub(crate) use alloc::alloc::{alloc, alloc as alloc_blank, dealloc};

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard, TryLockError};

/// As the native cell: shuttle does not look at plain memory.
#[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Gives the closure a pointer to read through.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives the closure a pointer to write through.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// An atomic here is more than its bytes.
pub(crate) const BLANK_IS_ZERO: bool = false;

/// As the native one.
pub const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// A lost race is a step of its own; there is nothing to wait for.
    pub(crate) fn stand_back() {}

    /// Likewise.
    pub(crate) fn yield_line(&mut self) {}

    pub(crate) fn wait(&mut self) {
        shuttle::thread::yield_now();
    }
}
