//! The pipeline workload: a stream of numbers goes in batches through the workers of a pool, and the results go to
//! a sink, unordered or in order.
//!
//! Small batches show the overhead of a library, coarse ones how well it uses its workers. Every entry begins with
//! the same iterator over single numbers, and ends with the same checksum.

#[cfg(feature = "peers")]
mod channel;
mod heist;
mod job;
mod mpsc;
#[cfg(feature = "peers")]
mod pariter;
mod plain;
mod rayon;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ::heist::pipeline::Distribution;
use harness::metric::{self, Metric};
use harness::row::{Row, Sample};
use harness::target::{Target, Than};
use job::{Chain, Job, Sink, Sum};

use crate::peers::global;

const TIME: Metric = Metric { title: "ns per batch", digits: (1, 2), ..metric::TIME };

/// The obvious implementation with one batch in each message. It is referred to by name, because it may not be
/// built in.
const CHANNEL: &str = "channel";

#[derive(Clone, Copy)]
enum Size {
    /// About 140 ns of work in a batch.
    Small,
    /// About 10 µs of work in a batch.
    Coarse,
}

impl Size {
    fn job(self) -> Job {
        let (batches, rounds) = match self {
            Self::Small => (if cfg!(test) { 1_000 } else { 1_000_000 }, 1),
            Self::Coarse => (if cfg!(test) { 50 } else { 20_000 }, 64),
        };
        Job { batches, rounds }
    }

    fn id(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Coarse => "coarse",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Small => "1,000,000 small batches",
            Self::Coarse => "20,000 coarse batches",
        }
    }

    /// Returns the highest wanted ratios: of which entry, and to which.
    fn limits(self, ordered: bool) -> Vec<(&'static str, &'static str, f64)> {
        match (self, ordered) {
            (Self::Small, false) => vec![
                (heist::PULL, plain::NAME, 0.7),
                (heist::PULL, rayon::NAME, 0.6),
                (heist::ROUND_ROBIN, heist::SHARED, 0.5),
                (heist::HYBRID, heist::SHARED, 0.5),
            ],
            (Self::Small, true) => {
                vec![(heist::PULL, plain::NAME, 0.8), (heist::PULL, CHANNEL, 0.15)]
            }
            // Two workers, each of which is useful for 95 % of the time.
            (Self::Coarse, _) => {
                Distribution::ALL.map(|each| (heist::name(each), plain::NAME, 0.525)).into()
            }
        }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let rows = |size| [unordered(size), ordered(size)];
    [Size::Small, Size::Coarse].into_iter().flat_map(rows).collect()
}

fn unordered(size: Size) -> Row {
    let mut case = Case::<Sum>::new(size, "unordered", "as they come");
    case.enter_ours();
    case.enter(rayon::NAME, rayon::run);
    case.enter(rayon::COLLECT, rayon::run_collect);
    #[cfg(feature = "peers")]
    case.enter_channels();
    if let Size::Small = size {
        case.enter(mpsc::NAME, mpsc::run);
        #[cfg(feature = "peers")]
        case.enter(pariter::NAME, pariter::run);
    }
    case.done()
}

fn ordered(size: Size) -> Row {
    let mut case = Case::<Chain>::new(size, "ordered", "in order");
    case.enter_ours();
    #[cfg(feature = "peers")]
    {
        case.enter_channels();
        if let Size::Small = size {
            case.enter(pariter::NAME, pariter::run);
        }
    }
    case.done()
}

/// A row with what its entries have in common.
struct Case<S> {
    row: Row,
    job: Job,
    /// The result of the plain loop, which runs on first use.
    expected: Arc<OnceLock<S>>,
}

impl<S: Sink> Case<S> {
    fn new(size: Size, id: &str, how: &str) -> Self {
        let id = format!("{}/{id}", size.id());
        let title = format!("{}, {how}", size.title());
        let mut row = Row::of_pools("pipeline", id, title, vec![&TIME]);
        row.workers = Some(global::WORKERS);
        row.references = vec![plain::NAME, rayon::NAME, CHANNEL, heist::SHARED];
        let target =
            |(of, than, at_most)| Target { of, metric: &TIME, than: Than::Entry(than), at_most };
        row.targets = size.limits(S::ORDERED).into_iter().map(target).collect();
        Self { row, job: size.job(), expected: Arc::default() }
    }

    fn enter(&mut self, name: &'static str, run: impl Fn(Job) -> S + Send + 'static) {
        let measure = self.measure(name, run);
        self.row.enter(name, measure);
    }

    fn enter_ours(&mut self) {
        for distribution in Distribution::ALL {
            self.enter(heist::name(distribution), move |job| heist::run(job, distribution));
        }
    }

    #[cfg(feature = "peers")]
    fn enter_channels(&mut self) {
        self.enter(channel::NAME, channel::run);
        self.enter(channel::PACKED, channel::run_packed);
    }

    /// Returns the row with the plain loop, which has no workers.
    fn done(mut self) -> Row {
        let measure = self.measure(plain::NAME, plain::run);
        self.row.enter_sequential(plain::NAME, measure);
        self.row
    }

    /// Measures from the first item to the checksum. That includes starting the threads that an entry does not
    /// keep.
    fn measure(
        &self,
        name: &'static str,
        run: impl Fn(Job) -> S + Send + 'static,
    ) -> impl Fn() -> Sample + Send + 'static {
        let (job, expected) = (self.job, Arc::clone(&self.expected));
        move || {
            let expected = expected.get_or_init(|| plain::run(job));
            let start = Instant::now();
            let found = run(job);
            let time = start.elapsed();
            assert_eq!(found, *expected, "{name}: results were lost, duplicated or out of order");
            Sample::new(time, job.batches)
        }
    }
}
