//! An allocator that counts for each thread, and that fails or pauses on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The system's allocator, which counts for each thread and can fail or pause on request.
struct Meter;

#[global_allocator]
static METER: Meter = Meter;

/// What happens at one allocation of a thread.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Fail,
    Pause(&'static Gate),
}

thread_local! {
    /// Bytes that this thread has allocated less those that it has freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// After how many more allocations the event is due.
    static AHEAD: Cell<usize> = const { Cell::new(0) };
    static EVENT: Cell<Option<Event>> = const { Cell::new(None) };
    /// The bytes of the allocation that has failed.
    pub(crate) static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// Returns the event if it is due now.
fn due() -> Option<Event> {
    EVENT.get()?;
    AHEAD.set(AHEAD.get() - 1);
    if AHEAD.get() == 0 { EVENT.take() } else { None }
}

// SAFETY: memory comes from `System` and goes back there with the same layout; the counters are
// plain cells of the thread, which neither allocate nor have a destructor.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match due() {
            Some(Event::Fail) => {
                REFUSED.set(layout.size());
                return ptr::null_mut();
            }
            Some(Event::Pause(gate)) => gate.pass(),
            None => {}
        }
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as isize);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Runs a job with an event at this thread's `n`-th allocation from now, the first being 1.
pub(crate) fn with_event<R>(event: Event, n: usize, job: impl FnOnce() -> R) -> R {
    AHEAD.set(n);
    EVENT.set(Some(event));
    let result = job();
    EVENT.set(None);
    result
}

/// The memory that a job has allocated on this thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) bytes: isize,
    pub(crate) allocations: usize,
}

pub(crate) const NOTHING: Bill = Bill { bytes: 0, allocations: 0 };

/// Runs a job, and returns its result and what it has allocated on this thread.
pub(crate) fn metered<R>(job: impl FnOnce() -> R) -> (R, Bill) {
    let (live, allocations) = (LIVE.get(), ALLOCATIONS.get());
    let result = job();
    let bill = Bill { bytes: LIVE.get() - live, allocations: ALLOCATIONS.get() - allocations };
    (result, bill)
}

/// Blocks one thread until another opens the gate.
pub(crate) struct Gate {
    reached: AtomicBool,
    open: AtomicBool,
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self { reached: AtomicBool::new(false), open: AtomicBool::new(false) }
    }

    /// Called by the thread that is blocked.
    pub(crate) fn pass(&self) {
        self.reached.store(true, Ordering::Release);
        wait_for(&self.open);
    }

    /// Runs `job` while the other thread is blocked, and then opens the gate.
    pub(crate) fn meanwhile<R>(&self, job: impl FnOnce() -> R) -> R {
        /// Opens the gate even if the job panics.
        struct Open<'a>(&'a Gate);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.open.store(true, Ordering::Release);
            }
        }
        let _open = Open(self);
        wait_for(&self.reached);
        job()
    }
}

pub(crate) fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        thread::yield_now();
    }
}
