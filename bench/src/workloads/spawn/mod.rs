//! The spawn workload: a million small tasks. Its cases, their sizes and targets.

use harness::metric;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

use harness::board::Lap;

use crate::peers::shape::{self, Shape};
use crate::peers::{self, PEERS, Pool, heist, kept, rayon};
#[cfg(feature = "peers")]
use crate::peers::{channel, threadpool, tokio};

/// The number of tasks. Each is an allocation and a call; its work takes about a nanosecond.
const TASKS: u64 = if cfg!(test) { 1_000 } else { 1_000_000 };

const CASES: [(Shape, usize); 7] = [
    (Shape::Inside, 1),
    (Shape::Inside, 2),
    (Shape::Tree, 1),
    (Shape::Tree, 2),
    (Shape::Outside, 1),
    (Shape::Outside, 2),
    (Shape::Batch, 2),
];

/// The name of the pool that all pools are compared with.
const REFERENCE: &str = "rayon";

/// Returns the highest wanted ratios.
fn limits(shape: Shape, workers: usize) -> Vec<(Than, f64)> {
    match (shape, workers) {
        (Shape::Inside, 1) => vec![(Than::Entry(REFERENCE), 0.35)],
        (Shape::Inside, 2) => vec![
            (Than::Entry(REFERENCE), 0.35),
            (Than::Best(PEERS), 0.8),
            // A second worker takes a part of the work, and must not make all of it much slower.
            (Than::Case("spawn/inside/1".into()), 1.5),
        ],
        (Shape::Outside, 2) => vec![(Than::Entry(REFERENCE), 0.5), (Than::Best(PEERS), 1.0)],
        (Shape::Batch, 2) => vec![(Than::Case("spawn/outside/2".into()), 1.0)],
        _ => Vec::new(),
    }
}

pub(crate) fn rows() -> Vec<Row> {
    CASES.map(|(shape, workers)| row(shape, workers)).into()
}

fn row(shape: Shape, workers: usize) -> Row {
    let case = format!("{}/{workers}", shape.id());
    let title = format!("{}, {}", shape.title(), peers::workers(workers));
    let mut row = Row::of_pools("spawn", case, title, vec![&metric::TASK]);
    row.references = vec![REFERENCE];
    row.workers = Some(workers);
    enter::<heist::Stealing>(&mut row, shape, workers);
    enter::<heist::Locked>(&mut row, shape, workers);
    enter::<heist::Global>(&mut row, shape, workers);
    enter::<rayon::ThreadPool>(&mut row, shape, workers);
    #[cfg(feature = "peers")]
    {
        enter::<tokio::Runtime>(&mut row, shape, workers);
        enter::<threadpool::ThreadPool>(&mut row, shape, workers);
        enter::<channel::Workers>(&mut row, shape, workers);
    }
    let target = |(than, at_most)| Target {
        of: heist::Stealing::NAME,
        metric: &metric::TASK,
        than,
        at_most,
    };
    row.targets = limits(shape, workers).into_iter().map(target).collect();
    row
}

fn enter<P: Pool>(row: &mut Row, shape: Shape, workers: usize) {
    row.enter(P::NAME, move || measure::<P>(shape, workers));
}

/// Measures until the last task has run.
fn measure<P: Pool>(shape: Shape, workers: usize) -> Sample {
    let pool = kept::pool::<P>(workers);
    let lap = Lap::begin();
    shape::start::<P, TASKS>(pool, shape);
    Sample::new(lap.wait(P::NAME, TASKS).time, TASKS)
}
