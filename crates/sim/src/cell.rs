//! Plain memory that threads share: a cell whose accesses are charged, and charges for other memory.

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
        charge_load(self.0.get());
        f(self.0.get())
    }

    /// Calls the closure with a pointer for writing.
    #[track_caller]
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        charge_store(self.0.get());
        f(self.0.get())
    }
}

/// Charges a read of the memory behind a pointer.
#[track_caller]
#[inline]
pub fn charge_load<T>(place: *const T) {
    kernel::access(place.addr(), size_of::<T>(), Access::Load, Location::caller());
}

/// Charges a write of the memory behind a pointer.
#[track_caller]
#[inline]
pub fn charge_store<T>(place: *mut T) {
    kernel::access(place.addr(), size_of::<T>(), Access::Store, Location::caller());
}
