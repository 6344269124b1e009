//! A recursion with a join in every call, as a user would write it: it shows the cost of a fork, and what a second
//! worker gains.

use std::hint::black_box;
use std::time::Instant;

use harness::row::{Row, Sample};

use crate::peers::heist::{GlobalQueue, LockedDeques, WorkStealing};
use crate::workloads::fork::{Fork, Ours, Rayon};

/// The argument, the Fibonacci number, and the number of joins that it takes.
const NUMBERS: (u64, u64, u64) =
    if cfg!(test) { (12, 144, 232) } else { (32, 2_178_309, 3_524_577) };

pub(super) const ID: &str = "recursive";
pub(super) const TITLE: &str = "fib(32), a join at every call";

pub(super) fn enter(row: &mut Row, workers: usize) {
    row.enter(Ours::<WorkStealing>::NAME, move || measure::<Ours<WorkStealing>>(workers));
    row.enter(Ours::<LockedDeques>::NAME, move || measure::<Ours<LockedDeques>>(workers));
    row.enter(Ours::<GlobalQueue>::NAME, move || measure::<Ours<GlobalQueue>>(workers));
    row.enter(Rayon::NAME, move || measure::<Rayon>(workers));
}

fn measure<F: Fork>(workers: usize) -> Sample {
    let (place, expected, joins) = NUMBERS;
    let pool = F::pool(workers);
    let start = Instant::now();
    let found = F::run(pool, |context| F::fib(context, black_box(place)));
    let time = start.elapsed();
    assert_eq!(found, expected, "{}: wrong result: not the Fibonacci number", F::NAME);
    Sample::new(time, joins)
}
