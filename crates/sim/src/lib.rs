//! A multicore machine in virtual time.
//!
//! [`run`] executes a closure, and the threads that it starts, on the cores of a [`Machine`] that need not exist. Virtual
//! threads are coroutines, one of which runs at a time. Each has a clock, which advances by what every access to shared
//! memory, system call and allocation costs on that machine. The [`Report`] says where the time went.
//!
//! The code under simulation uses the [atomics](atomic), [mutexes](mutex), [condition variables](condvar), [threads](thread), [cells](cell) and
//! [clock](time) of this crate, which have the interface of those of `std`. Its own computations take no virtual time:
//! [`work`] declares it. With [`Allocator`] as the global allocator, the same seed gives the same report.
//!
//! docs/SIMULATION.md in the repository says how the model works, where its constants come from, and what it cannot tell.

mod core_set;
mod costs;
mod error;
mod random;

mod machine;
mod topology;
mod store_buffer;
mod line;
mod directory;
mod cores;

pub mod report;
mod kernel;
mod schedule;
mod run;
mod arena;
mod alloc;
mod futex;

pub mod atomic;
pub mod cell;
pub mod arc;
pub mod mutex;
pub mod condvar;
pub mod once;
pub mod thread;
pub mod local;
pub mod time;

pub use alloc::Allocator;
pub use core_set::MAX_CORES;
pub use costs::Costs;
pub use error::{Blocked, RunError, WaitsFor};
pub use machine::{Machine, MachineError};
pub use report::Report;
pub use run::{Config, run};

use kernel::{enter, take_turn};
use line::Access;
use report::Activity;

/// Declares that the calling thread works for this many nanoseconds.
pub fn work(nanoseconds: u64) {
    enter(|kernel| kernel.work(nanoseconds * 1_000));
}

/// Charges a pause instruction.
pub fn pause() {
    kernel::spend(Activity::Pause, |ticks| ticks.pause);
}

/// Fetches a cache line that will be read soon.
pub fn prefetch<T>(place: *const T) {
    take_turn();
    enter(|kernel| kernel.prefetch(place.addr(), Access::Load));
}

/// Fetches a cache line that will be written soon, which takes it away from other cores.
pub fn prefetch_for_write<T>(place: *const T) {
    take_turn();
    enter(|kernel| kernel.prefetch(place.addr(), Access::Update));
}

/// Returns the virtual time of the calling thread in nanoseconds, without charging it; zero outside of a simulation.
pub fn now() -> u64 {
    enter(|kernel| kernel.now() / 1_000).unwrap_or(0)
}
