//! Who frees a deque: the last handle.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::order;
use crate::sync::{AtomicUsize, Ordering, alloc, dealloc};

/// A counted pointer to what the handles of a deque share.
///
/// `Arc` would do, but for two things: its allocation aborts where a deque should report, and
/// the model checkers should see these very orderings.
pub(crate) struct Shared<S> {
    /// Live as long as any `Shared` to it. Made by `alloc`, freed by the handle that counts down
    /// to zero.
    counted: NonNull<Counted<S>>,
}

struct Counted<S> {
    /// How many `Shared` there are. Every handle may change it, at birth and death.
    handles: AtomicUsize,
    body: S,
}

// SAFETY: a `Shared` hands out `&S` on any thread that has it (needs `S: Sync`), and the thread
// that drops the last one drops the `S` (needs `S: Send`).
unsafe impl<S: Send + Sync> Send for Shared<S> {}
// SAFETY: as above: through `&Shared` a thread can clone and thereby do all that `Send` allows.
unsafe impl<S: Send + Sync> Sync for Shared<S> {}

impl<S> Shared<S> {
    /// The bytes that one of these needs.
    pub(crate) const BYTES: usize = size_of::<Counted<S>>();

    /// Moves `body` to the heap; hands it back if there is no room.
    pub(crate) fn try_new(body: S) -> Result<Self, S> {
        let layout = Layout::new::<Counted<S>>();
        // SAFETY: the layout is not zero-sized: it holds an `AtomicUsize`.
        let raw = unsafe { alloc(layout) };
        let Some(counted) = NonNull::new(raw.cast::<Counted<S>>()) else {
            return Err(body);
        };
        // SAFETY: fresh memory of the right layout, which nobody else knows yet.
        unsafe { counted.write(Counted { handles: AtomicUsize::new(1), body }) };
        Ok(Self { counted })
    }

    /// Do both point to the same?
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.counted == other.counted
    }

    #[inline(always)]
    fn counted(&self) -> &Counted<S> {
        // SAFETY: `counted` is live while `self` is (field invariant), and only shared references
        // to it are made before the last handle is gone.
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
        // Ordering: relaxed. The new handle comes from a live one; whatever passes it to another
        // thread orders it.
        let before = self.counted().handles.fetch_add(1, Ordering::Relaxed);
        let new = Self { counted: self.counted };
        // Half the range is out of reach but for a loop of `mem::forget(handle.clone())`. The new
        // handle is dropped by the panic, so that the count does not creep up to the wrap-around.
        assert!(before <= isize::MAX as usize, "too many handles to one deque");
        new
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        if self.counted().handles.fetch_sub(1, order::handle_drop()) != 1 {
            return;
        }
        // The count is ours to read once more: an acquire load of what all the others released, which
        // the race detectors understand, as they do not a fence.
        self.counted().handles.load(order::handle_last());
        tear_down(self.counted);
    }
}

/// Drops the body and frees its memory, the memory also when the body's drop panics.
#[cold]
#[inline(never)]
fn tear_down<S>(counted: NonNull<Counted<S>>) {
    struct Free<S>(NonNull<Counted<S>>);
    impl<S> Drop for Free<S> {
        fn drop(&mut self) {
            // SAFETY: made by `alloc` with this layout in `try_new`, and freed only here, by the
            // one handle that counted down to zero.
            unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<Counted<S>>()) };
        }
    }
    let free = Free(counted);
    // SAFETY: the count is zero, so no handle and no reference is left; dropped once, here.
    unsafe { free.0.drop_in_place() };
}
