//! How long the queues and pools of heist and their peers take for the same work.
//!
//! Every case runs in interleaved rounds, everything that comes out of a queue or a pool is
//! checked, and the result is a ratio to a peer. `docs/METHODOLOGY.md` says why. The command `heist`
//! is how people run it.

mod cores;
mod deque;
mod duel;
mod fork;
mod handoff;
mod histogram;
mod idle;
mod ignition;
mod injector;
mod item;
mod json;
mod latency;
mod lines;
mod machine;
mod measure;
pub mod metric;
mod pause;
mod pipeline;
mod pools;
mod random;
mod range;
pub mod record;
mod report;
mod row;
mod selection;
mod sort;
mod spawn;
pub mod stats;
mod strategies;
mod summary;
mod target;
mod threads;
mod trace_cost;
mod usage;

pub use measure::{Bench, Step, Watcher};
pub use selection::{Case, Kind, Selection, UnknownName, cases, missing_feature};

use row::Row;

/// The example of the README, so that it is run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// What the environment must say before the first pool is started: how many workers a global pool has, whether ours
/// keeps a trace, how deep stacks are.
///
/// # Safety
///
/// There is no other thread yet: one might read the environment meanwhile.
pub unsafe fn set_environment(traced: bool) {
    // SAFETY: as the caller says.
    unsafe { pools::set_environment(traced) };
}

/// What a run panics with where the system refuses what a pool needs: why. No result is wrong then.
#[derive(Debug)]
pub struct Refused(pub String);

/// Is it one of heist's own, by its name?
pub fn is_ours(by: &str) -> bool {
    by.starts_with("heist")
}

/// Runs our side of a case once more, not measured, in a pool that keeps a trace. `None` if the case has no pool of ours of
/// which one could ask that.
pub fn trace(case: &str, by: &str) -> Option<heist::trace::Trace> {
    let rows = all_rows();
    let row = rows.iter().find(|row| row.id() == case)?;
    // A queue has no pool.
    if row.item.is_some() { None } else { row.entry(by)?.trace() }
}

/// What the pool of ours that is being measured just now has counted; `None` if there is none. May be called from any thread.
pub fn live() -> Option<heist::Stats> {
    pools::live::pool().map(heist::Pool::stats)
}

fn all_rows() -> Vec<Row> {
    let mut rows = deque::rows();
    rows.extend(injector::rows());
    rows.extend(spawn::rows());
    rows.extend(latency::rows());
    rows.extend(idle::rows());
    rows.extend(strategies::rows());
    rows.extend(ignition::rows());
    rows.extend(fork::rows());
    rows.extend(range::rows());
    rows.extend(sort::rows());
    rows.extend(pipeline::rows());
    rows.extend(duel::rows());
    rows.extend(trace_cost::rows());
    rows
}
