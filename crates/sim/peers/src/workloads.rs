//! The workloads of crates/sim/cases, for rayon: of the same size, on the same cores, with the same verification.

use std::sync::Arc;

use heist_sim_workloads::{Case, ITEM, REST, TASK, WARM_UP, Workload, depth};
use rayon::prelude::*;
use rayon_core::{Scope, ThreadPool, ThreadPoolBuilder};

use crate::host::{begin, count, counted, end, expect, now, pin, sleep, spawn, wait_for, work};

/// The workloads that rayon's interface allows.
pub(crate) const ALL: &[Workload] =
    &[Workload::Spawn, Workload::Join, Workload::Scope, Workload::Outside, Workload::Loop];

/// Returns the time in nanoseconds and the number of parts of a run on virtual cores.
///
/// It does what `heist_sim_cases::measure` does with a pool of heist.
pub(crate) fn measure(case: &Case) -> (u64, u64) {
    pin(case.placement.main);
    let workers = case.placement.workers.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(case.workers())
        .start_handler(move |number| pin(workers[number]))
        .build()
        .expect("a pool that can be started");
    let pool = Arc::new(pool);
    run(&Case { span: case.span / WARM_UP, ..case.clone() }, &pool);
    sleep(REST);
    begin();
    let start = now();
    let (parts, all) = run(case, &pool);
    let elapsed = now() - start;
    end();
    assert_eq!(parts, all, "verification failed: not all parts were done once");
    (elapsed, parts)
}

/// Returns how many parts were done, and how many had to be done.
fn run(case: &Case, pool: &Arc<ThreadPool>) -> (u64, u64) {
    match case.workload {
        Workload::Spawn => spawn_tree(case, pool),
        Workload::Join => join_tree(case, pool),
        Workload::Scope => scope_tree(case, pool),
        Workload::Outside | Workload::OutsideFar => outside(case, pool),
        Workload::Loop => items(case, pool),
        other => panic!("rayon has nothing like {other}"),
    }
}

fn spawn_tree(case: &Case, pool: &ThreadPool) -> (u64, u64) {
    fn grow(depth: u32) {
        work(TASK);
        if depth > 0 {
            for _ in 0..2 {
                rayon_core::spawn(move || grow(depth - 1));
            }
        }
        count();
    }
    let depth = depth(case.parts(TASK)) - 1;
    let all = (2_u64 << depth) - 1;
    expect(all);
    pool.spawn(move || grow(depth));
    wait_for(all, || 0, std::time::Duration::ZERO);
    (counted(all), all)
}

fn join_tree(case: &Case, pool: &ThreadPool) -> (u64, u64) {
    fn grow(depth: u32) -> u64 {
        if depth == 0 {
            work(TASK);
            return 1;
        }
        let (a, b) = rayon_core::join(|| grow(depth - 1), || grow(depth - 1));
        a + b
    }
    let depth = depth(case.parts(TASK));
    (pool.install(|| grow(depth)), 1 << depth)
}

fn scope_tree(case: &Case, pool: &ThreadPool) -> (u64, u64) {
    fn grow(scope: &Scope<'_>, depth: u32) {
        work(TASK);
        if depth > 0 {
            for _ in 0..2 {
                scope.spawn(move |scope| grow(scope, depth - 1));
            }
        }
        count();
    }
    let depth = depth(case.parts(TASK)) - 1;
    let all = (2_u64 << depth) - 1;
    expect(all);
    pool.scope(|scope| grow(scope, depth));
    (counted(all), all)
}

/// Tasks of rayon have no handles. The main thread waits for all of them, which costs the producers nothing.
fn outside(case: &Case, pool: &Arc<ThreadPool>) -> (u64, u64) {
    let producers = &case.placement.producers;
    let each = case.parts(TASK).div_ceil(producers.len() as u64);
    let all = each * producers.len() as u64;
    expect(all);
    let produce = |&core: &usize| {
        let pool = Arc::clone(pool);
        spawn(move || {
            pin(core);
            for _ in 0..each {
                pool.spawn(|| {
                    work(TASK);
                    count();
                });
            }
        })
    };
    let threads: Vec<_> = producers.iter().map(produce).collect();
    wait_for(all, || 0, std::time::Duration::ZERO);
    threads.into_iter().for_each(|thread| thread.join().expect("a producer that ends"));
    (counted(all), all)
}

fn items(case: &Case, pool: &ThreadPool) -> (u64, u64) {
    let all = case.parts(ITEM);
    let items: Vec<usize> = (0..all as usize).collect();
    let count = |_: &usize| {
        work(ITEM);
        1
    };
    (pool.install(|| items.par_iter().map(count).sum()), all)
}
