//! The global pools, which the main thread of a program uses by calling a function.

use std::env;
use std::sync::Once;

use super::{STACK, granted, traced};

/// The number of workers of every global pool.
pub(crate) const WORKERS: usize = 2;

/// A file that discards what is written to it.
const NULL_DEVICE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Sets what can be set only by environment variables: the number of workers of heist's global pool, whether that
/// pool keeps a trace, and the stack size of threads whose library has no option for it.
///
/// # Safety
///
/// No other thread may be running: it might read the environment meanwhile.
pub(crate) unsafe fn set_environment(traced: bool) {
    // SAFETY: the caller guarantees that there is no other thread, so none reads the environment.
    unsafe { env::set_var("HEIST_WORKERS", WORKERS.to_string()) };
    if traced {
        // Every other heist pool has an explicit setting. This program reads the trace itself, so the file is
        // discarded.
        //
        // SAFETY: the caller guarantees that there is no other thread.
        unsafe { env::set_var("HEIST_TRACE", NULL_DEVICE) };
    } else {
        // Measured pools keep no trace.
        //
        // SAFETY: the caller guarantees that there is no other thread.
        unsafe { env::remove_var("HEIST_TRACE") };
    }
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { env::set_var("RUST_MIN_STACK", STACK.to_string()) };
}

/// Prepares the global pool that this entry uses. The variables for heist's pool have been set by then.
pub(crate) fn prepare(by: &str) {
    if crate::is_ours(by) {
        traced::global();
    }
    static RAYON: Once = Once::new();
    RAYON.call_once(|| {
        granted(rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build_global());
    });
}
