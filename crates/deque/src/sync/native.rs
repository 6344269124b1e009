//! The real machine: `core`, `alloc` and, where the feature allows, `std`.

#[cfg(feature = "std")]
pub(crate) use std::thread::panicking;

pub(crate) use alloc::alloc::{alloc, alloc_zeroed as alloc_blank, dealloc};
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

#[cfg(feature = "std")]
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};

/// `core::cell::UnsafeCell` with the interface that lets a model checker see each access.
#[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Gives the closure a pointer to read through.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives the closure a pointer to write through.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Does `alloc_blank` give memory in which atomics are zero already?
pub(crate) const BLANK_IS_ZERO: bool = true;

/// An ordering as the code names it; the model checker's twin of this function can weaken it.
#[inline(always)]
pub const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

/// How long to stay out of the way of others, longer each time.
pub(crate) struct Backoff {
    round: u32,
}

/// The first wait is 2^3 pauses, each further one twice as long, up to 2^6 (about a microsecond).
///
/// Measured: two pushers and two thieves on two cores that are far apart move a third more items
/// than when the first wait is a single pause. The end is a guess: longer than any hand-over takes,
/// shorter than a time slice.
const FIRST_ROUND: u32 = 3;
const LAST_ROUND: u32 = 6;

/// How long a thief stands back. Measured: two thieves on two cores take 25 ns an item without, 13 ns
/// with 8 pauses; two pushers and two thieves do better with 32 than with 8. More gains more still,
/// but costs the loser of a single race more.
const STAND_BACK: u32 = 32;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { round: FIRST_ROUND }
    }

    /// After a lost race that is not to be run again here: lets the winner keep the cache line for
    /// a moment.
    pub(crate) fn stand_back() {
        for _ in 0..STAND_BACK {
            core::hint::spin_loop();
        }
    }

    /// After a lost race that will be run again: lets the winner keep the cache line, longer each
    /// time.
    pub(crate) fn yield_line(&mut self) {
        for _ in 0..1_u32 << self.round {
            core::hint::spin_loop();
        }
        self.round = LAST_ROUND.min(self.round + 1);
    }

    /// One step of waiting for a thread that is a few instructions from done, unless it is not
    /// running: then it gets the core.
    pub(crate) fn wait(&mut self) {
        if self.round < LAST_ROUND {
            self.yield_line();
        } else {
            yield_core();
        }
    }
}

#[cfg(feature = "std")]
use std::thread::yield_now as yield_core;

/// Without an operating system there is nobody to ask.
#[cfg(not(feature = "std"))]
use core::hint::spin_loop as yield_core;
