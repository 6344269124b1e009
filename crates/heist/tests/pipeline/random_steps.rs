//! Chains of stages with random parameters, policies and a fault, compared with a sequential loop.

use std::collections::BTreeSet;
use std::sync::Mutex;

use heist::Pool;
use heist::pipeline::{Dead, DeadLetter, Pipeline, PipelineError, Report, Retry, Skip, Stage};
use heist_testkit::test_path;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::test_runner::TestRunner;

use crate::common::pipeline::{Way, assert_works, tracked_items, ways};
use crate::common::watched;

/// A random chain: a filter, a stage that fails for some items, one that makes several results, and one for batches.
#[derive(Clone, Copy, Debug)]
struct Chain {
    way: Way,
    items: usize,
    /// The items come from so many merged sources.
    sources: usize,
    /// Whether there is a second sink.
    is_teed: bool,
    batch: usize,
    bound: usize,
    /// Items whose number has this remainder are left out, if there is a divisor.
    left_out: Option<(usize, usize)>,
    /// Items whose number has this remainder fail as often as their number says, modulo 4, or always.
    fails: (usize, usize, bool),
    policy: Policy,
    /// Each item has as many results as its number says, modulo this one.
    results: usize,
    /// Whether a stage for batches comes last.
    by_batch: bool,
}

#[derive(Clone, Copy, Debug)]
enum Policy {
    Stop,
    Skip,
    Letter,
    RetryOrSkip(u32),
    RetryOrStop(u32),
}

fn chains() -> impl Strategy<Value = Chain> {
    let way = (0..ways().count()).prop_map(|n| ways().nth(n).expect("counted"));
    let sizes = (0..150_usize, 1..20_usize, 1..10_usize, 1..5_usize);
    let left_out = proptest::option::of((2..6_usize, 0..6_usize));
    let fails = (3..50_usize, 0..50_usize, any::<bool>());
    let policy = (0..5, 0..4_u32).prop_map(|(kind, times)| match kind {
        0 => Policy::Stop,
        1 => Policy::Skip,
        2 => Policy::Letter,
        3 => Policy::RetryOrSkip(times),
        _ => Policy::RetryOrStop(times),
    });
    let switches = (any::<bool>(), any::<bool>());
    (way, sizes, left_out, fails, policy, 1..5_usize, switches).prop_map(
        |(way, sizes, left_out, fails, policy, results, (by_batch, is_teed))| {
            let (items, batch, bound, sources) = sizes;
            Chain {
                way,
                items,
                sources,
                is_teed,
                batch,
                bound,
                left_out,
                fails,
                policy,
                results,
                by_batch,
            }
        },
    )
}

/// What comes of an item at the stage that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    LeftOut,
    Passes,
    Skipped,
    EndsTheRun,
}

impl Chain {
    fn keeps(self, item: usize) -> bool {
        self.left_out.is_none_or(|(divisor, rest)| item % divisor != rest % divisor)
    }

    /// Returns how often the stage fails for an item.
    fn failures(self, item: usize) -> u32 {
        let (divisor, rest, always) = self.fails;
        match item % divisor == rest % divisor {
            true if always => u32::MAX,
            true => (item % 4) as u32,
            false => 0,
        }
    }

    fn fate(self, item: usize) -> Fate {
        let failures = self.failures(item);
        match self.policy {
            _ if !self.keeps(item) => Fate::LeftOut,
            _ if failures == 0 => Fate::Passes,
            Policy::Stop => Fate::EndsTheRun,
            Policy::Skip | Policy::Letter => Fate::Skipped,
            Policy::RetryOrSkip(times) | Policy::RetryOrStop(times) if failures <= times => {
                Fate::Passes
            }
            Policy::RetryOrSkip(_) => Fate::Skipped,
            Policy::RetryOrStop(_) => Fate::EndsTheRun,
        }
    }

    /// Returns the results of some items, in order.
    fn expected(self, items: impl Iterator<Item = usize>) -> Vec<usize> {
        let passes = items.filter(|item| self.fate(*item) == Fate::Passes);
        passes.flat_map(|item| (0..item % self.results).map(move |n| 10 * item + n)).collect()
    }

    /// Runs the chain. Returns its outcome, its results, and the items that went to the dead letters.
    fn run(self, pool: &Pool) -> (Result<Report, PipelineError>, Vec<usize>, BTreeSet<usize>) {
        let (ledger, items) = tracked_items(self.items);
        let calls = Mutex::new(vec![0_u32; self.items]);
        let letters = Mutex::new(BTreeSet::new());
        let fail = |item: usize| {
            let mut calls = calls.lock().expect("no panic");
            calls[item] += 1;
            if calls[item] <= self.failures(item) { Err("planned") } else { Ok(item) }
        };
        let letter = |dead: Dead<usize, &str>| {
            assert_eq!((dead.index, dead.stage), (Some(dead.item as u64), Stage::Step(3)));
            assert!(letters.lock().expect("no panic").insert(dead.item));
        };
        let (mut results, mut copies) = (Vec::new(), Vec::new());
        // Item n is from source n modulo their number, so that the turns make the order of the numbers.
        let mut parts: Vec<_> = (0..self.sources).map(|_| Vec::new()).collect();
        items.into_iter().for_each(|item| parts[item.0.number % self.sources].push(item));
        let merged = Pipeline::merge_all(parts.into_iter().map(Pipeline::new));
        let pipeline = merged.batch(self.batch).in_flight(self.bound);
        let pipeline = self
            .way
            .of(pipeline)
            .filter(|item| self.keeps(item.0.number))
            .map(|item| item.0.number)
            .try_map(fail);
        let retry = Retry::times;
        macro_rules! finish {
            ($pipeline:expr) => {{
                let expand = |item: usize| (0..item % self.results).map(move |n| 10 * item + n);
                let pipeline = $pipeline.flat_map(expand).map_init(|| (), |(), n| n);
                if self.by_batch {
                    let whole = pipeline.map_batch(|batch| batch.split_off(0));
                    whole.run(pool, |batch| results.extend(batch))
                } else if self.is_teed {
                    let tee = pipeline.tee(|n| copies.push(*n));
                    let outcome = tee.run(pool, |n| results.push(n));
                    assert_eq!(results, copies);
                    outcome
                } else {
                    pipeline.run(pool, |n| results.push(n))
                }
            }};
        }
        let outcome = match self.policy {
            Policy::Stop => finish!(pipeline),
            Policy::Skip => finish!(pipeline.on_error(Skip)),
            Policy::Letter => finish!(pipeline.on_error(DeadLetter(letter))),
            Policy::RetryOrSkip(times) => finish!(pipeline.on_error(retry(times)).on_error(Skip)),
            Policy::RetryOrStop(times) => finish!(pipeline.on_error(retry(times))),
        };
        ledger.assert_each_once();
        (outcome, results, letters.into_inner().expect("no panic"))
    }

    fn check(self, pool: &Pool) {
        let (outcome, mut results, letters) = self.run(pool);
        let of = |fate| (0..self.items).filter(move |item| self.fate(*item) == fate);
        let ends: Vec<_> = of(Fate::EndsTheRun).collect();
        let report = match &outcome {
            Ok(report) => report,
            Err(error) => {
                let item = error.item().expect("a single item") as usize;
                assert_eq!(
                    (error.stage(), error.batch()),
                    (Some(Stage::Step(3)), Some((item / self.batch) as u64))
                );
                assert!(ends.contains(&item) && (!self.way.ordered || item == ends[0]), "{error}");
                error.report().expect("a report")
            }
        };
        assert_eq!(outcome.is_err(), !ends.is_empty());
        if self.way.ordered || ends.is_empty() {
            let end = ends.first().map_or(self.items, |item| item / self.batch * self.batch);
            if !self.way.ordered {
                results.sort_unstable();
            }
            assert_eq!(results, self.expected(0..end));
        } else {
            results.sort_unstable();
            let all = self.expected(0..self.items);
            assert!(results.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(results.iter().all(|result| all.binary_search(result).is_ok()));
        }
        assert!(report.largest_in_flight <= self.bound);
        if ends.is_empty() {
            assert_eq!(report.items, self.items as u64);
            assert_eq!(report.skipped, of(Fate::Skipped).count() as u64);
            if matches!(self.policy, Policy::Letter) {
                assert!(letters.into_iter().eq(of(Fate::Skipped)));
            }
        }
    }
}

#[test]
fn any_chain() {
    watched(test_path!("any_chain"), || {
        let pools =
            [1, 2, 4, 11].map(|workers| Pool::builder().workers(workers).build().expect("a pool"));
        let config =
            ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&(chains(), 0..pools.len()), |(chain, pool)| {
            chain.check(&pools[pool]);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        pools.iter().for_each(assert_works);
    });
}
