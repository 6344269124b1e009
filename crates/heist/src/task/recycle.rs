//! Where slots come from and go to: small stacks of free slots per thread, and a depot between them.
//!
//! A slot is made on one thread and given back on another as often as not, so a thread that only
//! gives would collect what a thread that only takes must allocate. Each thread has two stacks, or
//! *magazines*: the one in use and one that is full or empty; a full one too many goes to the
//! depot, and a thread that has run out fetches one there. The depot's lock is taken once in
//! `MAGAZINE` tasks at most.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{self, NonNull};

use super::slot::Slot;
use crate::sync::{Mutex, lock};

/// Slots in a full magazine. A guess: 4 KiB, and the depot's lock is out of the picture.
const MAGAZINE: usize = 64;

/// The most magazines that the depot keeps: slots for a million tasks, 64 MiB. What a larger burst
/// needed goes back to the allocator. A guess at what one would rather keep than fetch again.
const DEPOT: usize = 1 << 14;

/// A free slot: where the next one is.
struct Free {
    next: *mut Free,
}

/// A stack of free slots, linked through them.
struct Magazine {
    top: *mut Free,
    len: usize,
}

// SAFETY: it owns the free slots that it links, and nothing else points to them.
unsafe impl Send for Magazine {}

impl Magazine {
    const EMPTY: Self = Self { top: ptr::null_mut(), len: 0 };

    #[inline]
    fn pop(&mut self) -> Option<NonNull<Slot>> {
        let top = NonNull::new(self.top)?;
        // SAFETY: a slot in a magazine is free memory that starts with a link.
        self.top = unsafe { (*top.as_ptr()).next };
        self.len -= 1;
        Some(top.cast())
    }

    #[inline]
    fn push(&mut self, slot: NonNull<Slot>) {
        let free = slot.cast::<Free>();
        // SAFETY: the slot is free, so its memory is ours, and it is larger than a link.
        unsafe { free.write(Free { next: self.top }) };
        self.top = free.as_ptr();
        self.len += 1;
    }

    fn release(mut self) {
        while let Some(slot) = self.pop() {
            // SAFETY: from the allocator, with this layout; a slot has nothing to drop.
            unsafe { std::alloc::dealloc(slot.as_ptr().cast(), Layout::new::<Slot>()) };
        }
    }
}

/// What threads pass on to each other.
struct Depot {
    full: Vec<Magazine>,
    /// How many pools there are. With the last one, the depot is emptied.
    pools: usize,
}

static DEPOT_OF_ALL: Mutex<Depot> = Mutex::new(Depot { full: Vec::new(), pools: 0 });

/// A thread's own.
struct Local {
    in_use: Cell<Magazine>,
    /// Full or empty.
    other: Cell<Magazine>,
}

std::thread_local! {
    static LOCAL: Local = const {
        Local { in_use: Cell::new(Magazine::EMPTY), other: Cell::new(Magazine::EMPTY) }
    };
}

impl Local {
    #[inline]
    fn take(&self) -> Option<NonNull<Slot>> {
        let mut magazine = self.in_use.replace(Magazine::EMPTY);
        if magazine.len == 0 {
            magazine = self.refill();
        }
        let slot = magazine.pop();
        self.in_use.set(magazine);
        slot
    }

    #[cold]
    fn refill(&self) -> Magazine {
        let other = self.other.replace(Magazine::EMPTY);
        if other.len > 0 {
            return other;
        }
        lock(&DEPOT_OF_ALL).full.pop().unwrap_or(Magazine::EMPTY)
    }

    #[inline]
    fn give(&self, slot: NonNull<Slot>) {
        let mut magazine = self.in_use.replace(Magazine::EMPTY);
        if magazine.len == MAGAZINE {
            self.put_away(magazine);
            magazine = Magazine::EMPTY;
        }
        magazine.push(slot);
        self.in_use.set(magazine);
    }

    #[cold]
    fn put_away(&self, full: Magazine) {
        let other = self.other.replace(full);
        if other.len > 0 {
            store(other);
        }
    }
}

/// Into the depot, if it has room.
fn store(magazine: Magazine) {
    let mut depot = lock(&DEPOT_OF_ALL);
    if depot.full.len() < DEPOT && depot.pools > 0 {
        depot.full.push(magazine);
    } else {
        drop(depot);
        magazine.release();
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for cell in [&self.in_use, &self.other] {
            let magazine = cell.replace(Magazine::EMPTY);
            if magazine.len > 0 {
                store(magazine);
            }
        }
    }
}

/// Memory for a slot, not initialized.
#[inline]
pub(super) fn take() -> NonNull<Slot> {
    // A thread that is being torn down has no magazines any more.
    match LOCAL.try_with(Local::take) {
        Ok(Some(slot)) => slot,
        _ => allocate(),
    }
}

#[cold]
fn allocate() -> NonNull<Slot> {
    let layout = Layout::new::<Slot>();
    // SAFETY: a slot is not zero-sized.
    let memory = unsafe { std::alloc::alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// # Safety
///
/// From [`take`], the caller's alone, and its room is empty.
#[inline]
pub(super) unsafe fn give(slot: NonNull<Slot>) {
    if LOCAL.try_with(|local| local.give(slot)).is_err() {
        // SAFETY: from the allocator, with this layout; a slot has nothing to drop.
        unsafe { std::alloc::dealloc(slot.as_ptr().cast(), Layout::new::<Slot>()) };
    }
}

/// There is a pool more, and slots are worth keeping.
pub(crate) fn pool_opened() {
    lock(&DEPOT_OF_ALL).pools += 1;
}

/// There is a pool less. With the last one the memory goes back; what threads still have is theirs
/// until they end.
pub(crate) fn pool_closed() {
    let mut depot = lock(&DEPOT_OF_ALL);
    depot.pools -= 1;
    if depot.pools == 0 {
        let full = std::mem::take(&mut depot.full);
        drop(depot);
        full.into_iter().for_each(Magazine::release);
    }
}
