//! The heavy side of a store-load protocol whose other side is a [`light_fence`](super::light_fence): it makes every
//! running thread of the process pass a full fence, and waits for that. Linux can do this (`membarrier`); on other
//! systems no code requires it. With `--cfg heist_no_membarrier` Linux behaves as those do, for the
//! tests.
//!
//! A process must register for it. That takes some ten milliseconds if the process has more than one thread, so a thread of
//! its own does it then, and there is no such fence until that is done.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use super::HeavyFence;

/// A [`HeavyFence`]. Ordering: relaxed. Whatever is ordered by such a fence is ordered by the system.
static STATE: AtomicU8 = AtomicU8::new(HeavyFence::None as u8);

/// Passes a fence on behalf of all threads. For every thread and its light fence: either this thread sees the
/// stores before the light fence from here on, or the loads after the light fence see this thread's stores.
///
/// Only to be called where [`heavy_fence_state`] has returned `Ready`.
pub(crate) fn heavy_fence(_name: &str) {
    let done = system::barrier();
    // Continuing would be unsound. A kernel that has registered the process does not refuse.
    assert!(done, "membarrier failed");
}

/// Returns whether this system has such a fence. The first call sees to it that it will be ready.
pub(crate) fn has_heavy_fence() -> bool {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        if !system::is_supported() {
            return;
        }
        STATE.store(HeavyFence::Pending as u8, Ordering::Relaxed);
        if system::is_single_threaded() {
            return register();
        }
        let thread = std::thread::Builder::new().name("heist-register".to_owned()).spawn(register);
        if thread.is_err() {
            register();
        }
    });
    heavy_fence_state() != HeavyFence::None
}

fn register() {
    let state = if system::register() { HeavyFence::Ready } else { HeavyFence::None };
    STATE.store(state as u8, Ordering::Relaxed);
}

/// Returns whether there is such a fence now.
#[inline(always)]
pub(crate) fn heavy_fence_state() -> HeavyFence {
    match STATE.load(Ordering::Relaxed) {
        2 => HeavyFence::Ready,
        1 => HeavyFence::Pending,
        _ => HeavyFence::None,
    }
}

#[cfg(all(target_os = "linux", not(heist_no_membarrier)))]
mod system {
    fn membarrier(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call only orders memory, or fails.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }

    pub(super) fn is_supported() -> bool {
        let needed = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
            | libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        let supported = membarrier(libc::MEMBARRIER_CMD_QUERY);
        supported >= 0 && supported & libc::c_long::from(needed) == libc::c_long::from(needed)
    }

    /// Returns whether this is the only thread of the process, as far as the system says so.
    pub(super) fn is_single_threaded() -> bool {
        std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
    }

    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
    }

    pub(super) fn barrier() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
    }
}

#[cfg(not(all(target_os = "linux", not(heist_no_membarrier))))]
mod system {
    pub(super) fn is_supported() -> bool {
        false
    }

    pub(super) fn is_single_threaded() -> bool {
        false
    }

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        false
    }
}
