//! Memory of a simulation: what an allocation costs, and addresses that are the same in every run.
//!
//! Which values share a cache line depends on the addresses that the allocator returns. A general allocator returns others
//! when other code has run before. A program that installs [`Allocator`] gets the same placement for each simulation:
//! every simulation has a fresh region, in which each virtual thread has chunks and free lists of its own, as allocators
//! with thread caches have.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::arena;
use crate::kernel::enter;
use crate::report::Activity;

thread_local! {
    /// Whether code of a virtual thread runs, and not the simulator.
    static IS_USER: Cell<bool> = const { Cell::new(false) };
}

/// While it exists, code of a virtual thread runs.
pub(crate) struct UserMode;

impl UserMode {
    pub(crate) fn enter() -> Self {
        IS_USER.set(true);
        Self
    }
}

impl Drop for UserMode {
    fn drop(&mut self) {
        IS_USER.set(false);
    }
}

/// While it exists, the simulator runs, whose allocations cost no virtual time.
pub(crate) struct KernelMode(bool);

impl KernelMode {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self(IS_USER.replace(false))
    }
}

impl Drop for KernelMode {
    #[inline]
    fn drop(&mut self) {
        IS_USER.set(self.0);
    }
}

/// The region of the simulation on this thread of the operating system. It is given back when this is dropped.
pub(crate) struct Arena(());

impl Arena {
    pub(crate) fn open() -> Self {
        arena::open();
        Self(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        arena::close();
    }
}

/// An allocator for programs that run simulations. Code of virtual threads gets memory of its simulation, and is charged
/// for it. All other code uses the allocator of the system.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;
/// # fn main() {}
/// ```
///
/// Without it, allocations of virtual threads cost nothing, and two runs with the same seed may differ slightly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

// SAFETY: every block comes from `System` or from an arena, both of which return distinct blocks that fit the layout; and
// `arena::contains` tells by the address to which of them a block goes back.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_USER.get()
            && let Some(block) = allocate(layout)
        {
            return block;
        }
        // SAFETY: the size is not zero, as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_USER.get()
            && let Some(block) = allocate(layout)
        {
            // SAFETY: the block is new, and as large as the layout says.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        // SAFETY: the size is not zero, as the caller has promised. The system knows which pages are zero already.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !IS_USER.get() && !arena::contains(block) {
            // SAFETY: not from an arena, so it came from `System`, with this layout; the caller has promised the rest. The
            // system can move pages instead of copying them.
            return unsafe { System.realloc(block, layout, new_size) };
        }
        // SAFETY: the caller has promised that the new size is not zero and does not overflow with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: as above.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both blocks have at least this many bytes, and a new block does not overlap another.
            unsafe { block.copy_to_nonoverlapping(new, layout.size().min(new_size)) };
            // SAFETY: the block came from this allocator with this layout, and is not used any more.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if arena::contains(block) {
            free(block, layout);
            return;
        }
        // SAFETY: not from an arena, so it came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Allocates in the region of this simulation. Returns `None` if there is none, or if it is full.
#[cold]
fn allocate(layout: Layout) -> Option<*mut u8> {
    let thread = enter(|kernel| {
        let time = kernel.ticks.alloc;
        kernel.spend(Activity::Allocation, time);
        kernel.current
    })?;
    let _mode = KernelMode::enter();
    arena::allocate(thread, layout)
}

/// Frees a block of a region. Code outside of a simulation does not reuse it.
#[cold]
fn free(block: *mut u8, layout: Layout) {
    let thread = if IS_USER.get() {
        enter(|kernel| {
            let time = kernel.ticks.free;
            kernel.spend(Activity::Allocation, time);
            kernel.current
        })
    } else {
        None
    };
    let _mode = KernelMode::enter();
    arena::free(thread, block, layout);
}
