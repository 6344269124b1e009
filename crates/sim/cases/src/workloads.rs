//! The workloads. Each returns how many parts it has done, which the caller compares with how many there are.

use std::sync::Arc;
use std::time::Duration;

use heist::parallel;
use heist::pipeline::Pipeline;
use heist::{Pool, Scope};

use crate::case::{Case, Workload};
use crate::host::{JoinHandle, count, counted, expect, pin, spawn, wait_for, work};

/// The length of a task, in nanoseconds.
pub const TASK: u64 = 1_000;
/// The length of an item of a loop, in nanoseconds.
pub const ITEM: u64 = 50;
/// The length of a batch of a pipeline, and the items in it.
const BATCH: u64 = 10_000;
const BATCH_ITEMS: u64 = 10;
/// The length of a comparison.
const COMPARISON: u64 = 5;

/// What a run has done.
pub(crate) struct Done {
    /// The parts that were done.
    pub(crate) parts: u64,
    /// The parts that had to be done.
    pub(crate) all: u64,
    /// What all parts take on one core, in a unit in which the sizes of a workload can be compared.
    pub(crate) units: u64,
}

pub(crate) fn run(case: &Case, pool: &Arc<Pool>) -> Done {
    match case.workload {
        Workload::Spawn => spawn_tree(case, pool),
        Workload::Join => join_tree(case, pool),
        Workload::Scope => scope_tree(case, pool),
        Workload::Outside | Workload::OutsideFar => outside(case, pool),
        Workload::Loop => items(case, pool),
        Workload::Pipe | Workload::PipeOrdered => pipe(case, pool),
        Workload::Sort => sort(case, pool),
    }
}

/// Returns the smallest depth at which a binary tree has this many leaves.
pub fn depth(leaves: u64) -> u32 {
    leaves.next_power_of_two().ilog2()
}

fn spawn_tree(case: &Case, pool: &Pool) -> Done {
    fn grow(depth: u32) {
        work(TASK);
        if depth > 0 {
            for _ in 0..2 {
                drop(heist::spawn(move || grow(depth - 1)));
            }
        }
        count();
    }
    let depth = depth(case.parts(TASK)) - 1;
    let all = (2_u64 << depth) - 1;
    let before = pool.stats().total.tasks_completed;
    expect(all);
    drop(pool.spawn(move || grow(depth)));
    let span = Duration::from_nanos(all * TASK / case.workers() as u64);
    wait_for(all, || pool.stats().total.tasks_completed - before, span);
    Done { parts: counted(all), all, units: all }
}

fn join_tree(case: &Case, pool: &Pool) -> Done {
    fn grow(depth: u32) -> u64 {
        if depth == 0 {
            work(TASK);
            return 1;
        }
        let (a, b) = heist::join(|| grow(depth - 1), || grow(depth - 1));
        a + b
    }
    let depth = depth(case.parts(TASK));
    let all = 1 << depth;
    Done { parts: pool.install(|| grow(depth)), all, units: all }
}

fn scope_tree(case: &Case, pool: &Pool) -> Done {
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
    Done { parts: counted(all), all, units: all }
}

fn outside(case: &Case, pool: &Arc<Pool>) -> Done {
    let producers = &case.placement.producers;
    let each = case.parts(TASK).div_ceil(producers.len() as u64);
    let produce = |&core: &usize| -> JoinHandle<u64> {
        let pool = Arc::clone(pool);
        spawn(move || {
            pin(core);
            let task = || {
                work(TASK);
                1
            };
            let handles: Vec<_> = (0..each).map(|_| pool.spawn(task)).collect();
            handles.into_iter().map(|handle| handle.join().expect("a task that ends")).sum()
        })
    };
    let threads: Vec<_> = producers.iter().map(produce).collect();
    let parts =
        threads.into_iter().map(|thread| thread.join().expect("a producer that ends")).sum();
    let all = each * producers.len() as u64;
    Done { parts, all, units: all }
}

fn items(case: &Case, pool: &Pool) -> Done {
    let all = case.parts(ITEM);
    let count = |sum: u64, _: &usize| {
        work(ITEM);
        sum + 1
    };
    let items: Vec<usize> = (0..all as usize).collect();
    let parts = pool.install(|| parallel::reduce(&items[..], || 0, count, |a, b| a + b));
    Done { parts, all, units: all }
}

fn pipe(case: &Case, pool: &Pool) -> Done {
    let item = BATCH / BATCH_ITEMS;
    let all = case.parts(item);
    let mut pipeline = Pipeline::new(0..all).batch(BATCH_ITEMS as usize);
    if case.workload == Workload::PipeOrdered {
        pipeline = pipeline.ordered();
    }
    let (mut parts, mut sum) = (0, 0);
    let ran = pipeline
        .map(move |number: u64| {
            work(item);
            number
        })
        .run(pool, |number| {
            parts += 1;
            sum += number;
        });
    ran.expect("a pipeline that ends");
    assert_eq!(sum, all * (all - 1) / 2, "each item is delivered once");
    Done { parts, all, units: all }
}

fn sort(case: &Case, pool: &Pool) -> Done {
    // A sort of n items compares about n log n times. The second factor is that of the next power of two.
    let comparisons = case.parts(COMPARISON);
    let all = comparisons / u64::from(comparisons.ilog2());
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut items: Vec<u64> = (0..all).map(|_| next()).collect();
    let before = items.iter().fold(0_u64, |sum, item| sum.wrapping_add(*item));
    pool.install(|| {
        parallel::sort_unstable_by(&mut items, |a, b| {
            work(COMPARISON);
            a.cmp(b)
        });
    });
    let after = items.iter().fold(0_u64, |sum, item| sum.wrapping_add(*item));
    assert!(before == after && items.is_sorted(), "sorted");
    Done { parts: items.len() as u64, all, units: all * u64::from(all.max(2).ilog2()) }
}
