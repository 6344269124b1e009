//! The contracts with the process around the pools: the global pool, environment variables, the log and
//! the trace. Every test runs its body in a process of its own: this binary, started again.

#[path = "../common/mod.rs"]
mod common;

#[cfg(unix)]
mod forked;
mod global;
#[cfg(unix)]
mod trace;
