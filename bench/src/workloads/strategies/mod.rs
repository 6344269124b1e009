//! The strategies workload: the cost of each of heist's strategies, with few workers and with many.

mod light;
mod throughput;

use harness::metric::{self, Metric};
use harness::row::Row;
use harness::target::{Target, Than};

use crate::peers::heist::{self, Choice, Heist};
use crate::peers::shape::Shape;
use crate::peers::{self, Pool};

const WORKERS: [usize; 5] = [1, 2, 4, 8, 24];

/// The baseline: a pool without deques, with everything in one queue behind one lock.
const REFERENCE: &str = heist::Global::NAME;

/// The targets of work stealing wherever two workers can contend: a tenth of the contended locks, and half of the
/// context switches.
const LIMITS: [(&Metric, f64); 2] = [(&metric::CONTENTION, 0.1), (&metric::SWITCHES, 0.5)];

#[derive(Clone, Copy)]
enum Case {
    Throughput(Shape),
    /// An occasional question among a few other tasks.
    Light,
}

impl Case {
    const ALL: [Self; 3] =
        [Self::Throughput(Shape::Tree), Self::Throughput(Shape::Outside), Self::Light];

    fn id(self) -> &'static str {
        match self {
            Self::Throughput(shape) => shape.id(),
            Self::Light => "light",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Throughput(shape) => shape.title(),
            Self::Light => "a question under light load",
        }
    }

    fn metrics(self) -> Vec<&'static Metric> {
        let counts = [&metric::SWITCHES, &metric::CONTENTION, &metric::WAKE_UPS];
        let times: &[_] = match self {
            Self::Throughput(_) => &[&metric::TASK],
            Self::Light => &[&metric::P50, &metric::P99],
        };
        times.iter().copied().chain(counts).collect()
    }

    fn limits(self, workers: usize) -> &'static [(&'static Metric, f64)] {
        match self {
            Self::Throughput(_) if workers > 1 => &LIMITS,
            _ => &[],
        }
    }

    fn enter<C: Choice>(self, row: &mut Row, workers: usize) {
        match self {
            Self::Throughput(shape) => {
                row.enter(C::NAME, move || throughput::measure::<C>(shape, workers));
            }
            Self::Light => row.enter(C::NAME, move || light::measure::<C>(workers)),
        }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let rows = |case| WORKERS.map(|workers| row(case, workers));
    Case::ALL.into_iter().flat_map(rows).collect()
}

fn row(case: Case, workers: usize) -> Row {
    let id = format!("{}/{workers}", case.id());
    let title = format!("{}, {}", case.title(), peers::workers(workers));
    let mut row = Row::of_pools("strategies", id, title, case.metrics());
    row.references = vec![REFERENCE];
    row.workers = Some(workers);
    case.enter::<heist::WorkStealing>(&mut row, workers);
    case.enter::<heist::LockedDeques>(&mut row, workers);
    case.enter::<heist::GlobalQueue>(&mut row, workers);
    let target = |&(metric, at_most): &(&'static Metric, f64)| Target {
        of: heist::Stealing::NAME,
        metric,
        than: Than::Entry(REFERENCE),
        at_most,
    };
    row.targets = case.limits(workers).iter().map(target).collect();
    row
}

/// The counters of a pool and of the system at some time.
struct Counts {
    contention: u64,
    wake_ups: u64,
    switches: u64,
}

impl Counts {
    fn of<C>(pool: &Heist<C>) -> Self {
        let stats = pool.stats();
        Self {
            contention: stats.total.lock_contention,
            wake_ups: stats.total.wake_ups_sent,
            switches: harness::usage::look().switches,
        }
    }

    /// Returns the counts per 1,000 tasks since then, in the order of the metrics, without the sleeps of the
    /// measuring thread itself.
    fn since(&self, then: &Self, tasks: u64, slept: u64) -> [f64; 3] {
        let switches = (self.switches - then.switches).saturating_sub(slept);
        let counts = [switches, self.contention - then.contention, self.wake_ups - then.wake_ups];
        counts.map(|count| count as f64 * 1e3 / tasks as f64)
    }
}
