//! The outside workload: joins and scopes by a thread that belongs to no pool, like the main thread of most programs.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use harness::metric::{self, Metric};
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

use super::range::{data, kernel};
use crate::peers::global;

const ITEMS: usize = 10_000;

/// Fewer items than this are not divided further.
const CUTOFF: usize = 4_096;

/// The calls of a sample that follow each other at once, and of one with pauses.
const CALLS: [u64; 2] = if cfg!(test) { [2, 1] } else { [20_000, 50] };

const PAUSE: Duration = Duration::from_millis(1);

const CALL: Metric = Metric { title: "ns per call", digits: (0, 1), ..metric::TIME };

type Sum = fn(&[f32]) -> f32;

/// A kind of call: its name, its title, and the sum by each library. The first one is heist's.
struct Case {
    id: &'static str,
    title: &'static str,
    entries: &'static [(&'static str, Sum)],
    /// The highest wanted ratio to the plain sum, for calls that follow each other.
    at_most: f64,
}

const HEIST: &str = "heist";
const PLAIN: &str = "plain";

const CASES: [Case; 2] = [
    Case {
        id: "join",
        title: "sum of 10,000 numbers by joins",
        entries: &[
            (HEIST, join),
            ("rayon", rayon_join),
            #[cfg(feature = "peers")]
            ("chili", chili_join),
            (PLAIN, plain),
        ],
        at_most: 1.3,
    },
    Case {
        id: "scope",
        title: "sum of 10,000 numbers by a scope of two",
        entries: &[(HEIST, scope), ("rayon", rayon_scope), (PLAIN, plain)],
        at_most: 1.5,
    },
];

pub(crate) fn rows() -> Vec<Row> {
    CASES.iter().flat_map(|case| [row(case, false), row(case, true)]).collect()
}

fn row(case: &'static Case, pauses: bool) -> Row {
    let (when, title) = if pauses { ("after-1ms", ", after 1 ms") } else { ("hot", "") };
    let title = format!("{}, by a thread outside{title}", case.title);
    let mut row = Row::of_pools("outside", format!("{}/{when}", case.id), title, vec![&CALL]);
    row.references = vec![PLAIN, "rayon"];
    row.workers = Some(global::WORKERS);
    for &(name, sum) in case.entries {
        row.enter(name, move || measure(name, sum, pauses));
    }
    let (than, at_most) =
        if pauses { (Than::Entry("rayon"), 0.2) } else { (Than::Entry(PLAIN), case.at_most) };
    row.targets = vec![Target { of: HEIST, metric: &CALL, than, at_most }];
    row
}

fn measure(name: &'static str, sum: Sum, pauses: bool) -> Sample {
    global::prepare(name);
    let items = data(ITEMS);
    let expected = kernel(&items);
    let call = || {
        let found = sum(black_box(&items));
        assert_eq!(found, expected, "{name}: wrong result: not the sum");
    };
    let calls = CALLS[usize::from(pauses)];
    call();
    let mut time = Duration::ZERO;
    if pauses {
        for _ in 0..calls {
            thread::sleep(PAUSE);
            let start = Instant::now();
            call();
            time += start.elapsed();
        }
    } else {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        time = start.elapsed();
    }
    Sample::new(time, calls)
}

fn plain(items: &[f32]) -> f32 {
    let Some((low, high)) = halves(items) else { return kernel(items) };
    plain(low) + plain(high)
}

fn join(items: &[f32]) -> f32 {
    let Some((low, high)) = halves(items) else { return kernel(items) };
    let (low, high) = ::heist::join(|| join(low), || join(high));
    low + high
}

fn rayon_join(items: &[f32]) -> f32 {
    let Some((low, high)) = halves(items) else { return kernel(items) };
    let (low, high) = ::rayon::join(|| rayon_join(low), || rayon_join(high));
    low + high
}

fn scope(items: &[f32]) -> f32 {
    let (low, high) = items.split_at(items.len() / 2);
    let mut sums = [0.0; 2];
    let [first, second] = &mut sums;
    ::heist::scope(|scope| {
        scope.spawn(|_| *first = kernel(low));
        scope.spawn(|_| *second = kernel(high));
    });
    sums[0] + sums[1]
}

fn rayon_scope(items: &[f32]) -> f32 {
    let (low, high) = items.split_at(items.len() / 2);
    let mut sums = [0.0; 2];
    let [first, second] = &mut sums;
    ::rayon::scope(|scope| {
        scope.spawn(|_| *first = kernel(low));
        scope.spawn(|_| *second = kernel(high));
    });
    sums[0] + sums[1]
}

/// Divides the items, unless they are few.
fn halves(items: &[f32]) -> Option<(&[f32], &[f32])> {
    (items.len() > CUTOFF).then(|| items.split_at(items.len() / 2))
}

#[cfg(feature = "peers")]
fn chili_join(items: &[f32]) -> f32 {
    fn sum(scope: &mut chili::Scope<'_>, items: &[f32]) -> f32 {
        let Some((low, high)) = halves(items) else { return kernel(items) };
        let (low, high) = scope.join(|scope| sum(scope, low), |scope| sum(scope, high));
        low + high
    }
    sum(&mut chili::Scope::global(), items)
}
