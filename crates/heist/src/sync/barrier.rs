//! The heavy side of a store-load protocol whose other side is a [`light_fence`](super::light_fence): it makes every
//! running thread of the process pass a full fence, and waits for that. Linux can do this (`membarrier`); on other
//! systems no code requires it. With `--cfg heist_no_membarrier` Linux behaves as those do, for the
//! tests.

/// Passes a fence on behalf of all threads. For every thread and its light fence: either this thread sees the
/// stores before the light fence from here on, or the loads after the light fence see this thread's stores.
///
/// Only to be called where [`has_heavy_fence`] returns `true`.
pub(crate) fn heavy_fence(_name: &str) {
    let done = system::barrier();
    // Continuing would be unsound. A kernel that has registered the process does not refuse.
    assert!(done, "membarrier failed");
}

/// Returns whether this system has such a fence.
pub(crate) fn has_heavy_fence() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(system::register)
}

#[cfg(all(target_os = "linux", not(heist_no_membarrier)))]
mod system {
    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call only orders memory, or fails.
        let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        result == 0
    }

    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn barrier() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

#[cfg(not(all(target_os = "linux", not(heist_no_membarrier))))]
mod system {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        false
    }
}
