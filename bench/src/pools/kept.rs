//! How long a pool lives: from its first use to the end of the program.
//!
//! Nobody measures what it costs to start one, and tasks that spawn tasks need a pool that outlives
//! them. Meanwhile the others sleep; `idle` shows that they do.

use std::any::Any;
use std::sync::Mutex;

use super::Pool;
use super::board::Lap;
use super::shape::{self, Shape};

/// Tasks that a new pool runs before it is measured: its threads have started, and its memory has
/// been touched. What more a pool wants to remember, it does in the first round.
const WARM_UP: u64 = if cfg!(test) { 100 } else { 10_000 };

type Kept = (&'static str, usize, &'static (dyn Any + Send + Sync));

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The pool of that type with that many workers. To be called from a thread that may run on every
/// core: the workers inherit that.
pub(crate) fn pool<P: Pool>(workers: usize) -> &'static P {
    let mut kept = KEPT.lock().unwrap();
    let known = kept.iter().find(|(name, count, _)| (*name, *count) == (P::NAME, workers));
    if let Some((_, _, pool)) = known {
        return pool.downcast_ref().expect("no two pools have one name");
    }
    let pool: &'static P = Box::leak(Box::new(P::new(workers)));
    for shape in [Shape::Inside, Shape::Outside] {
        let lap = Lap::begin();
        shape::start::<P, WARM_UP>(pool, shape);
        lap.wait(P::NAME, WARM_UP);
    }
    kept.push((P::NAME, workers, pool));
    pool
}
