//! The pools that are there without being asked for, which a program's main thread uses by calling a
//! function.

use std::env;
use std::sync::Once;

use super::STACK;

/// Of every global pool.
pub(crate) const WORKERS: usize = 2;

/// Says what only the environment can say: how many workers heist's global pool has, and how deep the
/// stacks of threads are whose library does not let us choose.
///
/// # Safety
///
/// There is no other thread yet: one might read the environment meanwhile.
pub(crate) unsafe fn set_environment() {
    // SAFETY: nobody else reads it, as our caller says.
    unsafe { env::set_var("HEIST_NUM_THREADS", WORKERS.to_string()) };
    // What is measured keeps no trace.
    //
    // SAFETY: as above.
    unsafe { env::remove_var("HEIST_TRACE") };
    // SAFETY: as above.
    unsafe { env::set_var("RUST_MIN_STACK", STACK.to_string()) };
}

/// Before the first use of the global pools. heist's has been told by then.
pub(crate) fn prepare() {
    static RAYON: Once = Once::new();
    RAYON.call_once(|| {
        let outcome = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build_global();
        outcome.expect("nobody else builds it");
    });
}
