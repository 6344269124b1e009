//! What becomes of a panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::thread;

/// What a panic was raised with.
pub(crate) type Payload = Box<dyn Any + Send>;

/// What the user's code returns, or its panic, which is passed on or told of later: so nobody sees what it
/// has left behind without knowing.
#[inline]
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> thread::Result<R> {
    catch_unwind(AssertUnwindSafe(code))
}

/// Ends the process, after a line on stderr that says why.
#[cold]
pub(crate) fn abort(why: &str) -> ! {
    eprintln!("rayon-core on heist: {why}; aborting");
    process::abort()
}
