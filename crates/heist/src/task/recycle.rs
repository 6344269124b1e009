//! Reuse of slots: a stack of free slots per thread, and a depot through which threads exchange them.
//!
//! A slot is often made on one thread and freed on another. A thread that only frees slots would collect them, while
//! a thread that only makes slots would have to allocate. So threads exchange slots, by the *crate*: a thread with
//! two crates of free slots gives one to the depot, and a thread that has run out fetches one there. The depot's
//! lock is taken at most once in `CRATE` tasks.
//!
//! Memory comes in slabs of several crates, so that slots that are used one after the other lie side by side.
//! Slots that the depot does not keep go back to their slab, and a slab that is complete again goes back to the
//! allocator.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use super::slot::Slot;
use crate::sync::{Mutex, alloc, dealloc, lock, per_thread};

/// The number of slots in a crate. A guess: 4 KiB, large enough that the depot's lock does not matter.
const CRATE: usize = 63;

/// The number of crates in a slab.
const CRATES: usize = 16;

/// The largest number of crates that the depot keeps: slots for a million tasks, 64 MiB. A guess at what is
/// better kept than allocated again.
const DEPOT: usize = (1 << 20) / CRATE;

type Crate = [NonNull<Slot>; CRATE];

/// A block of memory for several crates. It is aligned to its size, so that the address of its slab can be computed
/// from that of a slot. That costs up to a page for the allocator's own use, which is little compared with the size.
#[repr(C, align(65536))]
struct Slab {
    /// The number of free slots that have come back. Touched under the depot's lock.
    home: usize,
    slots: [MaybeUninit<Slot>; CRATE * CRATES],
}

const _: () = assert!(size_of::<Slab>() == align_of::<Slab>(), "a slab fits its alignment");

impl Slab {
    /// Allocates a slab, puts all but one of its crates into the depot, and returns that one.
    #[cold]
    fn allocate(depot: &mut Depot) -> Crate {
        let layout = Layout::new::<Self>();
        // SAFETY: a slab is not zero-sized.
        let memory = unsafe { alloc(layout) };
        let Some(slab) = NonNull::new(memory.cast::<Self>()) else { handle_alloc_error(layout) };
        // SAFETY: fresh memory for a slab.
        let home = unsafe { &raw mut (*slab.as_ptr()).home };
        // SAFETY: fresh memory for a slab.
        unsafe { home.write(0) };
        let slot = |n: usize| {
            // SAFETY: within the array; only the address is taken.
            let slot = unsafe { &raw mut (*slab.as_ptr()).slots[n] };
            // SAFETY: not null, because it is within the allocation.
            unsafe { NonNull::new_unchecked(slot.cast()) }
        };
        let of_slab = |index: usize| std::array::from_fn(|n| slot(index * CRATE + n));
        depot.crates.extend((1..CRATES).rev().map(of_slab));
        of_slab(0)
    }

    /// Takes back a slot, and frees the slab if it was the last one.
    ///
    /// # Safety
    ///
    /// The slot is free and came from a slab, nothing uses it afterwards, and the depot is locked.
    unsafe fn take_back(slot: NonNull<Slot>) {
        let slab =
            slot.as_ptr().map_addr(|address| address & !(size_of::<Self>() - 1)).cast::<Self>();
        // SAFETY: a slab is alive while one of its slots has not come back, and its count is guarded by the depot's
        // lock.
        let home = unsafe { &mut (*slab).home };
        *home += 1;
        if *home == CRATE * CRATES {
            // SAFETY: it came from the allocator, with this layout, and none of its slots is in use any more.
            unsafe { dealloc(slab.cast(), Layout::new::<Self>()) };
        }
    }
}

/// The slots that threads exchange.
struct Depot {
    crates: Vec<Crate>,
    /// The number of pools. When the last one goes, the depot is emptied.
    pools: usize,
}

impl Depot {
    fn fetch(&mut self) -> Crate {
        self.crates.pop().unwrap_or_else(|| Slab::allocate(self))
    }
}

// SAFETY: the slots in its crates are free, and no other thread knows them.
unsafe impl Send for Depot {}

static DEPOT_OF_ALL: Mutex<Depot> = Mutex::new(Depot { crates: Vec::new(), pools: 0 });

/// A thread's own free slots: two crates at most.
struct Local {
    slots: [Cell<*mut Slot>; 2 * CRATE],
    len: Cell<usize>,
}

per_thread! {
    static LOCAL: Local =
        Local { slots: [const { Cell::new(ptr::null_mut()) }; 2 * CRATE], len: Cell::new(0) };
}

impl Local {
    #[inline]
    fn take(&self) -> NonNull<Slot> {
        if self.len.get() == 0 {
            self.fetch();
        }
        let len = self.len.get() - 1;
        self.len.set(len);
        // SAFETY: all entries below `len` are slots.
        unsafe { NonNull::new_unchecked(self.slots[len].get()) }
    }

    #[inline(always)]
    fn give(&self, slot: NonNull<Slot>) {
        if self.len.get() == 2 * CRATE {
            self.put_away();
        }
        let len = self.len.get();
        self.slots[len].set(slot.as_ptr());
        self.len.set(len + 1);
    }

    /// Gets a crate from the depot, or a new one, because there is no free slot.
    #[cold]
    #[inline(never)]
    fn fetch(&self) {
        let fetched = lock(&DEPOT_OF_ALL).fetch();
        for (place, slot) in self.slots.iter().zip(fetched) {
            place.set(slot.as_ptr());
        }
        self.len.set(CRATE);
    }

    /// Gives the older half to the depot, because there are too many.
    #[cold]
    #[inline(never)]
    fn put_away(&self) {
        let (older, newer) = self.slots.split_at(CRATE);
        // SAFETY: both halves are full.
        let full = std::array::from_fn(|n| unsafe { NonNull::new_unchecked(older[n].get()) });
        for (to, from) in older.iter().zip(newer) {
            to.set(from.get());
        }
        self.len.set(CRATE);
        let mut depot = lock(&DEPOT_OF_ALL);
        if depot.crates.len() < DEPOT && depot.pools > 0 {
            depot.crates.push(full);
        } else {
            release(&depot, full);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let slots = self.slots[..self.len.get()].iter().filter_map(|slot| NonNull::new(slot.get()));
        release(&lock(&DEPOT_OF_ALL), slots);
    }
}

/// Gives free slots back to their slabs.
fn release(_locked: &Depot, slots: impl IntoIterator<Item = NonNull<Slot>>) {
    for slot in slots {
        // SAFETY: free, from a slab, and not used afterwards; the depot is locked.
        unsafe { Slab::take_back(slot) };
    }
}

/// Returns memory for a slot, not initialized.
#[inline]
pub(super) fn take() -> NonNull<Slot> {
    // A thread whose thread-locals are being destroyed has no stack of slots any more.
    LOCAL.try_with(Local::take).unwrap_or_else(|_| take_one())
}

#[cold]
fn take_one() -> NonNull<Slot> {
    let mut depot = lock(&DEPOT_OF_ALL);
    let [slot, rest @ ..] = depot.fetch();
    release(&depot, rest);
    slot
}

/// Frees a slot.
///
/// # Safety
///
/// The slot came from [`take`], belongs to the caller alone, and its room is empty.
#[inline(always)]
pub(super) unsafe fn give(slot: NonNull<Slot>) {
    if LOCAL.try_with(|local| local.give(slot)).is_err() {
        release(&lock(&DEPOT_OF_ALL), [slot]);
    }
}

/// Makes the depot keep free slots for reuse as long as it exists. Every pool has one.
pub(crate) struct SlotLease(());

impl SlotLease {
    pub(crate) fn begin() -> Self {
        lock(&DEPOT_OF_ALL).pools += 1;
        Self(())
    }
}

impl Drop for SlotLease {
    /// Frees the depot's memory together with the last pool. Threads keep the slots on their own stacks until they
    /// end.
    fn drop(&mut self) {
        let mut depot = lock(&DEPOT_OF_ALL);
        depot.pools -= 1;
        if depot.pools == 0 {
            let crates = std::mem::take(&mut depot.crates);
            release(&depot, crates.into_iter().flatten());
        }
    }
}
