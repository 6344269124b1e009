//! How long a pool lives: from its first use to the end of the program.
//!
//! Nobody measures what it costs to start one, and tasks that spawn tasks need a pool that outlives
//! them. Meanwhile the others sleep; `idle` shows that they do.

use std::any::Any;
use std::sync::Mutex;

use harness::board::Lap;

use super::shape::{self, Shape};
use super::{Pool, live, traced};

/// Tasks that a new pool runs before it is measured: its threads have started, and its memory has
/// been touched. What more a pool wants to remember, it does in the first round.
const WARM_UP: u64 = if cfg!(test) { 100 } else { 10_000 };

type Kept = (&'static str, usize, &'static (dyn Any + Send + Sync));

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The pool of that type with that many workers. To be called from a thread that may run on every
/// core: the workers inherit that.
pub(crate) fn pool<P: Pool>(workers: usize) -> &'static P {
    let pool = traced::pool::<P>(workers).unwrap_or_else(|| warm(workers));
    live::set(pool.ours());
    pool
}

fn warm<P: Pool>(workers: usize) -> &'static P {
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

/// What has that name and that many workers. Made, and warmed up, when it is first asked for.
pub(crate) fn keep<T: Send + Sync>(
    name: &'static str,
    workers: usize,
    make: impl FnOnce() -> &'static T,
) -> &'static T {
    let mut kept = KEPT.lock().unwrap();
    let known = kept.iter().find(|(other, count, _)| (*other, *count) == (name, workers));
    if let Some((_, _, pool)) = known {
        return pool.downcast_ref().expect("no two pools have one name");
    }
    let pool = make();
    kept.push((name, workers, pool));
    pool
}
