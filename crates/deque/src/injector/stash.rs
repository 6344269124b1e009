//! Empty segments, kept to be used again.

use core::panic::RefUnwindSafe;
use core::ptr::NonNull;

use super::segment::Segment;
use crate::order;
use crate::sync::{AtomicBool, UnsafeCell};

/// The most segments that an injector keeps: 1 MiB of them, and one in any case. A guess: enough for
/// the ups and downs of 64,000 words, little beside what else there is of so many.
#[cfg(not(loom))]
const fn most<T>() -> usize {
    let fit = (1 << 20) / size_of::<Segment<T>>();
    if fit == 0 { 1 } else { fit }
}
/// Small, so that a model fills it.
#[cfg(loom)]
const fn most<T>() -> usize {
    2
}

/// Nobody waits here: who finds somebody else inside goes to the allocator.
pub(super) struct Stash<T> {
    /// Is somebody inside? Set by whoever comes in, cleared by the same on leaving.
    busy: AtomicBool,
    /// Belongs to the one inside.
    kept: UnsafeCell<Kept<T>>,
}

/// The segments: nobody else uses them.
struct Kept<T> {
    /// The one that came last, the likeliest to be in a cache. The others follow by their links.
    top: Option<NonNull<Segment<T>>>,
    count: usize,
}

// Nothing that could panic runs inside.
impl<T> RefUnwindSafe for Stash<T> {}

impl<T> Stash<T> {
    pub(super) fn new() -> Self {
        Self { busy: AtomicBool::new(false), kept: UnsafeCell::new(Kept { top: None, count: 0 }) }
    }

    /// A segment with nothing in it, for the caller alone: one that was kept, or else a new one.
    // Not `cold`: a push that does not need a segment would be three instructions longer.
    #[inline(never)]
    pub(super) fn take(&self) -> NonNull<Segment<T>> {
        match self.enter(Kept::pop).flatten() {
            Some(segment) => {
                // SAFETY: nobody uses a segment that was kept, and this one is kept no longer.
                unsafe { Segment::renew(segment) };
                segment
            }
            None => Segment::allocate(),
        }
    }

    /// Keeps a segment, or frees it.
    ///
    /// # Safety
    ///
    /// Nobody else uses the segment, now or later; what is left in its cells is forgotten.
    #[cold]
    pub(super) unsafe fn give(&self, segment: NonNull<Segment<T>>) {
        let kept = self.enter(|kept| {
            // SAFETY: as the caller says.
            unsafe { kept.push(segment) }
        });
        if kept != Some(true) {
            // SAFETY: as the caller says, and it was not kept.
            unsafe { Segment::free(segment) };
        }
    }

    /// Does a few instructions inside, alone; `None` if somebody else is there.
    fn enter<R>(&self, job: impl FnOnce(&mut Kept<T>) -> R) -> Option<R> {
        if self.busy.swap(true, order::stash_enter()) {
            return None;
        }
        let result = self.kept.with_mut(|kept| {
            // SAFETY: it was not busy, so nobody else has it until it is not again.
            let kept = unsafe { &mut *kept };
            job(kept)
        });
        self.busy.store(false, order::stash_leave());
        Some(result)
    }
}

impl<T> Kept<T> {
    fn pop(&mut self) -> Option<NonNull<Segment<T>>> {
        let top = self.top?;
        // SAFETY: live while it is kept.
        self.top = unsafe { top.as_ref() }.next();
        self.count -= 1;
        Some(top)
    }

    /// Is there room for it?
    ///
    /// # Safety
    ///
    /// If there is, the segment is the stash's: nobody else uses it.
    unsafe fn push(&mut self, segment: NonNull<Segment<T>>) -> bool {
        if self.count == const { most::<T>() } {
            return false;
        }
        // SAFETY: as the caller says.
        unsafe { Segment::retire(segment, self.top) };
        self.top = Some(segment);
        self.count += 1;
        true
    }
}

impl<T> Drop for Stash<T> {
    fn drop(&mut self) {
        self.kept.with_mut(|kept| {
            // SAFETY: nobody else is left.
            let kept = unsafe { &mut *kept };
            while let Some(segment) = kept.pop() {
                // SAFETY: nobody uses a segment that was kept, and this one is kept no longer.
                unsafe { Segment::free(segment) };
            }
        });
    }
}
