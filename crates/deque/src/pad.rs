//! Padding that keeps data which different threads write on different cache lines.

use core::ops::Deref;

/// A value that shares its cache lines with nothing else. The alignment is two lines of 64 bytes, because
/// x86_64 and aarch64 processors fetch lines in pairs.
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
