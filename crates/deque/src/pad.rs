//! Keeps what different threads write out of each other's cache lines.

use core::ops::Deref;

/// A value on cache lines of its own: two of 64 bytes, because x86_64 and aarch64 processors
/// fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
