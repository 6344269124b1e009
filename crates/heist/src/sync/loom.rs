//! The loom model checker: every interleaving, and every value that the memory model allows.

pub(crate) use loom::alloc::{alloc, dealloc};
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::{Builder as ThreadBuilder, JoinHandle as ThreadHandle, yield_now};
pub(crate) use loom::thread_local;
pub(crate) use std::sync::{Arc, TryLockError};

use super::site;

macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $init:expr;) => {
        loom::thread_local! {
            $(#[$attribute])* static $name: $type = $init;
        }
    };
}
pub(crate) use per_thread;

/// Returns `count` zeros.
pub(crate) fn zeroed(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Thread names do not matter in a model.
pub(crate) fn thread_name() -> String {
    String::new()
}

/// No thread is joined early in a model.
pub(crate) fn is_finished<T>(_thread: &ThreadHandle<T>) -> bool {
    false
}

/// A full fence, left out where a model says so.
pub(crate) fn full_fence(name: &str) {
    if site(name, Ordering::SeqCst) == Ordering::SeqCst {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Both sides are full fences here, each with its own name.
pub(crate) fn light_fence(name: &str) {
    full_fence(name);
}

/// Both sides are full fences here, each with its own name.
pub(crate) fn heavy_fence(name: &str) {
    full_fence(name);
}

pub(crate) fn has_heavy_fence() -> bool {
    true
}

/// Loom needs to know that another thread must run first.
pub(crate) fn pause() {
    yield_now();
}

/// Made from a lock, because loom's `unpark` also ends a wait for a lock.
#[derive(Debug)]
pub(crate) struct Parker {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { woken: Mutex::new(false), bell: Condvar::new() }
    }

    pub(crate) fn park(&self) {
        let mut woken = super::lock(&self.woken);
        while !*woken {
            woken = self.bell.wait(woken).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *woken = false;
    }

    /// There is no time in a model: the limit may have passed at once.
    pub(crate) fn park_for(&self, _: std::time::Duration) {
        yield_now();
    }

    pub(crate) fn wake(&self) {
        *super::lock(&self.woken) = true;
        self.bell.notify_one();
    }
}

/// There are no caches in a model.
pub(crate) fn prefetch<T>(_place: *const T) {}

/// There are no caches in a model.
pub(crate) fn prefetch_for_write<T>(_place: *const T) {}
