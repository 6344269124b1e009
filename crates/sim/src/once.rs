//! A cell that is written once, whose reads are charged.

use std::panic::Location;

use crate::kernel;
use crate::line::Access;

/// A `std::sync::OnceLock` whose reads and writes are charged. Virtual threads take turns, so that it never blocks, unless
/// an initialization gives up its turn.
#[derive(Debug)]
pub struct OnceLock<T>(std::sync::OnceLock<T>);

impl<T> OnceLock<T> {
    /// Returns an empty cell.
    pub const fn new() -> Self {
        Self(std::sync::OnceLock::new())
    }

    /// Returns the value, if there is one.
    #[track_caller]
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.charge(Access::Load);
        self.0.get()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// Returns the value if there was one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        self.charge(Access::Update);
        self.0.set(value)
    }

    /// Charges an access to the word that says whether there is a value.
    #[track_caller]
    #[inline]
    fn charge(&self, access: Access) {
        let address = std::ptr::from_ref(self).addr();
        kernel::access(address, size_of::<u32>(), access, Location::caller());
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}
