//! The loom model checker: every interleaving, and every value that the memory model allows.

pub(crate) use std::thread::panicking;

pub(crate) use loom::alloc::{alloc, alloc as alloc_blank, dealloc};

pub use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::TryLockError;

std::thread_local! {
    /// The site that is weakened to `Relaxed`, empty for none. Loom runs all threads of a model on
    /// the thread that called it, so this is per model.
    static WEAKENED: core::cell::Cell<&'static str> = const { core::cell::Cell::new("") };
}

/// Weakens one ordering, by its name in `order`, in the models that this thread runs from now on.
pub fn weaken(name: &'static str) {
    WEAKENED.set(name);
}

/// An ordering as the code names it, unless it is the one that is weakened.
pub fn site(name: &str, ordering: Ordering) -> Ordering {
    if WEAKENED.get() == name { Ordering::Relaxed } else { ordering }
}

/// An atomic here is more than its bytes.
pub(crate) const BLANK_IS_ZERO: bool = false;

/// Waiting is a yield: loom needs to know that another thread must run first.
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// A lost race is a step of its own; there is nothing to wait for.
    pub(crate) fn stand_back() {}

    /// Likewise.
    pub(crate) fn yield_line(&mut self) {}

    pub(crate) fn wait(&mut self) {
        loom::thread::yield_now();
    }
}
