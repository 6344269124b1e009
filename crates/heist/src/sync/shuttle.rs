//! The shuttle checker: random schedules of larger scenarios, sequentially consistent.

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard, TryLockError};
pub(crate) use shuttle::thread::{JoinHandle as ThreadHandle, yield_now};
pub(crate) use shuttle::thread_local;
pub(crate) use std::alloc::{alloc, dealloc};

macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $init:expr;) => {
        shuttle::thread_local! {
            $(#[$attribute])* static $name: $type = $init;
        }
    };
}
pub(crate) use per_thread;

/// Starts threads, except those with the name `refused`.
pub(crate) struct ThreadBuilder {
    builder: shuttle::thread::Builder,
    is_refused: bool,
}

impl ThreadBuilder {
    pub(crate) fn new() -> Self {
        Self { builder: shuttle::thread::Builder::new(), is_refused: false }
    }

    pub(crate) fn name(self, name: String) -> Self {
        Self { is_refused: name == "refused", builder: self.builder.name(name) }
    }

    pub(crate) fn stack_size(self, bytes: usize) -> Self {
        Self { builder: self.builder.stack_size(bytes), ..self }
    }

    pub(crate) fn spawn<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<ThreadHandle<T>> {
        if self.is_refused {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        self.builder.spawn(f)
    }
}

/// Returns `count` zeros.
pub(crate) fn zeroed(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

shuttle::lazy_static! {
    /// How often the time was asked for.
    static ref LOOKS: AtomicU64 = AtomicU64::new(0);
}

/// Reads a clock that advances by a tenth of a millisecond with every look: the same schedule has the same times.
pub(crate) fn elapsed(_since: super::Instant) -> u64 {
    LOOKS.fetch_add(100_000, Ordering::SeqCst)
}

/// Returns whether each worker of a new pool is a cluster of its own. Else all workers are one cluster. Both are explored:
/// workers keep tasks private only in pools of one cluster.
pub(crate) fn has_small_clusters() -> bool {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_bool(0.5)
}

/// Returns an empty name: thread names do not matter here.
pub(crate) fn thread_name() -> String {
    String::new()
}

/// Returns `false`: no thread is joined early here.
pub(crate) fn is_finished<T>(_thread: &ThreadHandle<T>) -> bool {
    false
}

pub(crate) fn full_fence(_name: &str) {
    shuttle::sync::atomic::fence(Ordering::SeqCst);
}

/// Does nothing: everything is sequentially consistent here.
pub(crate) fn light_fence(_name: &str) {}

/// Passes a full fence, before which other threads may run. Memory is sequentially consistent here without it.
pub(crate) fn heavy_fence(name: &str) {
    full_fence(name);
}

pub(crate) fn has_heavy_fence() -> bool {
    true
}

pub(crate) fn heavy_fence_state() -> super::HeavyFence {
    super::HeavyFence::Ready
}

pub(crate) fn pause() {
    yield_now();
}

#[derive(Debug)]
pub(crate) struct Parker(shuttle::thread::Thread);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(shuttle::thread::current())
    }

    pub(crate) fn park(&self) {
        shuttle::thread::park();
    }

    /// Only yields: there is no time here, so the limit may have passed at once.
    pub(crate) fn park_for(&self, _: std::time::Duration) {
        yield_now();
    }

    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

/// Does nothing: there are no caches here.
pub(crate) fn prefetch<T>(_place: *const T) {}

/// Does nothing: there are no caches here.
pub(crate) fn prefetch_for_write<T>(_place: *const T) {}
