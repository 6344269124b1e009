//! The virtual machine of heist-sim: virtual cores in virtual time, on which every access is charged.

pub(crate) use heist_sim::arc::{Arc, Weak};
pub(crate) use heist_sim::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use heist_sim::mutex::{Mutex, MutexGuard, TryLockError};
pub(crate) use heist_sim::once::OnceLock;
pub(crate) use heist_sim::thread::{
    Builder as ThreadBuilder, JoinHandle as ThreadHandle, cores_of_a_cache, name as thread_name,
    node as node_of_thread, nodes as virtual_nodes, parallelism, yield_now,
};
pub(crate) use heist_sim::time::Instant;
pub(crate) use heist_sim::{
    pause, prefetch, prefetch_for_write, thread_local, thread_local as per_thread,
};

// The global allocator of a simulation charges allocations.
pub(crate) use std::alloc::{alloc, dealloc};

/// An `Arc` that can be the receiver of a method, which no other type can be. Its counts are not charged; it exists for the
/// duration of a call.
pub(crate) use std::sync::Arc as ReceiverArc;

/// Converts an `Arc` to one that points to the same value as a trait object.
macro_rules! unsize_arc {
    ($arc:expr) => {
        $crate::sync::Arc::from_std($crate::sync::Arc::into_std($arc) as _)
    };
}
pub(crate) use unsize_arc;

/// Converts a pointer for the call of a method.
pub(crate) fn into_receiver<T: ?Sized>(arc: Arc<T>) -> ReceiverArc<T> {
    Arc::into_std(arc)
}

/// Converts the receiver of a method to a pointer.
pub(crate) fn from_receiver<T: ?Sized>(receiver: ReceiverArc<T>) -> Arc<T> {
    Arc::from_std(receiver)
}

/// Declares a function that is `const`, as on the real machine.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block) => {
        $(#[$attribute])* $visibility const fn $name($($arguments)*) -> $result $body
    };
}
pub(crate) use const_fn;

/// Locks a mutex. The place of the call is the one that the report names.
#[track_caller]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does the same as [`lock`].
#[track_caller]
pub(crate) fn lock_for_long<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    lock(mutex)
}

/// Returns `count` zeros.
pub(crate) fn zeroed(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Returns whether joining the thread would not wait.
pub(crate) fn is_finished<T>(thread: &ThreadHandle<T>) -> bool {
    thread.is_finished()
}

/// Charges a full fence.
pub(crate) fn full_fence(_name: &str) {
    heist_sim::atomic::fence(Ordering::SeqCst);
}

/// Does nothing: only the compiler must keep the order.
pub(crate) fn light_fence(_name: &str) {}

/// Charges the system call that makes all running cores pass a fence.
pub(crate) fn heavy_fence(_name: &str) {
    heist_sim::atomic::membarrier();
}

pub(crate) fn has_heavy_fence() -> bool {
    true
}

pub(crate) fn heavy_fence_state() -> super::HeavyFence {
    super::HeavyFence::Ready
}

/// Puts a thread to sleep and wakes it.
#[derive(Debug)]
pub(crate) struct Parker(heist_sim::thread::Thread);

impl Parker {
    /// Returns the parker of the calling thread.
    pub(crate) fn new() -> Self {
        Self(heist_sim::thread::current())
    }

    #[track_caller]
    pub(crate) fn park(&self) {
        heist_sim::thread::park();
    }

    #[track_caller]
    pub(crate) fn park_for(&self, limit: std::time::Duration) {
        heist_sim::thread::park_timeout(limit);
    }

    #[track_caller]
    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}
