//! The injector workload: its cases, their sizes and targets, and what a queue must do to take
//! part.

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

/// Push+steal pairs of one thread.
const ALONE: u64 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

/// Threads that push, and as many that steal: more than the reference machine has cores, for an
/// injector serves threads that the scheduler does not know.
const PRODUCERS: u64 = 2;

/// Items that go from producers to consumers, in all.
const MOVED: u64 = if cfg!(test) { 4_000 } else { 400_000 };

/// Items that a thief finds.
const DRAINED: u64 = if cfg!(test) { 1_000 } else { 100_000 };

/// How often it finds them in one sample. Odd, or a tally's exclusive or would say nothing.
const DRAINS: u64 = 7;

/// The highest ratio to crossbeam that we want to see, whatever the case.
const TARGET: f64 = 1.0;

/// A queue that anyone pushes to and anyone steals from.
pub(crate) trait Shared<T>: Sync + Sized {
    /// Where a batch goes.
    type Worker: Owner<T>;

    const NAME: &'static str;

    /// How far above the target of a case this queue may stay; `None` if it has no targets.
    const ALLOWANCE: Option<f64> = None;

    fn new() -> Self;

    fn push(&self, item: T);

    fn steal(&self, take: impl FnOnce(T)) -> Outcome;

    /// About half of the items, at most a batch: one for the closure, the others for `into`.
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

    /// A function that was compiled for one queue and one item type.
    fn run<T: Item, S: Shared<T>>(self) -> fn() -> Sample {
        match self {
            Self::Alone => loops::alone::<T, S>,
            Self::Crowd => loops::crowd::<T, S>,
            Self::DrainBatch => loops::drain_batch::<T, S>,
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
