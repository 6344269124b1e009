//! Atomics, locks, parking and threads. The rest of the crate uses only these.
//!
//! The rest of the crate does not know whether it runs on the real machine or inside a model checker: `--cfg
//! loom` and `--cfg shuttle` swap the contents of this module, never the logic. What heist-deque already has is
//! taken from there.

pub(crate) use heist_deque::facade::{Padded, UnsafeCell, site};

#[cfg(not(any(loom, shuttle)))]
mod barrier;
#[cfg(not(any(loom, shuttle)))]
mod native;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use barrier::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use native::*;

/// Declares a function that is not `const`, unlike that of `native`: a checker's atomics cannot be made in a constant.
#[cfg(any(loom, shuttle))]
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block) => {
        $(#[$attribute])* $visibility fn $name($($arguments)*) -> $result $body
    };
}
#[cfg(any(loom, shuttle))]
pub(crate) use const_fn;

#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub(crate) use self::loom::*;

#[cfg(shuttle)]
mod shuttle;
#[cfg(shuttle)]
pub(crate) use self::shuttle::*;

/// Returns how many threads the system grants to the process, by its affinity mask and its cgroup's quota.
pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the nanoseconds since `start`.
#[cfg(not(shuttle))]
pub(crate) fn elapsed(since: std::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns whether this thread is unwinding.
pub(crate) fn panicking() -> bool {
    std::thread::panicking()
}

/// Locks a mutex, even if it is poisoned: no user code runs under a lock of this crate, so a panic under one (for
/// want of memory) leaves what it guards intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
