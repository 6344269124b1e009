//! The loom model checker: every interleaving, and every value that the memory model allows.

pub(crate) use loom::alloc::{alloc, dealloc};
pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::TryLockError;

/// The site that is weakened to `Relaxed` in this process; empty for none.
static WEAKENED: std::sync::Mutex<&'static str> = std::sync::Mutex::new("");

/// Weakens one ordering, by its name in `order`, until [`strengthen`].
#[allow(missing_docs, reason = "not part of the crate outside of a model")]
pub fn weaken(name: &'static str) {
    *WEAKENED.lock().unwrap() = name;
}

/// Restores every ordering.
#[allow(missing_docs, reason = "not part of the crate outside of a model")]
pub fn strengthen() {
    *WEAKENED.lock().unwrap() = "";
}

pub(crate) fn site(name: &str, ordering: Ordering) -> Ordering {
    if *WEAKENED.lock().unwrap() == name {
        Ordering::Relaxed
    } else {
        ordering
    }
}

/// A fence that a weakened site turns into nothing.
pub(crate) fn fence(ordering: Ordering) {
    if ordering != Ordering::Relaxed {
        loom::sync::atomic::fence(ordering);
    }
}

/// Waiting is a yield: loom needs to know that another thread must run first.
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn wait(&mut self) {
        loom::thread::yield_now();
    }
}
