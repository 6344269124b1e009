//! The shuttle checker, which runs random schedules of larger scenarios with sequentially consistent memory.

pub(crate) use std::thread::panicking;

pub(crate) use alloc::alloc::{alloc, alloc as alloc_maybe_zeroed, dealloc};

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard, TryLockError};

/// Like the native cell: shuttle does not track accesses to plain memory.
#[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Calls the closure with a pointer for reading.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls the closure with a pointer for writing.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// The atomics of a model checker are not plain memory, and have to be constructed.
pub(crate) const ALLOC_IS_ZEROED: bool = false;

/// Returns the ordering. Shuttle cannot show the effect of a weaker one.
pub const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

/// Waiting is a yield, because shuttle has to schedule another thread.
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// Does nothing: the checker explores what happens after a lost race without a pause.
    pub(crate) fn after_lost_race() {}

    /// Does nothing, for the same reason.
    pub(crate) fn spin(&mut self) {}

    pub(crate) fn wait(&mut self) {
        shuttle::thread::yield_now();
    }
}
