//! The workloads: each module has the cases of one, their sizes and their targets.

pub(crate) mod duel;
pub(crate) mod fork;
mod idle;
mod ignition;
pub(crate) mod latency;
mod outside;
mod pipeline;
mod range;
mod reduce;
mod scope;
mod server;
mod sort;
mod spawn;
mod strategies;
mod trace_cost;

use harness::row::Row;

/// Returns every case, in the order in which they run.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = heist_bench_queues::rows();
    for workload in [
        spawn::rows,
        scope::rows,
        latency::rows,
        server::rows,
        idle::rows,
        strategies::rows,
        ignition::rows,
        fork::rows,
        outside::rows,
        range::rows,
        reduce::rows,
        sort::rows,
        pipeline::rows,
        duel::rows,
        trace_cost::rows,
    ] {
        rows.extend(workload());
    }
    rows
}
