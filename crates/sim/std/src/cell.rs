//! `std::cell`, with an `UnsafeCell` that is charged.

pub use std::cell::*;

use heist_sim::cell::{charge_load, charge_store};

/// An `UnsafeCell` whose accesses are charged with all cache lines of the value.
#[expect(clippy::disallowed_types, reason = "this wraps it for the code under simulation")]
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this wraps it for the code under simulation")]
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Returns a pointer through which the caller writes, which is charged now. If it only reads, [`load`](Self::load) is
    /// for that.
    #[track_caller]
    #[inline]
    pub fn get(&self) -> *mut T {
        charge_store(self.0.get());
        self.0.get()
    }

    /// Returns a pointer through which the caller reads, which is charged now.
    #[track_caller]
    #[inline]
    pub fn load(&self) -> *mut T {
        charge_load(self.0.get());
        self.0.get()
    }

    /// Returns the value, which no other thread can access now. This is not charged.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Returns the value. This is not charged: the value was moved here.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
