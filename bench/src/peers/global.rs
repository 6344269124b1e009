//! The pools that are there without being asked for, which a program's main thread uses by calling a
//! function.

use std::env;
use std::sync::Once;

use super::{STACK, granted, traced};

/// Of every global pool.
pub(crate) const WORKERS: usize = 2;

/// What takes everything, and keeps nothing.
const NOWHERE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Says what only the environment can say: how many workers heist's global pool has, whether it keeps a
/// trace, and how deep the stacks of threads are whose library does not let us choose.
///
/// # Safety
///
/// There is no other thread yet: one might read the environment meanwhile.
pub(crate) unsafe fn set_environment(traced: bool) {
    // SAFETY: nobody else reads it, as our caller says.
    unsafe { env::set_var("HEIST_WORKERS", WORKERS.to_string()) };
    if traced {
        // Every other pool of ours is told. We read the trace ourselves, so the file is for nobody.
        //
        // SAFETY: as above.
        unsafe { env::set_var("HEIST_TRACE", NOWHERE) };
    } else {
        // What is measured keeps no trace.
        //
        // SAFETY: as above.
        unsafe { env::remove_var("HEIST_TRACE") };
    }
    // SAFETY: as above.
    unsafe { env::set_var("RUST_MIN_STACK", STACK.to_string()) };
}

/// Before that one uses its global pool. heist's has been told by then.
pub(crate) fn prepare(by: &str) {
    if crate::is_ours(by) {
        traced::global();
    }
    static RAYON: Once = Once::new();
    RAYON.call_once(|| {
        granted(rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build_global());
    });
}
