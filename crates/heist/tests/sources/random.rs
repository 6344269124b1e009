//! Merged sources and chunks of random shapes, with or without a fault, compared with a sequential loop.

use std::thread;
use std::time::Duration;

use heist::Pool;
use heist::pipeline::{Pipeline, PipelineError, Source, Stage};
use heist_testkit::test_path;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::test_runner::TestRunner;

use crate::common::pipeline::{Way, assert_works, ways};
use crate::common::{Ledger, Tracked, watched};
use crate::{NEVER, SOON, fed};

/// Sources of numbered items, which are merged and put together in chunks.
#[derive(Clone, Copy, Debug)]
struct Shape {
    way: Way,
    /// The lengths of the sources, whose items are numbered one source after the other.
    lengths: [usize; 3],
    batch: usize,
    bound: usize,
    chunk: usize,
    /// If set, a chunk is complete after this time as well.
    limit: Option<Duration>,
    /// Whether the first source is fed.
    is_fed: bool,
    /// Whether heavy chunks count more.
    is_weighed: bool,
    /// This source fails at this place, or panics.
    fault: Option<(usize, usize, bool)>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let way = (0..ways().count()).prop_map(|n| ways().nth(n).expect("counted"));
    let lengths = [0..60_usize, 0..60, 0..60];
    let sizes = (1..12_usize, 1..6_usize, 1..9_usize);
    let limit = prop_oneof![2 => Just(None), 1 => Just(Some(NEVER)), 1 => Just(Some(SOON))];
    let fault = proptest::option::of((0..3_usize, 0..60_usize, any::<bool>()));
    (way, lengths, sizes, limit, any::<bool>(), any::<bool>(), fault).prop_map(
        |(way, lengths, (batch, bound, chunk), limit, is_fed, is_weighed, fault)| Shape {
            way,
            lengths,
            batch,
            bound,
            chunk,
            limit,
            // A fed source is not read ahead.
            is_fed: is_fed && limit.is_none(),
            is_weighed,
            fault,
        },
    )
}

type Outcome = (Vec<Vec<usize>>, Result<heist::pipeline::Report, PipelineError>);

impl Shape {
    /// Returns the fault, if its source comes to it. A sender does not fail.
    fn fault(self) -> Option<(usize, usize, bool)> {
        self.fault.filter(|(s, n, _)| *n < self.lengths[*s] && !(self.is_fed && *s == 0))
    }

    fn items(self, source: usize, ledger: &Ledger) -> Vec<Tracked> {
        let before: usize = self.lengths[..source].iter().sum();
        (0..self.lengths[source]).map(|n| ledger.item(before + n)).collect()
    }

    /// Returns the source and the place of an item.
    fn place(self, number: usize) -> (usize, usize) {
        let [first, second, _] = self.lengths;
        match number {
            n if n < first => (0, n),
            n if n < first + second => (1, n - first),
            n => (2, n - first - second),
        }
    }

    fn iterate(
        self,
        source: usize,
        ledger: &Ledger,
    ) -> impl Iterator<Item = Result<Tracked, &'static str>> + Send + use<> {
        let fault = self.fault();
        self.items(source, ledger).into_iter().enumerate().map(move |(n, item)| match fault {
            Some((s, at, panics)) if (s, at) == (source, n) => {
                assert!(!panics, "planned");
                Err("planned")
            }
            _ => Ok(item),
        })
    }

    fn run(self, pool: &Pool, ledger: &Ledger) -> Outcome {
        let source = |s| Pipeline::try_new(self.iterate(s, ledger));
        if self.is_fed {
            let (sender, feed) = fed(3);
            let items = self.items(0, ledger);
            return thread::scope(|scope| {
                scope.spawn(move || {
                    items.into_iter().try_for_each(|item| sender.send(item).map_err(drop))
                });
                self.finish(pool, feed.merge(source(1)).merge(source(2)).chunks(self.chunk))
            });
        }
        let merged = Pipeline::merge_all([0, 1, 2].map(source));
        match self.limit {
            None => self.finish(pool, merged.chunks(self.chunk)),
            Some(limit) => self.finish(pool, merged.chunks_timeout(self.chunk, limit)),
        }
    }

    fn finish<S>(self, pool: &Pool, pipeline: Pipeline<S>) -> Outcome
    where
        S: Source<Item = Vec<Tracked>> + Send,
    {
        if self.is_weighed {
            self.deliver(pool, pipeline.weigh(Vec::len, 2 * self.chunk))
        } else {
            self.deliver(pool, pipeline)
        }
    }

    fn deliver<S>(self, pool: &Pool, pipeline: Pipeline<S>) -> Outcome
    where
        S: Source<Item = Vec<Tracked>> + Send,
    {
        let (mut results, mut copies) = (Vec::new(), Vec::new());
        let pipeline = self.way.of(pipeline).batch(self.batch).in_flight(self.bound);
        let outcome = pipeline
            .map(|chunk| chunk.into_iter().map(|item| item.number).collect::<Vec<_>>())
            .tee(|chunk| copies.push(chunk.clone()))
            .run(pool, |chunk| results.push(chunk));
        assert_eq!(results, copies);
        (results, outcome)
    }

    /// Returns all items in the order of the rounds, up to the fault.
    fn rounds(self) -> Vec<(usize, usize)> {
        let round = |n| (0..3).filter(move |s| n < self.lengths[*s]).map(move |s| (s, n));
        let all = (0..60).flat_map(round);
        all.take_while(|place| self.fault().is_none_or(|(s, n, _)| *place != (s, n))).collect()
    }

    fn check(self, pool: &Pool) {
        let total = self.lengths.iter().sum();
        let ledger = Ledger::new(total);
        let (chunks, outcome) = self.run(pool, &ledger);
        ledger.assert_each_once();
        assert!(chunks.iter().all(|chunk| (1..=self.chunk).contains(&chunk.len())));
        let short = chunks.iter().filter(|chunk| chunk.len() < self.chunk).count();
        assert!(short <= 1 || self.limit == Some(SOON), "{chunks:?}");
        let all: Vec<_> = chunks.concat().into_iter().map(|n| self.place(n)).collect();
        // Each source in its order, within a chunk and, if ordered, across all of them.
        let in_order = |items: &[(usize, usize)]| {
            (0..3).all(|s| items.iter().filter(|item| item.0 == s).is_sorted())
        };
        assert!(!self.way.ordered || in_order(&all));
        let placed = |chunk: &Vec<usize>| chunk.iter().map(|n| self.place(*n)).collect::<Vec<_>>();
        assert!(chunks.iter().all(|chunk| in_order(&placed(chunk))));
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "an item came twice");
        let report = match (&outcome, self.fault()) {
            (Ok(report), None) => {
                assert_eq!(sorted.len(), total);
                report
            }
            (Err(error), Some((source, at, panics))) => {
                assert_eq!(error.stage(), Some(Stage::Source));
                assert_eq!(matches!(error, PipelineError::Panicked { .. }), panics);
                assert!(!all.contains(&(source, at)));
                if self.way.ordered {
                    assert_eq!(error.item(), Some(chunks.len() as u64));
                }
                error.report().expect("a report")
            }
            other => panic!("{other:?}"),
        };
        assert!(report.largest_in_flight <= self.bound);
        // Without threads that read ahead, the order is known.
        if self.way.ordered && self.limit.is_none() && !self.is_fed {
            assert_eq!(all, self.rounds());
        }
    }
}

#[test]
fn any_shape() {
    watched(test_path!("any_shape"), || {
        let pools =
            [1, 2, 4, 11].map(|workers| Pool::builder().workers(workers).build().expect("a pool"));
        let config =
            ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&(shapes(), 0..pools.len()), |(shape, pool)| {
            shape.check(&pools[pool]);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        pools.iter().for_each(assert_works);
    });
}
