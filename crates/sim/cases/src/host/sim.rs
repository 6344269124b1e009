//! Virtual cores.

use std::cell::Cell;
use std::time::Duration;

pub(crate) use heist_sim::report::{begin, end};
pub(crate) use heist_sim::thread::{JoinHandle, pin, sleep, spawn};
pub(crate) use heist_sim::{now, work};

thread_local! {
    /// The parts that are done. All virtual threads share it: they run on one thread of the operating system. Counting is
    /// part of the measurement, not of the workload, and is not charged.
    static DONE: Cell<u64> = const { Cell::new(0) };
    /// How many parts there are, and the thread that waits for them.
    static AWAITED: Cell<Option<(u64, heist_sim::thread::Thread)>> = const { Cell::new(None) };
}

/// Prepares to count this many parts, for which the calling thread will wait.
pub(crate) fn expect(all: u64) {
    DONE.set(0);
    AWAITED.set(Some((all, heist_sim::thread::current())));
}

/// Counts a part that is done.
pub(crate) fn count() {
    let done = DONE.get() + 1;
    DONE.set(done);
    if let Some((all, waiting)) = AWAITED.get()
        && done == all
    {
        waiting.unpark();
    }
}

/// Waits until all parts are done.
pub(crate) fn wait_for(all: u64, _completed: impl Fn() -> u64, _span: Duration) {
    while DONE.get() < all {
        heist_sim::thread::park();
    }
}

/// Returns how many parts were counted.
pub(crate) fn counted(_all: u64) -> u64 {
    DONE.get()
}
