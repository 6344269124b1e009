//! The trace workload: the cost of keeping a trace.

use harness::metric;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

use crate::peers::Pool;
use crate::peers::heist::{Heist, Traced, WorkStealing};
use crate::workloads::duel;
use crate::workloads::fork::{Ours, fib};

const WORKERS: usize = 2;

const TRACED: &str = Heist::<Traced>::NAME;
const UNTRACED: &str = "untraced";

/// The highest wanted ratio to the time without a trace. A join leaves no event, so its cost should differ only by
/// noise.
const LIMIT: f64 = 1.25;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("fib", "a Fibonacci number, a join at every call", |keeps| match keeps {
            Keeps::Nothing => fib::measure::<Ours<WorkStealing>>(WORKERS),
            Keeps::Trace => fib::measure::<Ours<Traced>>(WORKERS),
        }),
        row("tasks-1us", "tasks of 1 µs from outside", |keeps| match keeps {
            Keeps::Nothing => duel::uniform::<Heist<WorkStealing>>(WORKERS),
            Keeps::Trace => duel::uniform::<Heist<Traced>>(WORKERS),
        }),
    ]
}

/// What the pool of an entry keeps.
#[derive(Clone, Copy)]
enum Keeps {
    Nothing,
    Trace,
}

fn row(case: &str, title: &str, measure: fn(Keeps) -> Sample) -> Row {
    let mut row = Row::of_pools("trace", case.into(), title.into(), vec![&metric::TIME]);
    row.references = vec![UNTRACED];
    row.workers = Some(WORKERS);
    row.enter(TRACED, move || measure(Keeps::Trace));
    row.enter(UNTRACED, move || measure(Keeps::Nothing));
    let than = Than::Entry(UNTRACED);
    row.targets = vec![Target { of: TRACED, metric: &metric::TIME, than, at_most: LIMIT }];
    row
}
