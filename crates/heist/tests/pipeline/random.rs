//! Pipelines of random shapes, with or without a fault, compared with a sequential loop.

use std::thread;

use heist::Pool;
use heist::pipeline::{Pipeline, PipelineError, Stage};
use heist_testkit::test_path;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::test_runner::TestRunner;

use crate::common::pipeline::{
    Fault, How, TrackedItem, Traffic, Way, assert_works, into_result, tracked_items, ways,
};
use crate::common::{Kind, eventually, watched};

/// The shape of a random pipeline.
#[derive(Clone, Copy, Debug)]
struct Shape {
    way: Way,
    items: usize,
    batch: usize,
    bound: usize,
    /// The limit of weight, if there is one. An item weighs from 0 to 4.
    limit: Option<usize>,
    fault: Option<Fault>,
    /// If set, the results are pulled, this many of them.
    pulls: Option<usize>,
}

fn faults() -> impl Strategy<Value = Fault> {
    let stage = prop_oneof![
        Just(Stage::Source),
        Just(Stage::Step(1)),
        Just(Stage::Step(2)),
        Just(Stage::Sink)
    ];
    let how = prop_oneof![Just(How::Error), Just(How::Panic)];
    (stage, how, 0..250_usize).prop_map(|(stage, how, item)| Fault { stage, how, item })
}

fn shapes() -> impl Strategy<Value = Shape> {
    let way = (0..ways().count()).prop_map(|n| ways().nth(n).expect("counted"));
    let sizes = (0..200_usize, 1..20_usize, 1..10_usize);
    let limit = prop_oneof![2 => Just(None), 1 => (1..40_usize).prop_map(Some)];
    let fault = prop_oneof![Just(None), faults().prop_map(Some)];
    let pulls = prop_oneof![2 => Just(None), 1 => (0..200_usize).prop_map(Some)];
    (way, sizes, limit, fault, pulls, any::<bool>()).prop_map(
        |(way, (items, batch, bound), limit, fault, pulls, all)| {
            let pulls = if all { pulls.map(|_| usize::MAX) } else { pulls };
            // When results are pulled, there is no sink that could fail.
            let fault = fault.filter(|fault| pulls.is_none() || fault.stage != Stage::Sink);
            Shape { way, items, batch, bound, limit, fault, pulls }
        },
    )
}

/// The outcome of a run: the results, and the error.
type Outcome = (Vec<usize>, Option<PipelineError>);

impl Shape {
    fn check(&self, stage: Stage, item: usize) -> Result<(), String> {
        self.fault.map_or(Ok(()), |fault| fault.check(stage, item))
    }

    fn run(self, pool: &Pool, items: Vec<TrackedItem>, traffic: &'static Traffic) -> Outcome {
        let shape = self;
        let test = move |item: TrackedItem, stage| shape.check(stage, item.0.number).map(|()| item);
        let source = items.into_iter().map(move |item| {
            traffic.take(1);
            test(item, Stage::Source)
        });
        let pipeline = Pipeline::try_new(source).batch(self.batch).in_flight(self.bound);
        let pipeline = self.way.of(pipeline);
        macro_rules! finish {
            ($pipeline:expr) => {
                self.finish(
                    pool,
                    $pipeline
                        .try_map(move |item| test(item, Stage::Step(1)))
                        .try_map(move |item| test(item, Stage::Step(2)))
                        .map(move |item| into_result(item).number - shape.items),
                    traffic,
                )
            };
        }
        match self.limit {
            None => finish!(pipeline),
            Some(limit) => finish!(pipeline.weigh(|item: &TrackedItem| item.0.number % 5, limit)),
        }
    }

    fn finish<S, G>(self, pool: &Pool, pipeline: Pipeline<S, G>, traffic: &Traffic) -> Outcome
    where
        S: heist::pipeline::Source + Send + 'static,
        S::Item: Send + 'static,
        G: heist::pipeline::Steps<S::Item, Out = usize> + 'static,
    {
        let mut delivered = Vec::new();
        let Some(most) = self.pulls else {
            let outcome = pipeline.try_run(pool, |n| {
                traffic.deliver(1);
                self.check(Stage::Sink, n).map(|()| delivered.push(n))
            });
            return (delivered, outcome.err());
        };
        let mut results = pipeline.results(pool).expect("a start");
        while delivered.len() < most {
            traffic.deliver(1);
            match results.next() {
                Some(Ok(n)) => delivered.push(n),
                Some(Err(error)) => {
                    assert!(results.next().is_none());
                    return (delivered, Some(error));
                }
                None => break,
            }
        }
        (delivered, None)
    }

    /// Compares the outcome with that of a sequential loop.
    fn judge(self, (delivered, error): Outcome) {
        let fault = self.fault.filter(|fault| fault.item < self.items);
        let cut_off = self.pulls.is_some_and(|most| delivered.len() == most);
        let expected = match fault {
            None => self.items,
            // With weights, the borders of batches are not known.
            Some(fault) if self.limit.is_some() || cut_off => fault.item.min(delivered.len()),
            Some(Fault { stage: Stage::Step(_), item, .. }) => item / self.batch * self.batch,
            Some(fault) => fault.item,
        };
        match (fault, &error) {
            (Some(fault), Some(error)) if self.limit.is_none() => {
                fault.assert_told(error, self.batch)
            }
            (Some(fault), Some(error)) => assert_eq!(error.stage(), Some(fault.stage)),
            (_, None) if cut_off => {}
            (None, None) => {}
            _ => panic!("{error:?}"),
        }
        if fault.is_none_or(|_| self.way.ordered) {
            assert_eq!(delivered.len(), expected.min(self.pulls.unwrap_or(usize::MAX)));
        }
        assert!(fault.is_none_or(|fault| !delivered.contains(&fault.item)));
        self.way.assert_some(delivered, self.items);
    }
}

/// Runs random shapes, each on one of the pools.
fn hammer(pools: &[Pool], cases: u32) {
    // Failures are not recorded in a file: a shape that fails becomes a test of its own.
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(shapes(), 0..pools.len()), |(shape, pool)| {
        let (ledger, items) = tracked_items(shape.items);
        // The source may outlive the test if the results are dropped.
        let traffic: &'static Traffic = Box::leak(Box::default());
        shape.judge(shape.run(&pools[pool], items, traffic));
        let held = usize::from(shape.limit.is_some());
        assert!(traffic.most() <= shape.batch * shape.bound + held, "{traffic:?}");
        if shape.pulls.is_some() {
            eventually("everything is gone", || ledger.dropped() == 2 * shape.items);
        }
        ledger.assert_each_once();
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    pools.iter().for_each(assert_works);
}

#[test]
fn any_shape() {
    watched(test_path!("any_shape"), || {
        let of = |workers| {
            let builder = move |strategy| Pool::builder().workers(workers).strategy(strategy);
            heist::Strategy::ALL.map(|strategy| builder(strategy).build().expect("a pool"))
        };
        hammer(&[1, 2, 4, 11].into_iter().flat_map(of).collect::<Vec<_>>(), 400);
    });
}

/// Several threads run pipelines on one pool.
#[test]
fn many_at_once() {
    watched(test_path!("many_at_once"), || {
        let pools =
            [Kind::WORK_STEALING.pool(3), Kind::LOCKED_DEQUES.pool(2), Kind::GLOBAL_QUEUE.pool(2)];
        for pool in pools {
            let pool = [pool];
            thread::scope(|scope| {
                (0..4).for_each(|_| _ = scope.spawn(|| hammer(&pool, 50)));
            });
        }
    });
}
