//! The real machine: atomics, threads, parking and prefetches of the standard library.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

pub(crate) use std::alloc::{alloc, dealloc};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};
pub(crate) use std::thread::{Builder as ThreadBuilder, JoinHandle as ThreadHandle, yield_now};
pub(crate) use std::thread_local;

/// Declares a thread-local value with a constant initializer.
macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $init:expr;) => {
        std::thread_local! {
            $(#[$attribute])* static $name: $type = const { $init };
        }
    };
}
pub(crate) use per_thread;

/// Returns `count` zeros. The system provides memory only for the pages that are written to, if the allocator
/// supports that.
pub(crate) fn zeroed(count: usize) -> Box<[AtomicU64]> {
    let layout = Layout::array::<AtomicU64>(count).expect("a size that fits into memory");
    if layout.size() == 0 {
        return Box::default();
    }
    // SAFETY: the size is not zero.
    let words = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if words.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: allocated with the layout of this slice by the global allocator, as a box is; zero is a valid value of
    // an atomic integer; and nothing else owns the memory.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(words, count)) }
}

/// Returns the name of the calling thread, empty if it has none.
pub(crate) fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Returns whether joining the thread would not wait.
pub(crate) fn is_finished<T>(thread: &ThreadHandle<T>) -> bool {
    thread.is_finished()
}

/// The fence of a store-load protocol, with the name by which a model can remove it.
#[inline(always)]
pub(crate) fn full_fence(_name: &str) {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// The free side of a store-load protocol: only the compiler must keep the order. The other side is a
/// [`heavy_fence`].
#[inline(always)]
pub(crate) fn light_fence(_name: &str) {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Declares a function that is `const` on the real machine. With the atomics of a checker it cannot be.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block) => {
        $(#[$attribute])* $visibility const fn $name($($arguments)*) -> $result $body
    };
}
pub(crate) use const_fn;

/// Waits for a moment without giving up the processor.
#[inline(always)]
pub(crate) fn pause() {
    std::hint::spin_loop();
}

/// Puts a thread to sleep and wakes it, by the standard library's parking, which is a futex where there is one.
#[derive(Debug)]
pub(crate) struct Parker(std::thread::Thread);

impl Parker {
    /// Returns the parker of the calling thread.
    pub(crate) fn new() -> Self {
        Self(std::thread::current())
    }

    /// Sleeps until [`wake`](Self::wake), which may have come before; at times it returns for no reason. Only for the
    /// thread that made the parker.
    pub(crate) fn park(&self) {
        std::thread::park();
    }

    /// Like [`park`](Self::park), but not longer than `limit`.
    pub(crate) fn park_for(&self, limit: std::time::Duration) {
        std::thread::park_timeout(limit);
    }

    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

/// Prefetches a cache line that will be read soon, where the processor has an instruction for it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect that the program could see, whatever the address is.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches a cache line that will be written soon, which takes it away from other processors.
#[inline(always)]
pub(crate) fn prefetch_for_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch has no effect that the program could see, whatever the address is.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
