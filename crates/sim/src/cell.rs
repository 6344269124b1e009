//! Plain memory that threads share: a cell whose accesses are charged.

use std::panic::Location;

use crate::kernel;
use crate::line::Access;

/// An `UnsafeCell` with the interface of loom, each access to which is charged with all cache lines of the value.
#[expect(clippy::disallowed_types, reason = "this wraps it for the code under simulation")]
#[repr(transparent)]
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this wraps it for the code under simulation")]
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls the closure with a pointer for reading.
    #[track_caller]
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        kernel::access(self.0.get().addr(), size_of::<T>(), Access::Load, Location::caller());
        f(self.0.get())
    }

    /// Calls the closure with a pointer for writing.
    #[track_caller]
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        kernel::access(self.0.get().addr(), size_of::<T>(), Access::Store, Location::caller());
        f(self.0.get())
    }
}
