//! Many small tasks: the cost of one.

use harness::row::{Sample, nanoseconds};

use harness::board::Lap;

use super::Counts;
use crate::peers::heist::{Choice, Heist};
use crate::peers::shape::{self, Shape};
use crate::peers::{Pool, kept};

/// The number of tasks. It is smaller than in the comparison with peers, because there are many rows.
const TASKS: u64 = if cfg!(test) { 1_000 } else { 200_000 };

pub(super) fn measure<C: Choice>(shape: Shape, workers: usize) -> Sample {
    let pool = kept::pool::<Heist<C>>(workers);
    let before = Counts::of(pool);
    let lap = Lap::begin();
    shape::start::<Heist<C>, TASKS>(pool, shape);
    let done = lap.wait(Heist::<C>::NAME, TASKS);
    let counts = Counts::of(pool).since(&before, TASKS, done.looks);
    let time = nanoseconds(done.time) / TASKS as f64;
    Sample::of([&[time][..], &counts].concat())
}
