//! The reference-counted allocation that the handles of a deque share. The last handle frees it.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::order;
use crate::sync::{AtomicUsize, Ordering, alloc, dealloc};

/// A reference-counted pointer to what the handles of a deque share.
///
/// It replaces `Arc` for two reasons: `Arc` aborts if the allocation fails, where a deque should return an
/// error, and the model checkers should check these very orderings.
pub(crate) struct Shared<S> {
    /// Alive as long as any `Shared` points to it. Allocated by `alloc`, freed by the handle that decrements
    /// the count to zero.
    counted: NonNull<Counted<S>>,
}

struct Counted<S> {
    /// The number of `Shared` pointers. Every handle changes it when it is cloned or dropped.
    handles: AtomicUsize,
    body: S,
}

// SAFETY: a `Shared` gives `&S` to any thread that has it (needs `S: Sync`), and the thread that drops the
// last one drops the `S` (needs `S: Send`).
unsafe impl<S: Send + Sync> Send for Shared<S> {}
// SAFETY: with a `&Shared` a thread can clone it and thereby do everything that `Send` allows.
unsafe impl<S: Send + Sync> Sync for Shared<S> {}

impl<S> Shared<S> {
    /// The size of the allocation in bytes.
    pub(crate) const BYTES: usize = size_of::<Counted<S>>();

    /// Moves `body` to the heap. Returns it if the allocation fails.
    pub(crate) fn try_new(body: S) -> Result<Self, S> {
        let layout = Layout::new::<Counted<S>>();
        // SAFETY: the layout is not zero-sized: it holds an `AtomicUsize`.
        let raw = unsafe { alloc(layout) };
        let Some(counted) = NonNull::new(raw.cast::<Counted<S>>()) else {
            return Err(body);
        };
        // SAFETY: the memory is new and of the right layout, and no other thread knows it yet.
        unsafe { counted.write(Counted { handles: AtomicUsize::new(1), body }) };
        Ok(Self { counted })
    }

    /// Returns whether both point to the same allocation.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        self.counted == other.counted
    }

    #[inline(always)]
    fn counted(&self) -> &Counted<S> {
        // SAFETY: `counted` is alive while `self` is (field invariant), and only shared references to it
        // are made before the last handle is dropped.
        unsafe { self.counted.as_ref() }
    }
}

impl<S> Deref for Shared<S> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        &self.counted().body
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        // Ordering: relaxed, as in `Arc`. The new handle is made from a live one, and whatever passes it to
        // another thread orders it.
        let before = self.counted().handles.fetch_add(1, Ordering::Relaxed);
        let new = Self { counted: self.counted };
        // Only a loop of `mem::forget(handle.clone())` can reach half of the range. The panic drops the new
        // handle, so that the count does not go on to overflow.
        assert!(before <= isize::MAX as usize, "too many handles to one deque");
        new
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        if self.counted().handles.fetch_sub(1, order::handle_drop()) != 1 {
            return;
        }
        // An acquire load of the count synchronizes with the decrements of all other handles. A fence would
        // do the same, but race detectors such as ThreadSanitizer do not understand fences.
        self.counted().handles.load(order::handle_last());
        tear_down(self.counted);
    }
}

/// Drops the body and frees the memory, even when the destructor of the body panics.
#[cold]
#[inline(never)]
fn tear_down<S>(counted: NonNull<Counted<S>>) {
    struct Free<S>(NonNull<Counted<S>>);
    impl<S> Drop for Free<S> {
        fn drop(&mut self) {
            // SAFETY: `try_new` allocated the memory with this layout, and it is freed only here, by the
            // one handle that decremented the count to zero.
            unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<Counted<S>>()) };
        }
    }
    let free = Free(counted);
    // SAFETY: the count is zero, so no handle and no reference is left. It is dropped only here.
    unsafe { free.0.drop_in_place() };
}
