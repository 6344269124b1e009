//! Where slots come from and go to: a stack of free slots per thread, and a depot between threads.
//!
//! A slot is made on one thread and given back on another as often as not, so a thread that only
//! gives would collect what a thread that only takes must allocate. So they trade, by the *crate* of
//! slots: a thread with two crates of free slots gives one to the depot, one that has run out fetches
//! one there. The depot's lock is taken once in `CRATE` tasks at most.
//!
//! Memory comes in slabs of several crates, so that slots that are used one after the other lie side by
//! side. What the depot has no use for goes back to its slab, and a slab that is whole again goes
//! back to the allocator.

use std::alloc::Layout;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use super::slot::Slot;
use crate::sync::{Mutex, lock};

/// Slots in a crate. A guess: 4 KiB, and the depot's lock is out of the picture.
const CRATE: usize = 63;

/// Crates in a slab.
const CRATES: usize = 16;

/// The most crates that the depot keeps: slots for a million tasks, 64 MiB. A guess at what one
/// would rather keep than fetch again.
const DEPOT: usize = (1 << 20) / CRATE;

type Crate = [NonNull<Slot>; CRATE];

/// Aligned to its size, so that a slot's address tells its slab's. That costs up to a page for the
/// allocator's use, which is little beside this size.
#[repr(C, align(65536))]
struct Slab {
    /// How many of its slots nobody has. Touched under the depot's lock.
    home: usize,
    slots: [MaybeUninit<Slot>; CRATE * CRATES],
}

const _: () = assert!(size_of::<Slab>() == align_of::<Slab>(), "a slab fits its alignment");

impl Slab {
    /// Memory for a crate, and for others, which go to the depot.
    #[cold]
    fn allocate(depot: &mut Depot) -> Crate {
        let layout = Layout::new::<Self>();
        // SAFETY: a slab is not zero-sized.
        let memory = unsafe { std::alloc::alloc(layout) };
        let Some(slab) = NonNull::new(memory.cast::<Self>()) else {
            std::alloc::handle_alloc_error(layout)
        };
        // SAFETY: fresh memory for a slab.
        let home = unsafe { &raw mut (*slab.as_ptr()).home };
        // SAFETY: likewise.
        unsafe { home.write(0) };
        let slot = |n: usize| {
            // SAFETY: within the array; an address, and no more.
            let slot = unsafe { &raw mut (*slab.as_ptr()).slots[n] };
            // SAFETY: not null: within the allocation.
            unsafe { NonNull::new_unchecked(slot.cast()) }
        };
        let of_slab = |index: usize| std::array::from_fn(|n| slot(index * CRATE + n));
        depot.crates.extend((1..CRATES).rev().map(of_slab));
        of_slab(0)
    }

    /// Takes back a slot, and is gone if it was the last one.
    ///
    /// # Safety
    ///
    /// The slot is free and from a slab, nobody uses it afterwards, and the depot is locked.
    unsafe fn take_back(slot: NonNull<Slot>) {
        let slab =
            slot.as_ptr().map_addr(|address| address & !(size_of::<Self>() - 1)).cast::<Self>();
        // SAFETY: a slab is alive while a slot of it is out, and its count is the depot's.
        let home = unsafe { &mut (*slab).home };
        *home += 1;
        if *home == CRATE * CRATES {
            // SAFETY: from the allocator, with this layout, and nobody has a slot of it any more.
            unsafe { std::alloc::dealloc(slab.cast(), Layout::new::<Self>()) };
        }
    }
}

/// What threads pass on to each other.
struct Depot {
    crates: Vec<Crate>,
    /// How many pools there are. With the last one, the depot is emptied.
    pools: usize,
}

impl Depot {
    fn fetch(&mut self) -> Crate {
        self.crates.pop().unwrap_or_else(|| Slab::allocate(self))
    }
}

// SAFETY: the slots in its crates are free, and nobody else knows them.
unsafe impl Send for Depot {}

static DEPOT_OF_ALL: Mutex<Depot> = Mutex::new(Depot { crates: Vec::new(), pools: 0 });

/// A thread's own: two crates at most.
struct Local {
    slots: [Cell<*mut Slot>; 2 * CRATE],
    len: Cell<usize>,
}

std::thread_local! {
    static LOCAL: Local = const {
        Local { slots: [const { Cell::new(ptr::null_mut()) }; 2 * CRATE], len: Cell::new(0) }
    };
}

impl Local {
    #[inline]
    fn take(&self) -> NonNull<Slot> {
        if self.len.get() == 0 {
            self.fetch();
        }
        let len = self.len.get() - 1;
        self.len.set(len);
        // SAFETY: below `len` there are slots.
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

    /// There is none: a crate from the depot, or a new one.
    #[cold]
    #[inline(never)]
    fn fetch(&self) {
        let fetched = lock(&DEPOT_OF_ALL).fetch();
        for (place, slot) in self.slots.iter().zip(fetched) {
            place.set(slot.as_ptr());
        }
        self.len.set(CRATE);
    }

    /// There are too many: the older half goes to the depot.
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
        // SAFETY: free, from a slab, and dropped here; the depot is locked.
        unsafe { Slab::take_back(slot) };
    }
}

/// Memory for a slot, not initialized.
#[inline]
pub(super) fn take() -> NonNull<Slot> {
    // A thread that is being torn down has no stack of slots any more.
    LOCAL.try_with(Local::take).unwrap_or_else(|_| take_one())
}

#[cold]
fn take_one() -> NonNull<Slot> {
    let mut depot = lock(&DEPOT_OF_ALL);
    let [slot, rest @ ..] = depot.fetch();
    release(&depot, rest);
    slot
}

/// # Safety
///
/// From [`take`], the caller's alone, and its room is empty.
#[inline(always)]
pub(super) unsafe fn give(slot: NonNull<Slot>) {
    if LOCAL.try_with(|local| local.give(slot)).is_err() {
        release(&lock(&DEPOT_OF_ALL), [slot]);
    }
}

/// Says that there is a pool, and that slots are worth keeping, until it is dropped.
pub(crate) struct SlotLease(());

impl SlotLease {
    pub(crate) fn begin() -> Self {
        lock(&DEPOT_OF_ALL).pools += 1;
        Self(())
    }
}

impl Drop for SlotLease {
    /// With the last pool the memory goes back; what threads have on their stacks is theirs until
    /// they end.
    fn drop(&mut self) {
        let mut depot = lock(&DEPOT_OF_ALL);
        depot.pools -= 1;
        if depot.pools == 0 {
            let crates = std::mem::take(&mut depot.crates);
            release(&depot, crates.into_iter().flatten());
        }
    }
}
