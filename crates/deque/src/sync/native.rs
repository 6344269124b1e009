//! The real machine: `core`, `alloc` and, where the feature allows, `std`.

pub(crate) use alloc::alloc::{alloc, dealloc};
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

#[cfg(feature = "std")]
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};

/// `core::cell::UnsafeCell` with the interface that lets a model checker see each access.
#[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    #[expect(clippy::disallowed_types, reason = "this is the wrapper that the lint points to")]
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Gives the closure a pointer to read through.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives the closure a pointer to write through.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// An ordering as the code names it; the model checker's twin of this function can weaken it.
#[inline(always)]
pub(crate) const fn site(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

/// One step of waiting for another thread that is a few instructions from done.
pub(crate) struct Backoff {
    rounds: u32,
}

/// Spinning doubles up to 2^6 pauses (about a microsecond), after which the waiter yields.
/// A guess: longer than any hand-over takes, shorter than a time slice.
const SPIN_ROUNDS: u32 = 6;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { rounds: 0 }
    }

    pub(crate) fn wait(&mut self) {
        if self.rounds <= SPIN_ROUNDS {
            for _ in 0..1_u32 << self.rounds {
                core::hint::spin_loop();
            }
            self.rounds += 1;
        } else {
            #[cfg(feature = "std")]
            std::thread::yield_now();
            #[cfg(not(feature = "std"))]
            core::hint::spin_loop();
        }
    }
}
