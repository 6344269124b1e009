//! The heavy side of a store-load protocol whose other side is a [`light_fence`](super::light_fence): it has every
//! thread of the process that is running pass a full fence, and waits for that. Linux can; elsewhere nobody is asked to. With
//! `--cfg heist_no_membarrier` Linux is as elsewhere, for the tests.

/// Every thread's stores before its light fence, if it has not loaded after it yet, are seen from here on; or what it
/// loads after it sees this thread's stores.
///
/// Only where [`has_heavy_fence`] says so.
pub(crate) fn heavy_fence(_name: &str) {
    let done = system::barrier();
    // To go on would be unsound, and a kernel that has registered the process does not refuse.
    assert!(done, "membarrier failed");
}

/// Can this system do that?
pub(crate) fn has_heavy_fence() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(system::register)
}

#[cfg(all(target_os = "linux", not(heist_no_membarrier)))]
mod system {
    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call has no other effect than to order memory, or to fail.
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
