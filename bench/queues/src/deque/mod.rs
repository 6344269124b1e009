//! The deque workload: its cases, their sizes and targets, and the interface that a queue implements.

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

/// The number of push+pop pairs of an owner alone: 2 ms for the fastest queue, 10 ms for the slowest.
const ALONE: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// How long an owner works while a thief steals. It is a time and not a number of operations, because the queues
/// differ thirtyfold.
const CONTENDED: Duration = Duration::from_micros(if cfg!(test) { 50 } else { 5_000 });

/// The number of items that a thief drains: more than fit into the inner caches.
const DRAINED: u64 = if cfg!(test) { 1_000 } else { 100_000 };

/// How often a thief drains them in one sample. It is odd, because the exclusive or of a tally is zero for an even
/// number.
const DRAINS: u64 = 7;

/// The capacity of a bounded deque that holds what a thief drains.
const LARGE: usize = 131_072;

/// The capacity of a bounded deque in usual programs: the choice of tokio, Go and the documentation of st3.
const USUAL: usize = 256;

/// The largest batch, for queues with such a parameter. It is the limit of heist and crossbeam.
const BATCH: usize = heist_deque::BATCH_LIMIT;

/// The outcome of an attempt to steal. The item itself goes to the closure that was passed.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken,
    Empty,
    Retry,
}

/// The owner's end of a deque. Every method is one call of the queue's own method, as its documentation recommends.
pub(crate) trait Owner<T>: Send + Sized {
    type Thief: Thief<T, Worker = Self>;

    const NAME: &'static str;

    /// How far above the target of a case this queue may be; `None` if it has no targets.
    const ALLOWANCE: Option<f64> = None;

    /// Creates a deque. Queues without a capacity ignore it.
    fn new(capacity: usize) -> (Self, Self::Thief);

    /// Pushes an item. Returns it if there is no room.
    fn push(&self, item: T) -> Result<(), T>;

    fn pop(&self) -> Option<T>;
}

/// The thief's end of a deque.
pub(crate) trait Thief<T>: Send {
    type Worker: Owner<T>;

    fn steal(&self, take: impl FnOnce(T)) -> Outcome;

    /// Steals about half of the items, at most [`BATCH`]: one goes to the closure, the others to `into`.
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

    /// Returns the highest wanted ratio to crossbeam. It is lower for pointers, which are the items of a scheduler.
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

    /// Returns the function that is compiled for one queue and one item type.
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

/// Returns every case with every item type.
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
