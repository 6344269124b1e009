//! The injector workload: its cases, their sizes and targets, and the interface that a queue implements.

#[cfg(feature = "peers")]
mod crossbeam;
mod heist;
mod loops;
mod mutex;

use harness::item::{Item, Pointer};
use harness::metric;
use harness::report::REFERENCE;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

use crate::deque::{Outcome, Owner};

/// The number of push+steal pairs of one thread.
const ALONE: u64 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

/// The number of threads that push, and of threads that steal. Together they are more than the reference machine
/// has processors, because an injector serves threads that the scheduler does not know.
const PRODUCERS: u64 = 2;

/// The number of items that go from producers to consumers.
const MOVED: u64 = if cfg!(test) { 4_000 } else { 400_000 };

/// The number of items that a thief drains.
const DRAINED: u64 = if cfg!(test) { 1_000 } else { 100_000 };

/// How often a thief drains them in one sample. It is odd, because the exclusive or of a tally is zero for an even
/// number.
const DRAINS: u64 = 7;

/// The highest wanted ratio to crossbeam, in every case.
const TARGET: f64 = 1.0;

/// A queue to which every thread may push, and from which every thread may steal.
pub(crate) trait Shared<T>: Sync + Sized {
    /// The deque to which a batch goes.
    type Worker: Owner<T>;

    const NAME: &'static str;

    /// How far above the target of a case this queue may be; `None` if it has no targets.
    const ALLOWANCE: Option<f64> = None;

    fn new() -> Self;

    fn push(&self, item: T);

    fn steal(&self, take: impl FnOnce(T)) -> Outcome;

    /// Steals about half of the items, at most one batch: one goes to the closure, the others to `into`.
    fn steal_batch_and_pop(&self, into: &Self::Worker, take: impl FnOnce(T)) -> Outcome;
}

#[derive(Clone, Copy)]
enum Case {
    Alone,
    Crowd,
    DrainBatch,
}

impl Case {
    const ALL: [Self; 3] = [Self::Alone, Self::Crowd, Self::DrainBatch];

    fn id(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Crowd => "2-producers-2-consumers",
            Self::DrainBatch => "drain-batch",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Alone => "push+steal, one thread",
            Self::Crowd => "2 producers, 2 consumers, 400,000 items",
            Self::DrainBatch => "a thief drains 100,000, in batches",
        }
    }

    /// Returns the function that is compiled for one queue and one item type.
    fn run<T: Item, S: Shared<T>>(self) -> fn() -> Sample {
        match self {
            Self::Alone => loops::alone::<T, S>,
            Self::Crowd => loops::crowd::<T, S>,
            Self::DrainBatch => loops::drain_batch::<T, S>,
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
    let metrics = vec![&metric::TIME];
    let mut row = Row::of_queues("injector", T::KIND, case.id(), case.title(), metrics);
    row.references = vec![REFERENCE];
    enter::<T, heist::Injector<T>>(&mut row, case);
    #[cfg(feature = "peers")]
    enter::<T, crossbeam::Injector<T>>(&mut row, case);
    enter::<T, mutex::Injector<T>>(&mut row, case);
    row
}

fn enter<T: Item, S: Shared<T>>(row: &mut Row, case: Case) {
    row.enter(S::NAME, case.run::<T, S>());
    row.targets.extend(S::ALLOWANCE.map(|allowance| Target {
        of: S::NAME,
        metric: &metric::TIME,
        than: Than::Entry(REFERENCE),
        at_most: TARGET + allowance,
    }));
}
