//! Resource limits of the process. A test sets them in a [child process](crate::process) only.

#[cfg(target_os = "linux")]
use std::fs;

/// A macro because the type of a resource's number depends on the C library.
#[cfg(target_os = "linux")]
macro_rules! set_limit {
    ($resource:expr, $soft:expr, $hard:expr) => {{
        let limit = libc::rlimit { rlim_cur: $soft, rlim_max: $hard };
        // SAFETY: the limit is a valid one, and lives through the call.
        let code = unsafe { libc::setrlimit($resource, &raw const limit) };
        assert_eq!(code, 0, "setrlimit failed");
    }};
}

/// The change to the environment of a process that is to limit its address space.
///
/// glibc maps address space for an arena when a thread first allocates, and gives half of it back. A limit that is set in
/// between leaves room for one more thread than intended.
pub const ONE_ARENA: (&str, Option<&str>) = ("MALLOC_ARENA_MAX", Some("1"));

/// Lets this process allocate `room` bytes of address space more than it has now.
///
/// # Panics
///
/// Panics if the system refuses the limit.
#[cfg(target_os = "linux")]
pub fn limit_address_space(room: usize) {
    let pages = fs::read_to_string("/proc/self/statm").expect("/proc/self/statm can be read");
    let pages: usize = pages.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    set_limit!(libc::RLIMIT_AS, (pages * 4096 + room) as libc::rlim_t, libc::RLIM_INFINITY);
}

/// Removes the limit of [`limit_address_space`].
///
/// # Panics
///
/// Panics if the system refuses.
#[cfg(target_os = "linux")]
pub fn unlimit_address_space() {
    set_limit!(libc::RLIMIT_AS, libc::RLIM_INFINITY, libc::RLIM_INFINITY);
}

/// Makes a crash of this process leave no core file.
///
/// # Panics
///
/// Panics if the system refuses.
#[cfg(target_os = "linux")]
pub fn disable_core_dumps() {
    set_limit!(libc::RLIMIT_CORE, 0, 0);
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn disable_core_dumps() {}
