//! Catching panics, and aborting the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::thread;

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls user code and catches its panic.
///
/// Unwind safety: every caller propagates or reports the panic later, so no code sees the state that the
/// panic left behind without knowing about the panic.
#[inline]
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> thread::Result<R> {
    catch_unwind(AssertUnwindSafe(code))
}

/// Prints the reason to stderr and aborts the process.
#[cold]
pub(crate) fn abort(why: &str) -> ! {
    eprintln!("rayon-core on heist: {why}; aborting");
    process::abort()
}
