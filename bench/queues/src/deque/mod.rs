//! The deque workload: its cases, their sizes and targets, and what a queue must do to take part.

mod alone;
mod contended;
mod drain;

#[cfg(feature = "peers")]
pub(crate) mod crossbeam;
pub(crate) mod heist;
pub(crate) mod mutex;
#[cfg(feature = "peers")]
mod st3;

use std::time::Duration;

use harness::item::{Item, ItemKind, Pointer};
use harness::metric::{self, Metric};
use harness::report::REFERENCE;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

/// Push+pop pairs of an owner alone: 2 ms of the fastest queue, 10 ms of the slowest.
const ALONE: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// How long an owner works beside a thief. A time, not a number: the queues differ thirtyfold here.
const CONTENDED: Duration = Duration::from_micros(if cfg!(test) { 50 } else { 5_000 });

/// Items that a thief finds, more than fit into the inner caches.
const DRAINED: u64 = if cfg!(test) { 1_000 } else { 100_000 };

/// How often it finds them in one sample. Odd, or a tally's exclusive or would say nothing.
const DRAINS: u64 = 7;

/// Of a bounded deque that is to hold what a thief drains.
const LARGE: usize = 131_072;

/// Of a bounded deque in daily use: what Tokio, Go and the documentation of st3 choose.
const USUAL: usize = 256;

/// The most that a batch takes in the queues that let us say so: what heist and crossbeam take.
const BATCH: usize = heist_deque::BATCH_LIMIT;

/// What an attempt to steal came to. The item itself goes to the closure that was passed.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken,
    Empty,
    Retry,
}

/// The owner's end of a deque. Every method is a call of the queue's own, as its documentation
/// has it.
pub(crate) trait Owner<T>: Send + Sized {
    type Thief: Thief<T, Worker = Self>;

    const NAME: &'static str;

    /// How far above the target of a case this queue may stay; `None` if it has no targets.
    const ALLOWANCE: Option<f64> = None;

    /// `capacity` is for queues that have one.
    fn new(capacity: usize) -> (Self, Self::Thief);

    /// Hands the item back if there is no room.
    fn push(&self, item: T) -> Result<(), T>;

    fn pop(&self) -> Option<T>;
}

/// The thief's end of a deque.
pub(crate) trait Thief<T>: Send {
    type Worker: Owner<T>;

    fn steal(&self, take: impl FnOnce(T)) -> Outcome;

    /// About half of the items, at most [`BATCH`]: one for the closure, the others for `into`.
    fn steal_batch_and_pop(&self, into: &Self::Worker, take: impl FnOnce(T)) -> Outcome;
}

#[derive(Clone, Copy)]
enum Case {
    Empty,
    Deep,
    Rows64,
    Drain,
    DrainBatch,
    Working1,
    Working64,
    Hammering1,
    Hammering64,
}

impl Case {
    const ALL: [Self; 9] = [
        Self::Empty,
        Self::Deep,
        Self::Rows64,
        Self::Drain,
        Self::DrainBatch,
        Self::Working1,
        Self::Working64,
        Self::Hammering1,
        Self::Hammering64,
    ];

    fn id(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Deep => "deep-100",
            Self::Rows64 => "push-64-pop-64",
            Self::Drain => "drain",
            Self::DrainBatch => "drain-batch",
            Self::Working1 => "working-thief-1",
            Self::Working64 => "working-thief-64",
            Self::Hammering1 => "hammering-thief-1",
            Self::Hammering64 => "hammering-thief-64",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Empty => "push+pop, empty deque",
            Self::Deep => "push+pop, 100 deep",
            Self::Rows64 => "64 push, 64 pop",
            Self::Drain => "a thief drains 100,000, one by one",
            Self::DrainBatch => "a thief drains 100,000, in batches",
            Self::Working1 => "push+pop, thief with 100 ns of work",
            Self::Working64 => "64 push, 64 pop, thief with 100 ns of work",
            Self::Hammering1 => "push+pop, hammering thief",
            Self::Hammering64 => "64 push, 64 pop, hammering thief",
        }
    }

    /// The highest ratio to crossbeam that we want to see: lower where the item is a pointer, as
    /// it is in a scheduler.
    fn target(self, item: ItemKind) -> f64 {
        let (pointer, any) = match self {
            Self::Empty => (0.82, 0.88),
            Self::Deep => (0.75, 0.82),
            Self::Rows64 => (0.92, 0.97),
            Self::Drain | Self::DrainBatch => (0.85, 1.5),
            Self::Working1 | Self::Working64 | Self::Hammering1 | Self::Hammering64 => (1.0, 1.2),
        };
        if item == ItemKind::Pointer { pointer } else { any }
    }

    fn metrics(self) -> Vec<&'static Metric> {
        match self {
            Self::Working1 | Self::Working64 | Self::Hammering1 | Self::Hammering64 => {
                vec![&metric::TIME, &metric::STEALS]
            }
            _ => vec![&metric::TIME],
        }
    }

    /// A function that was compiled for one queue and one item type.
    fn run<T: Item, O: Owner<T>>(self) -> fn() -> Sample {
        match self {
            Self::Empty => alone::measure::<T, O, 1, 0>,
            Self::Deep => alone::measure::<T, O, 1, 100>,
            Self::Rows64 => alone::measure::<T, O, 64, 0>,
            Self::Drain => drain::one_by_one::<T, O>,
            Self::DrainBatch => drain::in_batches::<T, O>,
            Self::Working1 => contended::measure::<T, O, 1, true>,
            Self::Working64 => contended::measure::<T, O, 64, true>,
            Self::Hammering1 => contended::measure::<T, O, 1, false>,
            Self::Hammering64 => contended::measure::<T, O, 64, false>,
        }
    }
}

/// Every case with every item type.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = rows_of::<Pointer>();
    rows.extend(rows_of::<u64>());
    rows.extend(rows_of::<[u64; 8]>());
    rows
}

fn rows_of<T: Item>() -> Vec<Row> {
    Case::ALL.map(row::<T>).into()
}

fn row<T: Item>(case: Case) -> Row {
    let mut row = Row::of_queues("deque", T::KIND, case.id(), case.title(), case.metrics());
    row.references = vec![REFERENCE];
    enter::<T, heist::Bounded<T>>(&mut row, case);
    enter::<T, heist::Growable<T>>(&mut row, case);
    enter::<T, heist::Locked<T>>(&mut row, case);
    #[cfg(feature = "peers")]
    enter::<T, crossbeam::Worker<T>>(&mut row, case);
    #[cfg(feature = "peers")]
    enter::<T, st3::Worker<T>>(&mut row, case);
    enter::<T, mutex::Worker<T>>(&mut row, case);
    row
}

fn enter<T: Item, O: Owner<T>>(row: &mut Row, case: Case) {
    row.enter(O::NAME, case.run::<T, O>());
    row.targets.extend(O::ALLOWANCE.map(|allowance| Target {
        of: O::NAME,
        metric: &metric::TIME,
        than: Than::Entry(REFERENCE),
        at_most: case.target(T::KIND) + allowance,
    }));
}
