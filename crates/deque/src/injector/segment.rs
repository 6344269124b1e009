//! A segment: an array of an injector's cells, and how the last thief to leave it gets exclusive access.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::order;
use crate::sync::{
    ALLOC_IS_ZEROED, AtomicBool, AtomicPtr, AtomicUsize, Backoff, Ordering, UnsafeCell,
    alloc_maybe_zeroed, dealloc,
};

/// The number of positions from the start of one segment to the start of the next. The last position of
/// each lap has no cell: an index at that position means that the next segment is being put in place. It is
/// a power of two, so that positions stay valid across the wrap-around.
#[cfg(not(loom))]
pub(super) const LAP: usize = 64;
/// Small, so that a model crosses segment boundaries.
#[cfg(loom)]
pub(super) const LAP: usize = 4;

/// The number of cells of a segment.
pub(super) const CELLS: usize = LAP - 1;

/// A place for one item.
pub(super) struct Cell<T> {
    /// Set by the pusher when it has written the value; read by the thief that claimed the cell.
    written: AtomicBool,
    /// The item. Written by the pusher that claimed the position of the cell at the tail; read, after
    /// `written` is set, by the thief that claimed the position at the head.
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Cell<T> {
    fn new() -> Self {
        Self { written: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Pusher: writes the item and publishes it to the thief. This is the last access of the pusher to the
    /// segment, which may be freed before this function returns. It therefore takes a pointer instead of
    /// `&self`.
    ///
    /// # Safety
    ///
    /// The caller has claimed this cell at the tail, and calls this once.
    #[inline]
    pub(super) unsafe fn write(cell: NonNull<Self>, item: T) {
        let cell = cell.as_ptr();
        // SAFETY: a cell that is not written yet keeps its segment alive.
        let value = unsafe { &(*cell).value };
        value.with_mut(|value| {
            // SAFETY: only the caller accesses the value until `written` is set.
            unsafe { (*value).write(item) };
        });
        // SAFETY: the cell is still not written, so its segment is alive.
        let written = unsafe { &(*cell).written };
        written.store(true, order::cell_publish());
    }

    /// Thief: waits until the pusher has written the item.
    #[inline]
    pub(super) fn wait(&self) {
        let mut backoff = Backoff::new();
        while !self.written.load(order::cell_read()) {
            backoff.wait();
        }
    }

    /// Thief: takes the item.
    ///
    /// # Safety
    ///
    /// The caller has claimed this cell at the head, has waited for its pusher, and calls this once.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        let value = self.value.with(|value| {
            // SAFETY: the pusher has finished, and no other thief has claimed the cell.
            unsafe { value.read() }
        });
        // SAFETY: the pusher wrote the value, and only the caller reads it, once.
        unsafe { value.assume_init() }
    }
}

/// An array of cells, linked to the next one.
pub(super) struct Segment<T> {
    /// The next segment; null until the pusher of the last cell links it. In the stash, the segment below
    /// this one.
    next: AtomicPtr<Self>,
    /// The number of cells that have been read. The thief that completes it has exclusive access to the
    /// segment.
    cells_read: AtomicUsize,
    /// Represents the memory of the segment, so that a model checks that allocation, use, reuse and
    /// deallocation of the segment are ordered. It takes no space.
    memory: UnsafeCell<()>,
    cells: [Cell<T>; CELLS],
}

impl<T> Segment<T> {
    /// Allocates an empty segment and initializes it in place, because its cells may be too large for the
    /// stack.
    pub(super) fn allocate() -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout is not zero-sized: it holds atomics.
        let raw = unsafe { alloc_maybe_zeroed(layout) };
        let Some(segment) = NonNull::new(raw.cast::<Self>()) else {
            alloc::alloc::handle_alloc_error(layout)
        };
        let at = segment.as_ptr();
        // SAFETY: the memory is new and of the right layout, so the field is within it.
        let next = unsafe { &raw mut (*at).next };
        // SAFETY: no other thread knows the memory, and `next` is aligned, as the layout is that of a
        // segment.
        unsafe { next.write(AtomicPtr::new(ptr::null_mut())) };
        // SAFETY: as for `next`.
        let cells_read = unsafe { &raw mut (*at).cells_read };
        // SAFETY: as for `next`.
        unsafe { cells_read.write(AtomicUsize::new(0)) };
        // SAFETY: as for `next`.
        let memory = unsafe { &raw mut (*at).memory };
        // SAFETY: as for `next`.
        unsafe { memory.write(UnsafeCell::new(())) };
        // SAFETY: as for `next`.
        let cells = unsafe { &raw mut (*at).cells }.cast::<Cell<T>>();
        // A cell that is all zeroes is an empty cell on the real machine. The atomics of the model checkers
        // have to be constructed.
        if !ALLOC_IS_ZEROED {
            for n in 0..CELLS {
                // SAFETY: `n` is within the array.
                let cell = unsafe { cells.add(n) };
                // SAFETY: as for `next`.
                unsafe { cell.write(Cell::new()) };
            }
        }
        // SAFETY: all fields are initialized.
        unsafe { segment.as_ref() }.memory.with_mut(|_| ());
        segment
    }

    /// Returns the cell at `offset`.
    ///
    /// # Safety
    ///
    /// `offset < CELLS`.
    #[inline(always)]
    pub(super) unsafe fn cell(&self, offset: usize) -> &Cell<T> {
        self.memory.with(|_| ());
        // SAFETY: the caller guarantees that the offset is within the array.
        unsafe { self.cells.get_unchecked(offset) }
    }

    /// Pusher of the last cell: publishes the next segment.
    pub(super) fn link(&self, next: NonNull<Self>) {
        self.next.store(next.as_ptr(), order::next_publish());
    }

    /// Waits until the pusher of the last cell has linked the next segment, and returns it.
    pub(super) fn wait_for_next(&self) -> NonNull<Self> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(next) = NonNull::new(self.next.load(order::next_follow())) {
                return next;
            }
            backoff.wait();
        }
    }

    /// Thief: records that it has read `cells` cells. Returns whether these were the last ones. In that
    /// case no other thread uses the segment any more, and the caller has exclusive access to it.
    ///
    /// # Safety
    ///
    /// `segment` is alive, and the caller has read that many of its cells and has not recorded them yet. The
    /// caller does not use the segment afterwards, unless this returns true.
    #[inline]
    #[must_use]
    pub(super) unsafe fn leave(segment: NonNull<Self>, cells: usize) -> bool {
        // SAFETY: the segment is alive until all cells are recorded, and these are not recorded yet.
        let cells_read = unsafe { &(*segment.as_ptr()).cells_read };
        // When all cells are read, every pusher and every other thief has finished with the segment: the last
        // access of a pusher is its store to `written`, that of a thief is this addition.
        let last = cells_read.fetch_add(cells, order::segment_leave()) + cells == CELLS;
        if last {
            // An acquire load instead of a fence, as in `Shared`: it synchronizes with the other thieves.
            cells_read.load(order::segment_last());
        }
        last
    }

    /// Links the segment to the one below it in the stash. Items that are left in its cells are leaked.
    ///
    /// # Safety
    ///
    /// The segment is alive, and no other thread uses it.
    pub(super) unsafe fn retire(segment: NonNull<Self>, below: Option<NonNull<Self>>) {
        // SAFETY: the caller guarantees that the segment is alive.
        let segment = unsafe { segment.as_ref() };
        segment.memory.with_mut(|_| ());
        let below = below.map_or(ptr::null_mut(), NonNull::as_ptr);
        // Ordering: relaxed. No other thread reads it before `stash_leave`.
        segment.next.store(below, Ordering::Relaxed);
    }

    /// Makes a segment from the stash empty again, like a new one.
    ///
    /// # Safety
    ///
    /// The segment is alive, and no other thread uses it.
    pub(super) unsafe fn reset(segment: NonNull<Self>) {
        // SAFETY: the caller guarantees that the segment is alive.
        let segment = unsafe { segment.as_ref() };
        segment.memory.with_mut(|_| ());
        // Ordering: relaxed, for all of these stores. No other thread reads them before the segment is linked
        // or the tail moves into it, and `next_publish` and `tail_advance` publish them.
        segment.next.store(ptr::null_mut(), Ordering::Relaxed);
        segment.cells_read.store(0, Ordering::Relaxed);
        for cell in &segment.cells {
            cell.written.store(false, Ordering::Relaxed);
        }
    }

    /// Frees the segment. Items that are left in its cells are leaked.
    ///
    /// # Safety
    ///
    /// The segment is alive, and no other thread uses it, now or later.
    #[cold]
    pub(super) unsafe fn free(segment: NonNull<Self>) {
        // SAFETY: the segment is alive until the end of this call.
        unsafe { segment.as_ref() }.memory.with_mut(|_| ());
        // SAFETY: the caller guarantees exclusive access. This runs no destructor of `T`, because a
        // `MaybeUninit` drops nothing.
        unsafe { segment.drop_in_place() };
        // SAFETY: `allocate` allocated the memory with this layout.
        unsafe { dealloc(segment.as_ptr().cast(), Layout::new::<Self>()) };
    }

    /// Returns the next segment. The caller has exclusive access to this one.
    pub(super) fn next(&self) -> Option<NonNull<Self>> {
        // Ordering: relaxed. The caller has exclusive access, and whatever gave it that access is ordered.
        NonNull::new(self.next.load(Ordering::Relaxed))
    }
}
