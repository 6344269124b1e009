//! The workloads on which heist and its peers are measured.
//!
//! Every case runs in interleaved rounds, every result is verified, and the outcome is a ratio to a peer.
//! `docs/METHODOLOGY.md` explains why. The command `heist` runs this library.
//!
//! The crate `heist-bench-harness` measures and reports. The module `workloads` has the cases, `peers` the pools that
//! several of them share. The workloads for queues are the crate `heist-bench-queues`.

mod bench;
mod built;
mod peers;
mod timeline;
mod workloads;

pub use bench::{Bench, cases, trace};
pub use built::missing_feature;
pub use harness::{Case, Kind, Selection, Step, UnknownName, Watcher, metric, record, stats};
pub use timeline::summarize;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Sets the environment variables that must be set before the first pool starts: the number of workers of heist's
/// global pool, whether that pool keeps a trace, and the stack size of threads.
///
/// # Safety
///
/// No other thread may be running: it might read the environment meanwhile.
pub unsafe fn set_environment(traced: bool) {
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { peers::set_environment(traced) };
}

/// What a run panics with if the system refuses what a pool needs: the reason. No result is wrong in that case.
#[derive(Debug)]
pub struct Refused(pub String);

/// Returns whether an entry of this name is one of heist's own.
pub fn is_ours(by: &str) -> bool {
    by.starts_with("heist")
}

/// Returns the counters of the heist pool that is being measured; `None` if there is none. May be called from any
/// thread.
pub fn live() -> Option<heist::Stats> {
    peers::live::pool().map(heist::Pool::stats)
}
