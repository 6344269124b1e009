//! What the real machine and the model checkers have in common: counted pointers, the clock, cells that are set once.

pub(crate) use std::sync::{Arc, OnceLock, Weak};
pub(crate) use std::time::Instant;

use super::{Mutex, MutexGuard};

/// An `Arc` that can be the receiver of a method: `self: ReceiverArc<Self>`.
pub(crate) use std::sync::Arc as ReceiverArc;

/// Converts an `Arc` to one that points to the same value as a trait object.
macro_rules! unsize_arc {
    ($arc:expr) => {
        $arc as _
    };
}
pub(crate) use unsize_arc;

/// Converts a pointer for the call of a method.
#[inline(always)]
pub(crate) fn into_receiver<T: ?Sized>(arc: Arc<T>) -> ReceiverArc<T> {
    arc
}

/// Converts the receiver of a method to a pointer.
#[inline(always)]
pub(crate) fn from_receiver<T: ?Sized>(receiver: ReceiverArc<T>) -> Arc<T> {
    receiver
}

/// Returns how many threads the system grants to the process, by its affinity mask and its cgroup's quota.
pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Locks a mutex, even if it is poisoned: no user code runs under a lock of this crate, so a panic under one (for
/// want of memory) leaves what it guards intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
