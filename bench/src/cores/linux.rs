//! By `sched_setaffinity`. Where that is forbidden, threads stay where the scheduler puts them.

use std::sync::LazyLock;

use libc::{CPU_ISSET, CPU_SET, CPU_SETSIZE, cpu_set_t, sched_getaffinity, sched_setaffinity};

/// The calling thread.
const SELF: libc::pid_t = 0;

/// The cores that were ours at the start, in order.
static ALLOWED: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let mut set = empty();
    // SAFETY: the set is as large as we say, and outlives the call.
    if unsafe { sched_getaffinity(SELF, size_of::<cpu_set_t>(), &mut set) } != 0 {
        return Vec::new();
    }
    let is_ours = |&core: &usize| {
        // SAFETY: `core` is below the size of a set.
        unsafe { CPU_ISSET(core, &set) }
    };
    (0..CPU_SETSIZE as usize).filter(is_ours).collect()
});

/// Keeps this thread, and those that it spawns, on one core: the next one for each seat, and the
/// first again after the last.
pub(crate) fn pin(seat: usize) {
    allow(ALLOWED.iter().cycle().skip(seat).take(1));
}

/// Lets this thread, and those that it spawns, run on any core again.
pub(crate) fn roam() {
    allow(ALLOWED.iter());
}

fn allow<'a>(cores: impl Iterator<Item = &'a usize>) {
    let mut set = empty();
    for &core in cores {
        // SAFETY: `ALLOWED` has only cores below the size of a set.
        unsafe { CPU_SET(core, &mut set) };
    }
    // A failure (an empty set, or a sandbox that forbids it) leaves all as it was.
    //
    // SAFETY: the set is as large as we say, and outlives the call.
    let _ = unsafe { sched_setaffinity(SELF, size_of::<cpu_set_t>(), &set) };
}

fn empty() -> cpu_set_t {
    // SAFETY: a set is an array of integers, for which zero is a value: no core.
    unsafe { std::mem::zeroed() }
}
