//! The standard library for code on virtual cores that was not written for them.
//!
//! It has all of `std`, and replaces what threads share: atomics, reference counts, locks, cells, volatile accesses, threads,
//! thread-locals, the clock and the pause instruction are those of heist-sim. `crates/sim/peers/run.sh` changes the first
//! part of every path in the sources of a peer from `std` or `core` to this crate.

pub use std::*;

pub use heist_sim::thread_local;

pub mod cell;

/// `std::sync` on virtual cores. What is not replaced must not make a virtual thread wait.
pub mod sync {
    pub use std::sync::*;

    pub use heist_sim::arc::{Arc, Weak};
    pub use heist_sim::condvar::{Condvar, WaitTimeoutResult};
    pub use heist_sim::mutex::{Mutex, MutexGuard};
    pub use heist_sim::once::{Once, OnceLock};

    /// Atomics. A fence for the compiler costs nothing.
    pub mod atomic {
        pub use heist_sim::atomic::*;
        pub use std::sync::atomic::compiler_fence;
    }
}

/// `std::thread` on virtual cores.
pub mod thread {
    pub use std::thread::*;

    pub use heist_sim::thread::{
        Builder, JoinHandle, Thread, current, park, park_timeout, sleep, spawn, yield_now,
    };

    /// Returns the number of virtual cores.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    pub fn available_parallelism() -> std::io::Result<std::num::NonZeroUsize> {
        let cores = std::num::NonZeroUsize::new(heist_sim::thread::parallelism());
        Ok(cores.unwrap_or(std::num::NonZeroUsize::MIN))
    }
}

/// `std::hint`, whose pause is charged.
pub mod hint {
    pub use std::hint::*;

    pub use heist_sim::pause as spin_loop;
}

/// `std::time` with the virtual clock.
pub mod time {
    pub use std::time::*;

    pub use heist_sim::time::Instant;
}

/// `std::ptr`, whose volatile accesses are charged: with them, lock-free queues read and write what they contain.
pub mod ptr {
    pub use std::ptr::*;

    use heist_sim::cell::{charge_load, charge_store};

    /// Reads a value.
    ///
    /// # Safety
    ///
    /// That of `std::ptr::read_volatile`.
    #[track_caller]
    pub unsafe fn read_volatile<T>(place: *const T) -> T {
        charge_load(place);
        // SAFETY: the caller has promised it.
        unsafe { std::ptr::read_volatile(place) }
    }

    /// Writes a value.
    ///
    /// # Safety
    ///
    /// That of `std::ptr::write_volatile`.
    #[track_caller]
    pub unsafe fn write_volatile<T>(place: *mut T, value: T) {
        charge_store(place);
        // SAFETY: the caller has promised it.
        unsafe { std::ptr::write_volatile(place, value) }
    }
}

#[cfg(test)]
mod tests;
