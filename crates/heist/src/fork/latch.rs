//! A latch that counts unfinished work and fulfils a promise when the last of it has ended.

use std::ptr::NonNull;

use crate::order;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use crate::task::{Promise, Reminder, TaskHandle};

/// Counts the unfinished parts of a scope, of an engine's latch or of a run of a pipeline. The last one to end fulfils a
/// promise. A count may also be ahead of the parts that are spawned, as credit: see `purse`.
pub(crate) struct CountLatch {
    /// The number of unfinished parts, and the credit in purses. It has 64 bits so that no program overflows it, although
    /// a purse can have credit of all parts that have ended so far.
    left: AtomicU64,
    /// Taken by the thread that counts down last.
    end: UnsafeCell<Option<Promise<()>>>,
    /// Wakes the thread that waits for the end when there is one more part.
    reminder: Reminder,
    /// Stands for the memory of the latch, so that a model sees its use and its end. It takes no space.
    memory: UnsafeCell<()>,
}

// SAFETY: the counter is atomic, and only the thread that counts down last touches the promise, which is `Send`.
unsafe impl Sync for CountLatch {}

impl CountLatch {
    /// Returns a latch with that count, one for its owner and the others as credit, and the handle to its end.
    #[inline(always)]
    pub(crate) fn new(count: u64) -> (Self, TaskHandle<Vec<()>>) {
        let (promise, end) = Promise::new();
        let reminder = promise.reminder();
        let (left, promise) = (AtomicU64::new(count), UnsafeCell::new(Some(promise)));
        (Self { left, end: promise, reminder, memory: UnsafeCell::new(()) }, end)
    }

    /// Returns a way to wake the thread that waits for the end.
    pub(crate) fn reminder(&self) -> Reminder {
        self.reminder
    }

    /// Counts that much more. The caller is counted, or runs while a counted part has not ended.
    pub(crate) fn more(&self, count: u64) {
        self.memory.with(|_| ());
        // Ordering: relaxed. The count does not rise from zero, by what is said about the caller.
        self.left.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts down. The thread that reaches zero fulfils the promise. The latch may be gone before this returns, hence a
    /// pointer instead of `&self`.
    ///
    /// # Safety
    ///
    /// The latch is alive. The caller has that much of its count, which is more than nothing, and gives it up.
    pub(crate) unsafe fn done(latch: NonNull<Self>, count: u64) {
        // SAFETY: alive while some of the count is the caller's.
        unsafe { &*latch.as_ptr() }.memory.with(|_| ());
        // SAFETY: alive, for the same reason.
        let left = unsafe { &(*latch.as_ptr()).left };
        if left.fetch_sub(count, order::scope_done()) != count {
            return;
        }
        // SAFETY: alive until the promise is fulfilled, because the owner waits for that.
        let end = unsafe { &(*latch.as_ptr()).end };
        let promise = end.with_mut(|end| {
            // SAFETY: the thread that counts down last has it to itself.
            unsafe { (*end).take() }
        });
        promise.expect("there is one last").fulfil(Ok(Vec::new()), None);
    }

    /// Tells a model that the latch is gone: nothing may use it from now on.
    #[cfg(all(test, loom))]
    pub(crate) fn is_gone(&self) {
        self.memory.with_mut(|_| ());
    }
}
