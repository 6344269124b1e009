//! Can the system have other threads pass a fence? Where it can, joins need none of their own.

/// `None` where heist does not ask for it.
#[cfg(target_os = "linux")]
pub(crate) fn there() -> Option<bool> {
    let wanted =
        libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    let wanted = libc::c_long::from(wanted);
    // SAFETY: the call only says which commands there are, or fails.
    let known = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    Some(known >= 0 && known & wanted == wanted)
}

/// `None` where heist does not ask for it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn there() -> Option<bool> {
    None
}
