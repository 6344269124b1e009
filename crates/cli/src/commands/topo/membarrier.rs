//! Whether the system supports `membarrier`, with which one thread makes all others execute a memory fence.
//! Where it does, a join needs no fence of its own.

/// Returns `None` on systems on which heist does not use `membarrier`.
#[cfg(target_os = "linux")]
pub(super) fn is_supported() -> Option<bool> {
    let wanted =
        libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    let wanted = libc::c_long::from(wanted);
    // SAFETY: the query has no effect: it returns the supported commands, or an error.
    let known = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    Some(known >= 0 && known & wanted == wanted)
}

/// Returns `None` on systems on which heist does not use `membarrier`.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_supported() -> Option<bool> {
    None
}
