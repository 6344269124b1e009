//! Atomics, locks, parking and threads. The rest of the crate uses only these.
//!
//! The rest of the crate does not know whether it runs on the real machine or inside a model checker: `--cfg
//! loom` and `--cfg shuttle` swap the contents of this module, never the logic. `--cfg sim` puts a virtual machine in
//! its place. What heist-deque already has is taken from there.

pub(crate) use heist_deque::facade::{Padded, UnsafeCell, site};

#[cfg(not(any(loom, shuttle, sim)))]
mod barrier;
#[cfg(not(any(loom, shuttle, sim)))]
mod clock;
#[cfg(not(any(loom, shuttle, sim)))]
mod copied;
#[cfg(not(any(loom, shuttle, sim)))]
mod native;
#[cfg(not(any(loom, shuttle, sim)))]
mod stack;
#[cfg(not(any(loom, shuttle, sim)))]
pub(crate) use barrier::*;
#[cfg(not(any(loom, shuttle, sim)))]
pub(crate) use clock::Ticks;
#[cfg(not(any(loom, shuttle, sim)))]
pub(crate) use copied::*;
#[cfg(not(any(loom, shuttle, sim)))]
pub(crate) use native::*;
#[cfg(not(any(loom, shuttle, sim)))]
pub(crate) use stack::end_of_stack;

#[cfg(any(loom, shuttle, sim))]
mod uncopied;
#[cfg(any(loom, shuttle, sim))]
pub(crate) use uncopied::*;

mod affinity;
pub(crate) use affinity::Mask;

#[cfg(sim)]
mod sim;
#[cfg(sim)]
pub(crate) use sim::*;

/// What is that of the standard library on the real machine and in the checkers.
#[cfg(not(sim))]
mod plain;
#[cfg(not(sim))]
pub(crate) use plain::*;

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

/// Returns an address that is far below the end of the stack in use: stacks do not matter here.
#[cfg(any(loom, shuttle, sim))]
pub(crate) fn end_of_stack() -> Option<usize> {
    let here = 0_u8;
    Some((&raw const here).addr().saturating_sub(1 << 30))
}

/// A reading of the clock, for short times: see `clock`.
#[cfg(any(loom, shuttle, sim))]
#[derive(Clone, Copy)]
pub(crate) struct Ticks(Instant);

#[cfg(any(loom, shuttle, sim))]
impl Ticks {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// Returns the nanoseconds since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> f64 {
        self.0.saturating_duration_since(earlier.0).as_nanos() as f64
    }
}

/// Returns the nanoseconds since `start`.
#[cfg(not(shuttle))]
pub(crate) fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns whether this thread is unwinding.
pub(crate) fn panicking() -> bool {
    std::thread::panicking()
}

/// Can a thread pass a heavy fence?
#[cfg_attr(any(loom, shuttle, sim), allow(dead_code, reason = "it is always ready there"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeavyFence {
    /// No.
    None,
    /// Not yet.
    Pending,
    Ready,
}

/// Returns the guard of a mutex, even if it is poisoned, unless another thread has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
