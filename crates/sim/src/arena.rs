//! Regions of memory for simulations: a fresh one for each, in which every virtual thread has chunks and free lists of its
//! own.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cores::ThreadId;

/// The addresses of one simulation: 4 GiB, of which the system provides what is used.
const REGION: usize = 1 << 32;

/// The number of simulations that have a region at the same time. A simulation from which memory was left keeps its region.
const REGIONS: usize = 64;

/// What a thread takes of a region at once, so that threads share no cache line.
const CHUNK: usize = 64 << 10;

/// Small blocks have sizes that are multiples of this.
const GRAIN: usize = 16;

/// The largest small block.
const SMALL: usize = 1024;

/// One list for each small size, and one for each power of two.
const LISTS: usize = SMALL / GRAIN + 1 + usize::BITS as usize;

/// The number of blocks that are in use in each region, and one more for a simulation that runs. Whoever brings the number
/// to zero marks the region as free.
static LIVE: [AtomicUsize; REGIONS] = [const { AtomicUsize::new(0) }; REGIONS];

/// Whether a region is in use, as a bitmap.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the address of the first region, or zero if the system grants no addresses.
fn base() -> usize {
    static BASE: OnceLock<usize> = OnceLock::new();
    *BASE.get_or_init(reserve)
}

#[cfg(unix)]
fn reserve() -> usize {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // One region more than there are, so that the first can be aligned.
    let size = REGION * (REGIONS + 1);
    // SAFETY: a new mapping affects no memory that is in use.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if start == libc::MAP_FAILED { 0 } else { start.addr().next_multiple_of(REGION) }
}

#[cfg(not(unix))]
fn reserve() -> usize {
    0
}

/// Returns the region of an address.
fn region_of(address: usize) -> Option<usize> {
    match base() {
        0 => None,
        base => Some(address.checked_sub(base)? / REGION).filter(|&region| region < REGIONS),
    }
}

/// Returns whether the block is in a region.
#[inline]
pub(crate) fn contains(block: *mut u8) -> bool {
    // Nothing is in a region before the first simulation.
    TAKEN.load(Ordering::Relaxed) != 0 && region_of(block.addr()).is_some()
}

/// The region of the simulation that runs on a thread of the operating system.
struct Region {
    index: usize,
    /// Where the next chunk is.
    next: usize,
    end: usize,
    threads: Vec<Cache>,
}

/// The memory of a virtual thread.
struct Cache {
    /// The unused part of its chunk.
    chunk: std::ops::Range<usize>,
    /// The first free block of each size. A free block contains the address of the next.
    free: [usize; LISTS],
}

std::thread_local! {
    static CURRENT: RefCell<Option<Region>> = const { RefCell::new(None) };
}

/// Takes a free region.
pub(crate) fn open() {
    let base = base();
    if base == 0 {
        return;
    }
    for (index, live) in LIVE.iter().enumerate() {
        let bit = 1 << index;
        // Ordering: acquire. All uses of a region that is free have ended before it was marked as free.
        if TAKEN.fetch_or(bit, Ordering::Acquire) & bit == 0 {
            // Ordering: relaxed. No other thread looks before this one has handed out a block.
            live.store(1, Ordering::Relaxed);
            let start = base + index * REGION;
            let region = Region { index, next: start, end: start + REGION, threads: Vec::new() };
            CURRENT.set(Some(region));
            return;
        }
    }
}

/// Ends the use of the region by its simulation. It is free when its last block is freed.
pub(crate) fn close() {
    if let Some(region) = CURRENT.take() {
        release(region.index);
    }
}

/// Counts one use of a region less.
fn release(index: usize) {
    // Ordering: all uses of the region happen before the end of the last one, which happens before the next `open`.
    if LIVE[index].fetch_sub(1, Ordering::AcqRel) == 1 {
        TAKEN.fetch_and(!(1 << index), Ordering::Release);
    }
}

/// Returns the list for a layout, and the size and the alignment of its blocks.
fn class(layout: Layout) -> (usize, usize, usize) {
    let size = layout.size().max(GRAIN);
    if size <= SMALL && layout.align() <= GRAIN {
        let grains = size.div_ceil(GRAIN);
        (grains, grains * GRAIN, GRAIN)
    } else {
        let size = size.max(layout.align()).next_power_of_two();
        let list = SMALL / GRAIN + 1 + size.trailing_zeros() as usize;
        (list, size, size.min(CHUNK).max(layout.align()))
    }
}

/// Allocates a block for a virtual thread.
pub(crate) fn allocate(thread: ThreadId, layout: Layout) -> Option<*mut u8> {
    CURRENT.with_borrow_mut(|region| {
        let region = region.as_mut()?;
        let (list, size, align) = class(layout);
        let address = region.cache(thread).pop(list).or_else(|| region.cut(thread, size, align))?;
        // Ordering: relaxed. The simulation counts as well, so that this is not the first.
        LIVE[region.index].fetch_add(1, Ordering::Relaxed);
        Some(ptr::with_exposed_provenance_mut(address))
    })
}

/// Frees a block, for reuse by that virtual thread if there is one.
pub(crate) fn free(thread: Option<ThreadId>, block: *mut u8, layout: Layout) {
    let address = block.expose_provenance();
    let Some(index) = region_of(address) else { return };
    if let Some(thread) = thread {
        CURRENT.with_borrow_mut(|region| {
            // What another simulation has left is not reused.
            if let Some(region) = region.as_mut().filter(|region| region.index == index) {
                let (list, ..) = class(layout);
                region.cache(thread).push(list, address);
            }
        });
    }
    release(index);
}

impl Region {
    fn cache(&mut self, thread: ThreadId) -> &mut Cache {
        let index = thread as usize;
        while self.threads.len() <= index {
            self.threads.push(Cache { chunk: 0..0, free: [0; LISTS] });
        }
        &mut self.threads[index]
    }

    /// Cuts a new block from the thread's chunk, from a new chunk, or from the region if it is large.
    fn cut(&mut self, thread: ThreadId, size: usize, align: usize) -> Option<usize> {
        let within = |chunk: &std::ops::Range<usize>| {
            let start = chunk.start.next_multiple_of(align);
            (start + size <= chunk.end).then_some(start)
        };
        if size > CHUNK / 2 {
            let start = within(&(self.next..self.end))?;
            self.next = (start + size).next_multiple_of(CHUNK);
            return Some(start);
        }
        if within(&self.cache(thread).chunk).is_none() {
            let start = self.next.next_multiple_of(CHUNK);
            self.next = start + CHUNK;
            if self.next > self.end {
                return None;
            }
            self.cache(thread).chunk = start..start + CHUNK;
        }
        let chunk = &mut self.cache(thread).chunk;
        let start = within(chunk)?;
        chunk.start = start + size;
        Some(start)
    }
}

impl Cache {
    fn pop(&mut self, list: usize) -> Option<usize> {
        let block = self.free[list];
        if block == 0 {
            return None;
        }
        let link = ptr::with_exposed_provenance::<usize>(block);
        // SAFETY: `push` has written the link into this block, which is free, large enough and aligned for it.
        self.free[list] = unsafe { link.read() };
        Some(block)
    }

    fn push(&mut self, list: usize, block: usize) {
        let link = ptr::with_exposed_provenance_mut::<usize>(block);
        // SAFETY: the block is free, so that nothing else uses it; it has at least `GRAIN` bytes and their alignment.
        unsafe { link.write(self.free[list]) };
        self.free[list] = block;
    }
}
