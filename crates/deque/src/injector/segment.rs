//! A run of an injector's cells, and who has it last.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::order;
use crate::sync::{
    AtomicBool, AtomicPtr, AtomicUsize, BLANK_IS_ZERO, Backoff, Ordering, UnsafeCell, alloc_blank,
    dealloc,
};

/// Positions from the start of one segment to the start of the next. The last position of each lap
/// has no cell: an index that stands there says that the next segment is being put in place. A
/// power of two, so that positions go on across the wrap-around.
#[cfg(not(loom))]
pub(super) const LAP: usize = 64;
/// Small, so that a model crosses borders.
#[cfg(loom)]
pub(super) const LAP: usize = 4;

/// The cells of a segment.
pub(super) const CELLS: usize = LAP - 1;

pub(super) struct Cell<T> {
    /// Set by the pusher when the value is there; read by the thief that claimed the cell.
    written: AtomicBool,
    /// Written by the pusher that claimed the cell's position at the tail; read, once `written`,
    /// by the thief that claimed it at the head.
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Cell<T> {
    fn new() -> Self {
        Self { written: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Pusher: puts the item there for the thief to see. The last thing that a pusher does to a
    /// segment, which may be gone before this returns: hence a pointer, and no `&self`.
    ///
    /// # Safety
    ///
    /// The caller has claimed this cell at the tail, and calls this once.
    #[inline]
    pub(super) unsafe fn write(cell: NonNull<Self>, item: T) {
        let cell = cell.as_ptr();
        // SAFETY: a cell that is not written keeps its segment alive.
        let value = unsafe { &(*cell).value };
        value.with_mut(|value| {
            // SAFETY: the cell is the caller's until `written`.
            unsafe { (*value).write(item) };
        });
        // SAFETY: as above.
        let written = unsafe { &(*cell).written };
        written.store(true, order::cell_publish());
    }

    /// Thief: waits for the pusher, if it is still on its way.
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
            // SAFETY: the pusher is done, and no other thief has the claim.
            unsafe { value.read() }
        });
        // SAFETY: written, and read once, by the caller alone.
        unsafe { value.assume_init() }
    }
}

pub(super) struct Segment<T> {
    /// The segment after this one; null until the pusher of the last cell links it. In the stash, the
    /// one below.
    next: AtomicPtr<Self>,
    /// How many cells have been read. The thief that completes it has the segment to itself.
    left: AtomicUsize,
    /// Stands for the segment's memory, so that a model sees its making, its use and its end, and
    /// where one life of it ends and the next begins. It takes no space.
    memory: UnsafeCell<()>,
    cells: [Cell<T>; CELLS],
}

impl<T> Segment<T> {
    /// A segment with nothing in it, made in place: its items may be too large for a stack.
    pub(super) fn allocate() -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout is not zero-sized: it holds atomics.
        let raw = unsafe { alloc_blank(layout) };
        let Some(segment) = NonNull::new(raw.cast::<Self>()) else {
            alloc::alloc::handle_alloc_error(layout)
        };
        let at = segment.as_ptr();
        // SAFETY: fresh memory of the right layout, nobody else knows it; likewise for the others.
        let next = unsafe { &raw mut (*at).next };
        // SAFETY: see above.
        unsafe { next.write(AtomicPtr::new(ptr::null_mut())) };
        // SAFETY: see above.
        let left = unsafe { &raw mut (*at).left };
        // SAFETY: see above.
        unsafe { left.write(AtomicUsize::new(0)) };
        // SAFETY: see above.
        let memory = unsafe { &raw mut (*at).memory };
        // SAFETY: see above.
        unsafe { memory.write(UnsafeCell::new(())) };
        // SAFETY: see above.
        let cells = unsafe { &raw mut (*at).cells }.cast::<Cell<T>>();
        // A cell of zeroes is a cell with nothing in it, but to a model checker it must be said.
        if !BLANK_IS_ZERO {
            for n in 0..CELLS {
                // SAFETY: `n` is within the array.
                let cell = unsafe { cells.add(n) };
                // SAFETY: see above.
                unsafe { cell.write(Cell::new()) };
            }
        }
        // SAFETY: initialized above.
        unsafe { segment.as_ref() }.memory.with_mut(|_| ());
        segment
    }

    /// # Safety
    ///
    /// `offset < CELLS`.
    #[inline(always)]
    pub(super) unsafe fn cell(&self, offset: usize) -> &Cell<T> {
        self.memory.with(|_| ());
        // SAFETY: the caller says that it is within the array.
        unsafe { self.cells.get_unchecked(offset) }
    }

    /// The pusher of the last cell says what comes next.
    pub(super) fn link(&self, next: NonNull<Self>) {
        self.next.store(next.as_ptr(), order::next_publish());
    }

    /// The segment after this one, waiting for the pusher of the last cell to link it.
    pub(super) fn follow(&self) -> NonNull<Self> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(next) = NonNull::new(self.next.load(order::next_follow())) {
                return next;
            }
            backoff.wait();
        }
    }

    /// Thief: has read `cells` of the cells. Were they the last? Then nobody else uses the segment, and
    /// it is the caller's.
    ///
    /// # Safety
    ///
    /// `segment` is live, the caller has read that many cells of it, tells so once, and does not
    /// use it afterwards, unless it is the last.
    #[inline]
    #[must_use]
    pub(super) unsafe fn leave(segment: NonNull<Self>, cells: usize) -> bool {
        // SAFETY: live until all cells are left, and these are not yet.
        let left = unsafe { &(*segment.as_ptr()).left };
        // All cells read: every pusher and every other thief is done with the segment. A pusher's last
        // act is `written`, a thief's is this count.
        let last = left.fetch_add(cells, order::segment_leave()) + cells == CELLS;
        if last {
            // As in `Shared`: an acquire load of what the other thieves released.
            left.load(order::segment_last());
        }
        last
    }

    /// Puts the segment away, on top of another one. What is left in its cells is forgotten.
    ///
    /// # Safety
    ///
    /// Live, and nobody else uses it.
    pub(super) unsafe fn retire(segment: NonNull<Self>, below: Option<NonNull<Self>>) {
        // SAFETY: live, as the caller says.
        let segment = unsafe { segment.as_ref() };
        segment.memory.with_mut(|_| ());
        let below = below.map_or(ptr::null_mut(), NonNull::as_ptr);
        // Ordering: relaxed. Nobody else looks before the stash is left.
        segment.next.store(below, Ordering::Relaxed);
    }

    /// Makes a segment that was put away as good as new.
    ///
    /// # Safety
    ///
    /// Live, and nobody else uses it.
    pub(super) unsafe fn renew(segment: NonNull<Self>) {
        // SAFETY: live, as the caller says.
        let segment = unsafe { segment.as_ref() };
        segment.memory.with_mut(|_| ());
        // Ordering: relaxed, for all of these. Nobody else looks before the segment is linked, or the
        // tail moves into it: `next_publish` and `tail_advance` bring them along.
        segment.next.store(ptr::null_mut(), Ordering::Relaxed);
        segment.left.store(0, Ordering::Relaxed);
        for cell in &segment.cells {
            cell.written.store(false, Ordering::Relaxed);
        }
    }

    /// # Safety
    ///
    /// Nobody else uses the segment, now or later; what is left in its cells is forgotten.
    #[cold]
    pub(super) unsafe fn free(segment: NonNull<Self>) {
        // SAFETY: live until the end of this call.
        unsafe { segment.as_ref() }.memory.with_mut(|_| ());
        // SAFETY: exclusive, as the caller says. Runs no code of `T`'s: a `MaybeUninit` drops
        // nothing.
        unsafe { segment.drop_in_place() };
        // SAFETY: made by `alloc_blank` with this layout in `allocate`.
        unsafe { dealloc(segment.as_ptr().cast(), Layout::new::<Self>()) };
    }

    /// The link, for one who has the segment alone.
    pub(super) fn next(&self) -> Option<NonNull<Self>> {
        // Ordering: relaxed. Exclusive access came with an ordering of its own.
        NonNull::new(self.next.load(Ordering::Relaxed))
    }
}
