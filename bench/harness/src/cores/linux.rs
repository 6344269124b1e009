//! Linux: `sched_setaffinity`. Where that is forbidden, threads stay where the scheduler puts them.

use std::sync::LazyLock;

use libc::{CPU_ISSET, CPU_SET, CPU_SETSIZE, cpu_set_t, sched_getaffinity, sched_setaffinity};

/// The calling thread.
const SELF: libc::pid_t = 0;

/// The processors that the process was allowed to use at the start, in order.
static ALLOWED: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let mut set = empty();
    // SAFETY: the set has the given size and outlives the call.
    if unsafe { sched_getaffinity(SELF, size_of::<cpu_set_t>(), &mut set) } != 0 {
        return Vec::new();
    }
    let is_ours = |&core: &usize| {
        // SAFETY: `core` is below the size of a set.
        unsafe { CPU_ISSET(core, &set) }
    };
    (0..CPU_SETSIZE as usize).filter(is_ours).collect()
});

/// Pins this thread, and the threads that it spawns, to one processor. Indices beyond the last processor wrap around.
pub fn pin(index: usize) {
    allow(ALLOWED.iter().cycle().skip(index).take(1));
}

/// Lets this thread, and the threads that it spawns, run on any processor again.
pub fn roam() {
    allow(ALLOWED.iter());
}

fn allow<'a>(cores: impl Iterator<Item = &'a usize>) {
    let mut set = empty();
    for &core in cores {
        // SAFETY: `ALLOWED` has only processors below the size of a set.
        unsafe { CPU_SET(core, &mut set) };
    }
    // A failure (an empty set, or a sandbox that forbids the call) changes nothing.
    //
    // SAFETY: the set has the given size and outlives the call.
    let _ = unsafe { sched_setaffinity(SELF, size_of::<cpu_set_t>(), &set) };
}

fn empty() -> cpu_set_t {
    // SAFETY: a set is an array of integers, for which zero is a valid value: no processor.
    unsafe { std::mem::zeroed() }
}
