//! Keeps every pool from its first use to the end of the program.
//!
//! The start of a pool is not measured, and tasks that spawn tasks need a pool that outlives them. Unused pools
//! sleep meanwhile; the idle workload shows that they do.

use std::any::Any;
use std::sync::Mutex;

use harness::board::Lap;

use super::shape::{self, Shape};
use super::{Pool, live, traced};

/// The number of tasks that a new pool runs before it is measured. After them its threads have started and its
/// memory has been touched. Anything else that a pool allocates, it allocates in the first round.
const WARM_UP: u64 = if cfg!(test) { 100 } else { 10_000 };

type Kept = (&'static str, usize, &'static (dyn Any + Send + Sync));

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Returns the pool of this type with this number of workers. The calling thread must be allowed to run on every
/// processor, because the workers inherit its affinity.
pub(crate) fn pool<P: Pool>(workers: usize) -> &'static P {
    let pool = traced::pool::<P>(workers).unwrap_or_else(|| warm(workers));
    live::set(pool.ours());
    pool
}

/// Returns the pool of this type with this number of workers, for a pool beside the one that is measured: it is neither
/// traced nor observed.
pub(crate) fn warm<P: Pool>(workers: usize) -> &'static P {
    keep(P::NAME, workers, || {
        let pool: &'static P = Box::leak(Box::new(P::new(workers)));
        for shape in [Shape::Inside, Shape::Outside] {
            let lap = Lap::begin();
            shape::start::<P, WARM_UP>(pool, shape);
            lap.wait(P::NAME, WARM_UP);
        }
        pool
    })
}

/// Returns the pool of this name with this number of workers. It is created and warmed up on first use.
pub(crate) fn keep<T: Send + Sync>(
    name: &'static str,
    workers: usize,
    make: impl FnOnce() -> &'static T,
) -> &'static T {
    let mut kept = KEPT.lock().unwrap();
    let known = kept.iter().find(|(other, count, _)| (*other, *count) == (name, workers));
    if let Some((_, _, pool)) = known {
        return pool.downcast_ref().expect("pools of different types have different names");
    }
    let pool = make();
    kept.push((name, workers, pool));
    pool
}
