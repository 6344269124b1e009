//! Random graphs of stages, compared with a sequential loop: two parts of a chain, each of them plain, limited to few workers or in
//! groups by key, and each with random stages, failures and policies.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use heist::Pool;
use heist::pipeline::{Pipeline, PipelineError, Report, Retry, Skip, Stage};
use heist_testkit::test_path;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::test_runner::TestRunner;

use crate::common::pipeline::{Way, assert_works, ways};
use crate::common::{Ledger, Tracked, watched};

/// An item makes fewer copies of itself than this in one part.
const COPIES: usize = 4;

/// What is processed. All copies of an item share what is dropped with the last one of them.
#[derive(Clone)]
struct Item {
    _tracked: Arc<Tracked>,
    /// The index of the item in the source, and behind each part the number of the copy.
    value: usize,
}

/// How the workers process a part of the chain.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    /// So many at a time.
    Limited(usize),
    /// In so many groups, by this number of keys.
    Grouped(usize, usize),
}

/// A part of the chain: a filter, a stage that may fail, and one that makes copies.
#[derive(Clone, Copy, Debug)]
struct Part {
    kind: Kind,
    /// Values with this remainder are left out, if there is a divisor.
    left_out: Option<(usize, usize)>,
    /// Values with this remainder fail as often as they say, modulo 4, or always, if there is a divisor.
    fails: Option<(usize, usize, bool)>,
    /// How often the stage is called again.
    retries: Option<u32>,
    skips: bool,
    /// Each value has as many copies as it says, modulo this one.
    copies: usize,
}

fn parts() -> impl Strategy<Value = Part> {
    let kind = (0..3, 1..4_usize, 1..9_usize).prop_map(|(kind, few, keys)| match kind {
        0 => Kind::Plain,
        1 => Kind::Limited(few),
        _ => Kind::Grouped(few * few, keys),
    });
    let left_out = proptest::option::of((2..6_usize, 0..6_usize));
    let fails = proptest::option::of((5..300_usize, 0..300_usize, any::<bool>()));
    let retries = proptest::option::of(0..4_u32);
    (kind, left_out, fails, retries, any::<bool>(), 2..=COPIES).prop_map(
        |(kind, left_out, fails, retries, skips, copies)| Part {
            kind,
            left_out,
            fails,
            retries,
            skips,
            copies,
        },
    )
}

/// What comes of a value in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    LeftOut,
    Passes,
    Skipped,
    EndsTheRun,
}

impl Part {
    fn keeps(self, value: usize) -> bool {
        self.left_out.is_none_or(|(divisor, rest)| value % divisor != rest % divisor)
    }

    fn failures(self, value: usize) -> u32 {
        match self.fails {
            Some((divisor, rest, always)) if value % divisor == rest % divisor => {
                if always {
                    u32::MAX
                } else {
                    (value % 4) as u32
                }
            }
            _ => 0,
        }
    }

    fn fate(self, value: usize) -> Fate {
        match self.failures(value) {
            _ if !self.keeps(value) => Fate::LeftOut,
            failures if failures <= self.retries.unwrap_or(0) => Fate::Passes,
            _ if self.skips => Fate::Skipped,
            _ => Fate::EndsTheRun,
        }
    }

    fn copies(self, value: usize) -> impl Iterator<Item = usize> {
        (0..value % self.copies).map(move |copy| COPIES * value + copy)
    }

    /// Returns the number of the stage that may fail, if there are `before` others before the part.
    fn failing_stage(self, before: usize) -> usize {
        before + if matches!(self.kind, Kind::Grouped(..)) { 3 } else { 2 }
    }

    fn stages(self) -> usize {
        if matches!(self.kind, Kind::Grouped(..)) { 4 } else { 3 }
    }
}

/// What is seen in a part while it runs.
#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    /// How often the stage was called for each value.
    calls: Mutex<HashMap<usize, u32>>,
    /// The values in the order of their first calls, by their keys.
    by_key: Mutex<HashMap<usize, Vec<usize>>>,
}

impl Seen {
    /// The stage that may fail.
    fn call(&self, part: Part, item: Item) -> Result<Item, &'static str> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        let value = item.value;
        let calls = {
            let mut calls = self.calls.lock().expect("no panic");
            let calls = calls.entry(value).or_insert(0);
            *calls += 1;
            *calls
        };
        if calls == 1 {
            let key = key(part, value);
            self.by_key.lock().expect("no panic").entry(key).or_default().push(value);
        }
        std::thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        if calls <= part.failures(value) { Err("planned") } else { Ok(item) }
    }

    fn check(self, part: Part, ordered: bool) {
        let by_key = self.by_key.into_inner().expect("no panic");
        let in_order = match part.kind {
            Kind::Plain => false,
            Kind::Limited(limit) => {
                assert!(self.most_inside.into_inner() <= limit);
                limit == 1 && ordered
            }
            Kind::Grouped(groups, _) => {
                assert!(self.most_inside.into_inner() <= groups);
                true
            }
        };
        assert!(!in_order || by_key.values().all(|values| values.is_sorted()), "{by_key:?}");
        for (value, calls) in self.calls.into_inner().expect("no panic") {
            let most = part.failures(value).saturating_add(1).min(part.retries.unwrap_or(0) + 1);
            assert!(part.keeps(value) && calls <= most, "{value} was processed {calls} times");
        }
    }
}

/// Returns the key of a value. Parts without groups have one key.
fn key(part: Part, value: usize) -> usize {
    match part.kind {
        Kind::Grouped(_, keys) => value % 31 % keys,
        _ => 0,
    }
}

#[derive(Clone, Copy, Debug)]
struct Graph {
    way: Way,
    items: usize,
    batch: usize,
    bound: usize,
    parts: [Part; 2],
    /// Whether a stage for batches comes last.
    by_batch: bool,
}

fn graphs() -> impl Strategy<Value = Graph> {
    let way = (0..ways().count()).prop_map(|n| ways().nth(n).expect("counted"));
    let sizes = (0..120_usize, 1..20_usize, 1..10_usize);
    (way, sizes, [parts(), parts()], any::<bool>()).prop_map(
        |(way, (items, batch, bound), parts, by_batch)| Graph {
            way,
            items,
            batch,
            bound,
            parts,
            by_batch,
        },
    )
}

/// Adds the stages of a part.
macro_rules! stages {
    ($pipeline:expr, $part:ident, $seen:ident) => {
        $pipeline
            .filter(move |item: &Item| $part.keeps(item.value))
            .try_map(move |item| $seen.call($part, item))
            .on_error($part.retries.map(Retry::times))
            .on_error($part.skips.then_some(Skip))
            .flat_map(move |item: Item| {
                $part.copies(item.value).map(move |value| Item { value, ..item.clone() })
            })
    };
}

/// Adds a part, and goes on with `$next`.
macro_rules! part {
    ($pipeline:expr, $part:expr, $seen:expr, |$next:ident| $then:expr) => {{
        let (pipeline, part, seen) = ($pipeline, $part, $seen);
        match part.kind {
            Kind::Plain => {
                let $next = stages!(pipeline, part, seen);
                $then
            }
            Kind::Limited(limit) => {
                let $next = pipeline.limit_workers(limit, |inner| stages!(inner, part, seen));
                $then
            }
            Kind::Grouped(groups, _) => {
                let by = move |item: &Item| key(part, item.value);
                let $next = pipeline.group_by_key(groups, by, |inner| stages!(inner, part, seen));
                $then
            }
        }
    }};
}

/// What comes of all items, one after the other.
#[derive(Default)]
struct Oracle {
    /// The results of each batch.
    results: Vec<Vec<usize>>,
    /// The stage, the index and the batch of what ends the run.
    ends: BTreeSet<(usize, usize, usize)>,
    skipped: u64,
    retried: u64,
}

impl Oracle {
    fn of(graph: Graph) -> Self {
        let mut oracle = Self::default();
        for item in 0..graph.items {
            let batch = item / graph.batch;
            oracle.results.resize(batch + 1, Vec::new());
            let (mut values, mut before) = (vec![item], 0);
            for part in graph.parts {
                let mut next = Vec::new();
                for value in values {
                    let fate = part.fate(value);
                    match fate {
                        Fate::LeftOut => {}
                        Fate::Passes => next.extend(part.copies(value)),
                        Fate::Skipped => oracle.skipped += 1,
                        Fate::EndsTheRun => {
                            oracle.ends.insert((part.failing_stage(before), item, batch));
                        }
                    }
                    if fate != Fate::LeftOut {
                        let most = part.retries.unwrap_or(0);
                        oracle.retried += u64::from(part.failures(value).min(most));
                    }
                }
                values = next;
                before += part.stages();
            }
            oracle.results[batch].extend(values);
        }
        oracle
    }
}

impl Graph {
    fn run(self, pool: &Pool, seen: &[Seen; 2]) -> (Result<Report, PipelineError>, Vec<usize>) {
        let mut results = Vec::new();
        let ledger = Ledger::new(self.items);
        let item = |value| Item { _tracked: Arc::new(ledger.item(value)), value };
        let items: Vec<_> = (0..self.items).map(item).collect();
        let pipeline = Pipeline::new(items).batch(self.batch).in_flight(self.bound);
        let pipeline = self.way.of(pipeline);
        let [first, second] = seen;
        let outcome = part!(pipeline, self.parts[0], first, |pipeline| {
            part!(pipeline, self.parts[1], second, |pipeline| {
                if self.by_batch {
                    let whole = pipeline.map_batch(std::mem::take);
                    whole.run(pool, |batch| results.extend(batch.iter().map(|item| item.value)))
                } else {
                    pipeline.run(pool, |item| results.push(item.value))
                }
            })
        });
        ledger.assert_each_once();
        (outcome, results)
    }

    fn check(self, pool: &Pool) {
        let seen = [Seen::default(), Seen::default()];
        let (outcome, mut results) = self.run(pool, &seen);
        let oracle = Oracle::of(self);
        let first_end = oracle.ends.iter().map(|(.., batch)| *batch).min();
        assert_eq!(outcome.is_err(), first_end.is_some(), "{outcome:?}");
        let report = match &outcome {
            Ok(report) => report,
            Err(error) => {
                let (Some(Stage::Step(stage)), Some(item)) = (error.stage(), error.item()) else {
                    panic!("{error:?}")
                };
                let batch = error.batch().expect("a batch") as usize;
                assert!(oracle.ends.contains(&(stage, item as usize, batch)), "{error}");
                assert!(!self.way.ordered || Some(batch) == first_end, "{error}");
                error.report().expect("a report")
            }
        };
        assert!(report.largest_in_flight <= self.bound);
        if self.way.ordered || first_end.is_none() {
            let end = first_end.unwrap_or(oracle.results.len());
            let mut expected: Vec<_> = oracle.results.into_iter().take(end).flatten().collect();
            if !self.way.ordered {
                results.sort_unstable();
                expected.sort_unstable();
            }
            assert_eq!(results, expected);
        } else {
            let all: BTreeSet<_> = oracle.results.into_iter().flatten().collect();
            let some: BTreeSet<_> = results.iter().copied().collect();
            assert!(some.len() == results.len() && some.is_subset(&all));
        }
        if first_end.is_none() {
            assert_eq!(report.items, self.items as u64);
            assert_eq!((report.skipped, report.retried), (oracle.skipped, oracle.retried));
        }
        for (seen, part) in seen.into_iter().zip(self.parts) {
            seen.check(part, self.way.ordered);
        }
    }
}

#[test]
fn any_graph() {
    watched(test_path!("any_graph"), || {
        let pools =
            [1, 2, 4, 11].map(|workers| Pool::builder().workers(workers).build().expect("a pool"));
        let config =
            ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&(graphs(), 0..pools.len()), |(graph, pool)| {
            graph.check(&pools[pool]);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        pools.iter().for_each(assert_works);
    });
}
