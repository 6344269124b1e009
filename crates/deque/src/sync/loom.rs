//! The loom model checker, which explores every interleaving and every value that the memory model allows.

pub(crate) use std::thread::panicking;

pub(crate) use loom::alloc::{alloc, alloc as alloc_maybe_zeroed, dealloc};

pub use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::TryLockError;

std::thread_local! {
    /// The name of the ordering that is weakened to `Relaxed`, or the empty string. Loom runs all threads
    /// of a model on the thread that called it, so this is per model.
    static WEAKENED: core::cell::Cell<&'static str> = const { core::cell::Cell::new("") };
}

/// Weakens the ordering with this name in `order`, in all models that this thread runs from now on.
pub fn weaken(name: &'static str) {
    WEAKENED.set(name);
}

/// Returns the ordering, or `Relaxed` if it is the one that is weakened.
pub fn site(name: &str, ordering: Ordering) -> Ordering {
    if WEAKENED.get() == name { Ordering::Relaxed } else { ordering }
}

/// The atomics of a model checker are not plain memory, and have to be constructed.
pub(crate) const ALLOC_IS_ZEROED: bool = false;

/// Waiting is a yield, because loom needs to know that another thread must run first.
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// Does nothing: the checker explores what happens after a lost race without a pause.
    pub(crate) fn after_lost_race() {}

    /// Does nothing, for the same reason.
    pub(crate) fn spin(&mut self) {}

    pub(crate) fn wait(&mut self) {
        loom::thread::yield_now();
    }
}
