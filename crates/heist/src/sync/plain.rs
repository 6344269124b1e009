//! What the real machine and the model checkers have in common: counted pointers, the clock, cells that are set once.

pub(crate) use std::sync::{Arc, OnceLock, Weak};
pub(crate) use std::time::Instant;

use super::{Mutex, MutexGuard};

/// An `Arc` that can be the receiver of a method: `self: ReceiverArc<Self>`.
pub(crate) use std::sync::Arc as ReceiverArc;

/// Converts an `Arc` to one that points to the same value as a trait object.
macro_rules! unsize_arc {
    ($arc:expr) => {
        $arc as _
    };
}
pub(crate) use unsize_arc;

/// Converts a pointer for the call of a method.
#[inline(always)]
pub(crate) fn into_receiver<T: ?Sized>(arc: Arc<T>) -> ReceiverArc<T> {
    arc
}

/// Converts the receiver of a method to a pointer.
#[inline(always)]
pub(crate) fn from_receiver<T: ?Sized>(receiver: ReceiverArc<T>) -> Arc<T> {
    receiver
}

/// Returns how many threads the system grants to the process, by its affinity mask and its cgroup's quota.
pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns how many processors share the last-level cache with the first one, if the system says so (Linux does).
pub(crate) fn cores_of_a_cache() -> Option<usize> {
    let list = "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list";
    let list = std::fs::read_to_string(list).ok()?;
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    });
    ranges.sum::<Option<usize>>().filter(|&count| count > 1)
}

/// The number of a node, its processors, and its distance to each node.
pub(crate) type VirtualNode = (usize, Vec<usize>, Vec<u64>);

/// Returns the nodes of a simulated machine. Those of a real one
/// are in the files of its system.
pub(crate) fn virtual_nodes() -> Option<Vec<VirtualNode>> {
    None
}

/// Returns the NUMA node on which the calling thread runs, or zero if the system does not say (Linux does).
pub(crate) fn node_of_thread() -> usize {
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    {
        let (mut processor, mut node): (libc::c_uint, libc::c_uint) = (0, 0);
        // SAFETY: the call writes one number to each of the two places, which are valid for that. The third argument has
        // not been used for long.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_getcpu,
                &raw mut processor,
                &raw mut node,
                std::ptr::null_mut::<libc::c_void>(),
            )
        };
        if failed == 0 {
            return node as usize;
        }
    }
    0
}

/// Locks a mutex, even if it is poisoned: no user code runs under a lock of this crate, so a panic under one (for
/// want of memory) leaves what it guards intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    if super::copies() != 0 {
        return super::lock_in_copy(mutex);
    }
    lock_for_long(mutex)
}

/// Like [`lock`], for a mutex that a thread may keep as long as it takes the user's code to end. A copy of the process does not come
/// to such a lock that was made in another one: it would wait for ever.
pub(crate) fn lock_for_long<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
