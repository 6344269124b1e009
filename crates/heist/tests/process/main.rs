//! The contracts with the process around a pool: environment variables, the global pool, limits of the
//! system, a full stack, and the trace file at exit. Every test runs its parts in processes of their own:
//! this binary, started again.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod blocked_input;
mod environment;
mod global;
mod guests;
#[cfg(target_os = "linux")]
mod refused_threads;
#[cfg(unix)]
mod stack_overflow;
#[cfg(unix)]
mod trace_file;
