//! Reuse of slots: a stack of free slots per thread, and depots through which threads exchange them.
//!
//! A slot is often made on one thread and freed on another. A thread that only frees slots would collect them, while
//! a thread that only makes slots would have to allocate. So threads exchange slots, by the *crate*: a thread with
//! two crates of free slots gives one to a depot, and a thread that has run out fetches one there. A depot's lock is
//! taken at most once in `CRATE` tasks.
//!
//! Threads are divided into *groups* with a depot each, because the lock of a single depot would be too busy in a large
//! pool. The workers of a cluster and the threads outside that turn to it are a group: the ones free the slots of the
//! tasks that the others push. A thread whose depot is empty fetches crates from the depots of other groups before it
//! allocates. If the pools have one cluster each, there is one group.
//!
//! Memory comes in slabs of several crates, so that slots that are used one after the other lie side by side.
//! Slots that no depot keeps go back to their slab, and a slab that is complete again goes back to the allocator.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use super::returned::Returned;
use super::slot::Slot;
use crate::cluster::MAX_CLUSTERS;
use crate::sync::{
    AtomicUsize, Mutex, MutexGuard, Ordering, Padded, UnsafeCell, alloc, dealloc, lock, per_thread,
    prefetch_for_write,
};

/// The number of slots in a crate. A guess: 4 KiB, large enough that the depot's lock does not matter.
const CRATE: usize = 63;

/// The number of crates in a slab.
const CRATES: usize = 16;

/// The largest number of crates that all depots keep: slots for a million tasks, 64 MiB. A guess at what is better kept
/// than allocated again.
const KEPT: usize = (1 << 20) / CRATE;

/// The number of other groups whose depots a thread looks into before it allocates. A guess.
const LOOKS: usize = 4;

type Crate = [NonNull<Slot>; CRATE];

/// A block of memory for several crates. It is aligned to its size, so that the address of its slab can be computed
/// from that of a slot. That costs up to a page for the allocator's own use, which is little compared with the size.
#[repr(C, align(65536))]
struct Slab {
    /// The number of free slots that have come back.
    returned: Returned,
    slots: [MaybeUninit<Slot>; CRATE * CRATES],
}

const _: () = assert!(size_of::<Slab>() == align_of::<Slab>(), "a slab fits its alignment");

impl Slab {
    /// Allocates a slab, puts all but one of its crates into a depot, and returns that one.
    #[cold]
    fn allocate(depot: &mut Depot) -> Crate {
        let layout = Layout::new::<Self>();
        // SAFETY: a slab is not zero-sized.
        let memory = unsafe { alloc(layout) };
        let Some(slab) = NonNull::new(memory.cast::<Self>()) else { handle_alloc_error(layout) };
        // SAFETY: fresh memory for a slab.
        let returned = unsafe { &raw mut (*slab.as_ptr()).returned };
        // SAFETY: fresh memory for a slab.
        unsafe { returned.write(Returned::none()) };
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

    /// Returns the slab that a slot came from.
    fn of(slot: NonNull<Slot>) -> *mut Self {
        slot.as_ptr().map_addr(|address| address & !(size_of::<Self>() - 1)).cast()
    }

    /// Takes back so many slots, and frees the slab if they were the last ones.
    ///
    /// # Safety
    ///
    /// That many slots of this slab are free, nothing uses them afterwards, and they come back only once.
    unsafe fn take_back(slab: *mut Self, slots: usize) {
        // SAFETY: a slab is alive while one of its slots has not come back.
        let returned = unsafe { &(*slab).returned };
        if returned.add(slots, CRATE * CRATES) {
            // SAFETY: it came from the allocator, with this layout, and none of its slots is in use any more: what other
            // threads have done with them happens before, by the count.
            unsafe { dealloc(slab.cast(), Layout::new::<Self>()) };
        }
    }
}

/// The slots that the threads of a group exchange.
struct Depot {
    crates: Vec<Crate>,
    /// The largest number of crates to keep. Zero if there is no pool.
    limit: usize,
    /// The group into whose depot the next look goes first: the one from which crates were last fetched, or the next one
    /// after those that had none.
    donor: usize,
}

impl Depot {
    const EMPTY: Self = Self { crates: Vec::new(), limit: 0, donor: 0 };

    /// Returns a crate: one that is kept here, else one that another group keeps, else a new one.
    fn fetch(&mut self, group: usize) -> Crate {
        if self.crates.is_empty() {
            self.fetch_from_others(group);
        }
        self.crates.pop().unwrap_or_else(|| Slab::allocate(self))
    }

    /// Moves crates of another group here, half of them and no more than a slab has. Looks at [`LOOKS`] groups only, the
    /// next time at the next ones: if there are many, a look at each would take longer than to allocate.
    #[cold]
    fn fetch_from_others(&mut self, group: usize) {
        let groups = GROUPS.load(Ordering::Relaxed);
        for _ in 0..LOOKS.min(groups) {
            let other = self.donor % groups;
            if other != group {
                self.fetch_from(&DEPOTS[other]);
            }
            if !self.crates.is_empty() {
                return;
            }
            self.donor = other + 1;
        }
    }

    fn fetch_from(&mut self, other: &Mutex<Self>) {
        // It waits for no lock while it holds one, whatever the order of the two.
        let Ok(mut from) = other.try_lock() else { return };
        let count = from.crates.len().div_ceil(2).min(CRATES);
        let kept = from.crates.len() - count;
        self.crates.extend(from.crates.drain(kept..));
    }

    /// Gives back to their slabs what is more than the limit.
    fn release_rest(&mut self) {
        if self.crates.len() > self.limit {
            release(self.crates.drain(self.limit..).flatten());
        }
        if self.limit == 0 {
            self.crates = Vec::new();
        }
    }
}

// SAFETY: the slots in its crates are free, and no other thread knows them.
unsafe impl Send for Depot {}

/// The depots, by group. All but the first [`GROUPS`] keep nothing.
static DEPOTS: [Padded<Mutex<Depot>>; MAX_CLUSTERS] =
    [const { Padded(Mutex::new(Depot::EMPTY)) }; MAX_CLUSTERS];

/// The number of groups. Written under the lock of [`LEASES`]. It grows as long as there is a pool.
///
/// Ordering: relaxed. It only says which depots to use; each has a lock and a limit.
static GROUPS: AtomicUsize = AtomicUsize::new(1);

/// The number of pools. When the last one goes, all depots are emptied. The lock is held while limits change, and taken
/// before that of a depot.
static LEASES: Mutex<usize> = Mutex::new(0);

/// A thread's own free slots: two crates at most.
struct Local {
    slots: [Cell<*mut Slot>; 2 * CRATE],
    len: Cell<usize>,
    /// The group of the thread, unless there are fewer.
    group: Cell<usize>,
}

per_thread! {
    static LOCAL: Local = Local {
        slots: [const { Cell::new(ptr::null_mut()) }; 2 * CRATE],
        len: Cell::new(0),
        group: Cell::new(0),
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

    /// Returns the group of the thread.
    fn group(&self) -> usize {
        self.group.get() % GROUPS.load(Ordering::Relaxed)
    }

    /// Gets a crate from a depot, or a new one, because there is no free slot.
    #[cold]
    #[inline(never)]
    fn fetch(&self) {
        let group = self.group();
        let fetched = lock(&DEPOTS[group]).fetch(group);
        for (place, slot) in self.slots.iter().zip(fetched) {
            place.set(slot.as_ptr());
        }
        self.len.set(CRATE);
    }

    /// Gives the older half to the depot of the group, because there are too many.
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
        let mut depot = lock(&DEPOTS[self.group()]);
        if depot.crates.len() < depot.limit {
            depot.crates.push(full);
        } else {
            drop(depot);
            release(full);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let slots = self.slots[..self.len.get()].iter().filter_map(|slot| NonNull::new(slot.get()));
        release(slots);
    }
}

/// Gives free slots back to their slabs.
fn release(slots: impl IntoIterator<Item = NonNull<Slot>>) {
    let mut slots = slots.into_iter().map(Slab::of).peekable();
    while let Some(slab) = slots.next() {
        // Neighbours often come from the same slab.
        let mut count = 1;
        while slots.next_if_eq(&slab).is_some() {
            count += 1;
        }
        // SAFETY: free, from this slab, and not used afterwards.
        unsafe { Slab::take_back(slab, count) };
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
    let [slot, rest @ ..] = lock(&DEPOTS[0]).fetch(0);
    release(rest);
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
        release([slot]);
    }
}

/// Makes the calling thread exchange slots with the threads of that group from now on.
pub(crate) fn settle(group: usize) {
    // A thread whose thread-locals are being destroyed has no group any more.
    let _ = LOCAL.try_with(|local| local.group.set(group));
}

/// Prefetches the next slot that the calling thread will take. In a burst of tasks from outside, it is one that another thread
/// has written to last, or that was never used.
#[inline]
pub(crate) fn prefetch_next() {
    let next = |local: &Local| {
        if let Some(next) = local.len.get().checked_sub(1) {
            prefetch_for_write(local.slots[next].get());
        }
    };
    let _ = LOCAL.try_with(next);
}

/// Makes the depots keep free slots for reuse as long as it exists. Every pool has one.
pub(crate) struct SlotLease(());

impl SlotLease {
    /// Begins the lease of a pool whose threads are divided into that many groups.
    pub(crate) fn begin(groups: usize) -> Self {
        let mut pools = lock(&LEASES);
        *pools += 1;
        let before = if *pools == 1 { 0 } else { GROUPS.load(Ordering::Relaxed) };
        if groups > before {
            GROUPS.store(groups, Ordering::Relaxed);
            set_limits(groups, KEPT / groups);
        }
        Self(())
    }
}

impl Drop for SlotLease {
    /// Frees the depots' memory together with the last pool. Threads keep the slots on their own stacks until they
    /// end.
    fn drop(&mut self) {
        let mut pools = lock(&LEASES);
        *pools -= 1;
        if *pools == 0 {
            set_limits(0, 0);
        }
    }
}

/// Sets the limits of the depots of that many groups. The other depots keep nothing. The caller holds the lock of
/// [`LEASES`].
fn set_limits(groups: usize, limit: usize) {
    for (group, depot) in DEPOTS.iter().enumerate() {
        let mut depot = lock(depot);
        depot.limit = if group < groups { limit } else { 0 };
        depot.release_rest();
    }
}

/// The locks that a thread holds while it forks the process.
struct Held {
    pools: MutexGuard<'static, usize>,
    depots: [MutexGuard<'static, Depot>; MAX_CLUSTERS],
}

/// Written by the thread that holds the lock of [`LEASES`].
struct Holder(UnsafeCell<Option<Held>>);

// SAFETY: `hold` and `release` access it only while the calling thread holds the lock of `LEASES`.
unsafe impl Sync for Holder {}

static HOLDER: Holder = Holder(UnsafeCell::new(None));

/// Takes all locks of this module, before the process is forked: otherwise the copy could have one that another thread has taken,
/// and that is never released there.
pub(crate) unsafe extern "C" fn hold() {
    let pools = lock(&LEASES);
    let depots = std::array::from_fn(|group| lock(&DEPOTS[group]));
    HOLDER.0.with_mut(|held| {
        // SAFETY: this thread has the lock of `LEASES`, and nobody else accesses it meanwhile.
        unsafe { *held = Some(Held { pools, depots }) };
    });
}

/// Releases all locks of this module, in both processes.
pub(crate) unsafe extern "C" fn release_held() {
    let held = HOLDER.0.with_mut(|held| {
        // SAFETY: this thread has taken the lock of `LEASES` in `hold`, and has it until the end of this function.
        unsafe { (*held).take() }
    });
    if let Some(Held { pools, depots }) = held {
        drop(depots);
        drop(pools);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a depot with that many crates, whose slots are not used.
    fn depot(crates: usize) -> Mutex<Depot> {
        let of_no_slots = [NonNull::dangling(); CRATE];
        Mutex::new(Depot { crates: vec![of_no_slots; crates], ..Depot::EMPTY })
    }

    #[test]
    fn half_of_the_crates_go_to_another_group() {
        for (crates, moved) in [(0, 0), (1, 1), (5, 3), (100, CRATES)] {
            let (from, mut to) = (depot(crates), Depot::EMPTY);
            to.fetch_from(&from);
            assert_eq!(to.crates.len(), moved);
            assert_eq!(lock(&from).crates.len(), crates - moved);
        }
    }

    #[test]
    fn a_depot_that_is_in_use_is_left_alone() {
        let (from, mut to) = (depot(5), Depot::EMPTY);
        let used = lock(&from);
        to.fetch_from(&from);
        assert_eq!((to.crates.len(), used.crates.len()), (0, 5));
    }
}
