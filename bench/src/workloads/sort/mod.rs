//! The sort workload: random numbers, with the sorts that come with each library.

use std::time::{Duration, Instant};

use ::heist::parallel;
use harness::item::Tally;
use harness::metric::{self, Metric};
use harness::random::numbers;
use harness::row::{Row, Sample, nanoseconds};
use harness::target::{Target, Than};
use rayon::slice::ParallelSliceMut;

use crate::peers::{Pool, global, heist};

/// Each size: its name, the number of items, and how often they are sorted in a sample.
const SIZES: [(&str, usize, u32); 2] = if cfg!(test) {
    [("1e6", 1_000, 1), ("1e7", 10_000, 2)]
} else {
    [("1e6", 1_000_000, 3), ("1e7", 10_000_000, 1)]
};

const TIME: Metric = Metric { title: "ms", unit: 1e6, ..metric::TOTAL };

const STD: &str = "std";

#[derive(Clone, Copy)]
enum Kind {
    Unstable,
    Stable,
}

impl Kind {
    fn id(self) -> &'static str {
        match self {
            Self::Unstable => "unstable",
            Self::Stable => "stable",
        }
    }

    /// Returns the highest wanted ratios for the large size.
    fn limits(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Unstable => &[(STD, 0.645), ("rayon", 0.8)],
            Self::Stable => &[(STD, 0.645)],
        }
    }

    fn enter(self, row: &mut Row, items: usize, laps: u32) {
        let mut enter = |name, sort: fn(&mut [u64])| {
            row.enter(name, move || measure(name, sort, items, laps));
        };
        match self {
            Self::Unstable => {
                enter(heist::Stealing::NAME, parallel::sort_unstable);
                enter("rayon", |items| items.par_sort_unstable());
                enter(STD, |items| items.sort_unstable());
            }
            Self::Stable => {
                enter(heist::Stealing::NAME, parallel::sort);
                enter("rayon", |items| items.par_sort());
                enter(STD, |items| items.sort());
            }
        }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let rows = |kind| SIZES.map(|(size, items, laps)| row(kind, size, items, laps));
    [Kind::Unstable, Kind::Stable].into_iter().flat_map(rows).collect()
}

fn row(kind: Kind, size: &'static str, items: usize, laps: u32) -> Row {
    let case = format!("{}/{size}", kind.id());
    let title = format!("{}, {size} u64", kind.id());
    let mut row = Row::of_pools("sort", case, title, vec![&TIME]);
    row.references = vec![STD, "rayon"];
    row.workers = Some(global::WORKERS);
    kind.enter(&mut row, items, laps);
    let target = |&(name, at_most)| Target {
        of: heist::Stealing::NAME,
        metric: &TIME,
        than: Than::Entry(name),
        at_most,
    };
    if size == "1e7" {
        row.targets = kind.limits().iter().map(target).collect();
    }
    row
}

/// Sorts on the measuring thread with the global pools. Neither copying nor checking the items is timed.
fn measure(by: &str, sort: fn(&mut [u64]), items: usize, laps: u32) -> Sample {
    global::prepare(by);
    let unsorted: Vec<u64> = numbers(items).collect();
    let mut sorted = unsorted.clone();
    let mut time = Duration::ZERO;
    for _ in 0..laps {
        sorted.copy_from_slice(&unsorted);
        let start = Instant::now();
        sort(&mut sorted);
        time += start.elapsed();
        assert!(sorted.is_sorted(), "{by}: not sorted");
        assert_eq!(tally(&sorted), tally(&unsorted), "{by}: items were lost or duplicated");
    }
    Sample::of([nanoseconds(time / laps)])
}

fn tally(items: &[u64]) -> Tally {
    let mut tally = Tally::default();
    items.iter().for_each(|&item| tally.add(item));
    tally
}
