//! The range workload: the sum of the squares of many numbers, in calls that follow one another.
//!
//! Short ranges are not worth a second worker, and a library that wakes one nevertheless makes them slower than a
//! loop.

#[cfg(feature = "peers")]
mod chili;
mod heist;
mod plain;
mod rayon;

use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::metric::{self, Metric};
use harness::random::numbers;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};
use heist::{Heist, WithMinLen};
use plain::Plain;

use crate::peers::global;

/// Each size: its name, the number of items, and the number of calls between two reads of the clock, which take
/// some 10 µs with the plain loop.
const SIZES: [(&str, usize, u64); 4] = if cfg!(test) {
    [("1e3", 10, 1), ("1e4", 100, 1), ("1e5", 1_000, 1), ("1e6", 40_000, 1)]
} else {
    [("1e3", 1_000, 200), ("1e4", 10_000, 20), ("1e5", 100_000, 2), ("1e6", 1_000_000, 1)]
};

/// How long a sample takes. It is a time and not a number of calls, because entries differ a hundredfold.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 25 });

/// The fewest items that are worth a task of their own, for libraries with such a parameter: a microsecond of work.
const PIECE: usize = 16_384;

const CALL: Metric = Metric { title: "ns per call", digits: (0, 1), ..metric::TIME };

/// Which thread calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A thread outside the pool, like the main thread of most programs.
    Outside,
    /// A worker of the pool.
    Inside,
}

impl Place {
    const ALL: [Self; 2] = [Self::Outside, Self::Inside];

    fn id(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Outside => "called by a thread outside",
            Self::Inside => "called by a worker",
        }
    }

    /// Returns the highest wanted ratios.
    fn limits(self, size: &str) -> &'static [(&'static str, f64)] {
        match (self, size) {
            (Self::Outside, "1e3" | "1e4") => &[("plain", 1.2)],
            (Self::Outside, "1e5") => &[("plain", 1.0), ("rayon", 0.35)],
            _ => &[],
        }
    }
}

/// A library that can add up the squares of a slice.
trait Sums: 'static {
    const NAME: &'static str;

    /// What a call needs.
    type Context<'h>;

    /// Runs the closure in this place, inside or outside a pool with as many workers as the global ones.
    fn run<R: Send>(place: Place, f: impl FnOnce(&mut Self::Context<'_>) -> R + Send) -> R;

    /// Returns the sum, with [`kernel`] for the pieces.
    fn sum(context: &mut Self::Context<'_>, items: &[f32]) -> f32;
}

pub(crate) fn rows() -> Vec<Row> {
    let rows = |place| SIZES.map(|(size, items, block)| row(place, size, items, block));
    Place::ALL.into_iter().flat_map(rows).collect()
}

fn row(place: Place, size: &'static str, items: usize, block: u64) -> Row {
    let case = format!("{}/{size}", place.id());
    let title = format!("{size} numbers, {}", place.title());
    let mut row = Row::of_pools("range", case, title, vec![&CALL]);
    row.references = vec![Plain::NAME, "rayon"];
    row.workers = Some(global::WORKERS);
    enter::<Heist>(&mut row, place, items, block);
    enter::<WithMinLen>(&mut row, place, items, block);
    enter::<rayon::Rayon>(&mut row, place, items, block);
    #[cfg(feature = "peers")]
    enter::<chili::Chili>(&mut row, place, items, block);
    enter::<Plain>(&mut row, place, items, block);
    let target = |&(name, at_most)| Target {
        of: Heist::NAME,
        metric: &CALL,
        than: Than::Entry(name),
        at_most,
    };
    row.targets = place.limits(size).iter().map(target).collect();
    row
}

fn enter<S: Sums>(row: &mut Row, place: Place, items: usize, block: u64) {
    row.enter(S::NAME, move || measure::<S>(place, &data(items), block));
}

/// Returns small integers, so that the sum of a million squares is exact in any order.
pub(super) fn data(items: usize) -> Vec<f32> {
    numbers(items).map(|number| (number % 4) as f32).collect()
}

fn measure<S: Sums>(place: Place, items: &[f32], block: u64) -> Sample {
    global::prepare(S::NAME);
    let expected = kernel(items);
    let calls = |context: &mut S::Context<'_>| {
        for _ in 0..block {
            let found = S::sum(context, black_box(items));
            assert_eq!(found, expected, "{}: wrong result: not the sum", S::NAME);
        }
    };
    S::run(place, |context| {
        // Unmeasured, because the first calls find the items in memory and the workers asleep.
        calls(context);
        let (start, mut count) = (Instant::now(), 0);
        loop {
            calls(context);
            count += block;
            let time = start.elapsed();
            if time >= TIME {
                return Sample::new(time, count);
            }
        }
    })
}

/// The loop that all entries run on their pieces, compiled once. It has sixteen independent sums, because otherwise
/// each addition would wait for the one before.
#[inline(never)]
pub(super) fn kernel(items: &[f32]) -> f32 {
    let (rows, rest) = items.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for row in rows {
        for (sum, item) in sums.iter_mut().zip(row) {
            *sum += item * item;
        }
    }
    let rest = rest.iter().map(|item| item * item);
    sums.into_iter().chain(rest).sum()
}
