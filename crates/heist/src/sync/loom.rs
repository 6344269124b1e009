//! The loom model checker: every interleaving, and every value that the memory model allows.

pub(crate) use loom::alloc::{alloc, dealloc};
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::{Builder as ThreadBuilder, JoinHandle as ThreadHandle, yield_now};
pub(crate) use loom::thread_local;
pub(crate) use std::sync::TryLockError;

use super::{UnsafeCell, site};

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

/// Returns an empty name: thread names do not matter in a model.
pub(crate) fn thread_name() -> String {
    String::new()
}

/// Returns `false`: no thread is joined early in a model.
pub(crate) fn is_finished<T>(_thread: &ThreadHandle<T>) -> bool {
    false
}

/// Passes a full fence, unless a model removes it by its name.
pub(crate) fn full_fence(name: &str) {
    if site(name, Ordering::SeqCst) == Ordering::SeqCst {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Passes a full fence: both sides are full fences here, each with its own name.
pub(crate) fn light_fence(name: &str) {
    full_fence(name);
}

/// Passes a full fence: both sides are full fences here, each with its own name.
pub(crate) fn heavy_fence(name: &str) {
    full_fence(name);
}

pub(crate) fn has_heavy_fence() -> bool {
    true
}

pub(crate) fn heavy_fence_state() -> super::HeavyFence {
    super::HeavyFence::Ready
}

/// Yields, because loom needs to know that another thread must run first.
pub(crate) fn pause() {
    yield_now();
}

/// Puts a thread to sleep and wakes it. It is made from a lock, because loom's `unpark` also ends a wait for a lock.
#[derive(Debug)]
pub(crate) struct Parker {
    woken: Mutex<bool>,
    bell: Condvar,
    /// Stands for the memory of the parker, so that a model sees whether a thread that wakes the sleeper knows that the
    /// parker was made.
    memory: UnsafeCell<()>,
}

// SAFETY: the lock and the condition variable are `Sync`, and the cell holds nothing.
unsafe impl Sync for Parker {}
// SAFETY: for the same reason.
unsafe impl Send for Parker {}

impl Parker {
    pub(crate) fn new() -> Self {
        let memory = UnsafeCell::new(());
        memory.with_mut(|_| ());
        Self { woken: Mutex::new(false), bell: Condvar::new(), memory }
    }

    pub(crate) fn park(&self) {
        let mut woken = super::lock(&self.woken);
        while !*woken {
            woken = self.bell.wait(woken).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *woken = false;
    }

    /// Only yields: there is no time in a model, so the limit may have passed at once.
    pub(crate) fn park_for(&self, _: std::time::Duration) {
        yield_now();
    }

    pub(crate) fn wake(&self) {
        self.memory.with(|_| ());
        *super::lock(&self.woken) = true;
        self.bell.notify_one();
    }
}

/// Does nothing: there are no caches in a model.
pub(crate) fn prefetch<T>(_place: *const T) {}

/// Does nothing: there are no caches in a model.
pub(crate) fn prefetch_for_write<T>(_place: *const T) {}
