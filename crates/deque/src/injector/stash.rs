//! The stash: empty segments that an injector keeps for reuse.

use core::panic::RefUnwindSafe;
use core::ptr::NonNull;

use super::segment::Segment;
use crate::order;
use crate::sync::{AtomicBool, UnsafeCell};

/// Returns the maximum number of segments that an injector keeps: as many as fit into 1 MiB, and at least
/// one. The value is a guess: it covers fluctuations of 64,000 word-sized items, and is small compared to
/// the other memory that so many tasks need.
#[cfg(not(loom))]
const fn max_segments<T>() -> usize {
    let fit = (1 << 20) / size_of::<Segment<T>>();
    if fit == 0 { 1 } else { fit }
}
/// Small, so that a model fills the stash.
#[cfg(loom)]
const fn max_segments<T>() -> usize {
    2
}

/// Empty segments for reuse, behind a lock that is only tried. A thread that finds another thread in the
/// stash does not wait, and uses the allocator instead.
pub(super) struct Stash<T> {
    /// Whether a thread is in the stash. Set by a thread that enters, and cleared by the same thread when it
    /// leaves.
    busy: AtomicBool,
    /// Accessed only by the thread in the stash.
    free: UnsafeCell<FreeList<T>>,
}

/// A linked list of segments that no thread uses.
struct FreeList<T> {
    /// The segment that was added last, which is the most likely to be in a cache. The others follow by their
    /// links.
    top: Option<NonNull<Segment<T>>>,
    count: usize,
}

// No code that could panic runs in the stash, so a panic never leaves it in an invalid state.
impl<T> RefUnwindSafe for Stash<T> {}

impl<T> Stash<T> {
    pub(super) fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            free: UnsafeCell::new(FreeList { top: None, count: 0 }),
        }
    }

    /// Returns an empty segment that only the caller uses: one of the stash, or a new one if there is none.
    // Not `#[cold]`, because that makes a push that needs no segment three instructions longer.
    #[inline(never)]
    pub(super) fn take(&self) -> NonNull<Segment<T>> {
        match self.enter(FreeList::pop).flatten() {
            Some(segment) => {
                // SAFETY: no thread uses a segment of the free list, and this one has been removed from it.
                unsafe { Segment::reset(segment) };
                segment
            }
            None => Segment::allocate(),
        }
    }

    /// Adds a segment to the stash, or frees it if the stash is full or busy. Items that are left in its
    /// cells are leaked.
    ///
    /// # Safety
    ///
    /// The segment is alive, and no other thread uses it, now or later.
    #[cold]
    pub(super) unsafe fn put(&self, segment: NonNull<Segment<T>>) {
        let added = self.enter(|free| {
            // SAFETY: the caller guarantees that no other thread uses the segment.
            unsafe { free.push(segment) }
        });
        if added != Some(true) {
            // SAFETY: the caller guarantees that no other thread uses the segment, and it is not in the
            // stash.
            unsafe { Segment::free(segment) };
        }
    }

    /// Calls `f` with exclusive access to the free list. Returns `None` if another thread is in the stash.
    fn enter<R>(&self, f: impl FnOnce(&mut FreeList<T>) -> R) -> Option<R> {
        if self.busy.swap(true, order::stash_enter()) {
            return None;
        }
        let result = self.free.with_mut(|free| {
            // SAFETY: the stash was not busy, so no other thread accesses the list until `busy` is cleared.
            let free = unsafe { &mut *free };
            f(free)
        });
        self.busy.store(false, order::stash_leave());
        Some(result)
    }
}

impl<T> FreeList<T> {
    fn pop(&mut self) -> Option<NonNull<Segment<T>>> {
        let top = self.top?;
        // SAFETY: segments of the list are alive.
        self.top = unsafe { top.as_ref() }.next();
        self.count -= 1;
        Some(top)
    }

    /// Adds a segment, if the list is not full. Returns whether it was added.
    ///
    /// # Safety
    ///
    /// The segment is alive, and no other thread uses it. If it is added, the list owns it.
    unsafe fn push(&mut self, segment: NonNull<Segment<T>>) -> bool {
        if self.count == const { max_segments::<T>() } {
            return false;
        }
        // SAFETY: the caller guarantees that the segment is alive and unused.
        unsafe { Segment::retire(segment, self.top) };
        self.top = Some(segment);
        self.count += 1;
        true
    }
}

impl<T> Drop for Stash<T> {
    fn drop(&mut self) {
        self.free.with_mut(|free| {
            // SAFETY: `&mut self` is exclusive access.
            let free = unsafe { &mut *free };
            while let Some(segment) = free.pop() {
                // SAFETY: no thread uses a segment of the free list, and this one has been removed from it.
                unsafe { Segment::free(segment) };
            }
        });
    }
}
