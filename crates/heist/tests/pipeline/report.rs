//! The contract of reports and errors: counts are exact, messages say what to do, and an invalid pipeline
//! does not start.

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::io;

use heist::CancelToken;
use heist::pipeline::{
    Distribution, Pipeline, PipelineError, Report, Results, SendError, Sender, Stage,
};
use heist_testkit::test_path;

use crate::common::pipeline::{Door, assert_works, stealing_ways, ways};
use crate::common::{Kind, WORKERS, for_every_strategy, watched};

for_every_strategy! {
    counts,
    counts_of_nothing,
    round_robin_without_stealing,
    batches_of_a_blocked_worker_are_stolen,
    no_steals,
    balance,
    shown,
    results_of_a_run_that_fails,
    results_so_far,
    misuse,
}

/// Panics unless the counts of the workers add up to the totals.
fn assert_sums(report: &Report, workers: usize) {
    assert_eq!(report.per_worker.len(), workers, "{report}");
    let sum = |count: fn(&heist::pipeline::WorkerReport) -> u64| {
        report.per_worker.iter().map(count).sum::<u64>()
    };
    assert_eq!(sum(|worker| worker.batches), report.batches, "{report}");
    assert_eq!(sum(|worker| worker.steals), report.steals, "{report}");
    assert!((0.0..=1.0).contains(&report.balance()), "{report}");
}

fn counts(kind: Kind) {
    for workers in [1, 2, 4, 24] {
        let pool = kind.pool(workers);
        for way in ways() {
            let pipeline = Pipeline::new(0..205).batch(10).in_flight(5).map(|n| n);
            let report = way.of(pipeline).run(&pool, drop).expect("an end");
            let counted = (report.items, report.batches, report.results);
            assert_eq!(counted, (205, 21, 205), "{way:?}");
            assert!((1..=5).contains(&report.largest_in_flight), "{way:?}");
            assert_eq!(report.largest_weight, 0, "{way:?}");
            assert!(report.steals == 0 || way.steals, "{way:?}");
            assert_sums(&report, workers);
            let sums = Pipeline::new(0..205).batch(10).map_batch(|batch| batch.iter().sum::<u64>());
            let report = way.of(sums).run(&pool, drop).expect("an end");
            assert_eq!((report.items, report.batches, report.results), (205, 21, 21), "{way:?}");
        }
    }
}

fn counts_of_nothing(kind: Kind) {
    let pool = kind.pool(3);
    for way in ways() {
        let report = way.of(Pipeline::new(0..0)).run(&pool, drop).expect("an end");
        let counted = (report.items, report.batches, report.results, report.largest_in_flight);
        assert_eq!(counted, (0, 0, 0, 0), "{way:?}");
        assert_sums(&report, 3);
    }
}

/// Without stealing, each worker processes the batches that it was given.
fn round_robin_without_stealing(kind: Kind) {
    for workers in [1, 2, 4, 8] {
        let pool = kind.pool(workers);
        for batches in [0, 1, 5, 8, 100] {
            let pipeline = Pipeline::new(0..batches).batch(1).distribute(Distribution::RoundRobin);
            let report = pipeline.steal(false).run(&pool, drop).expect("an end");
            for (number, worker) in report.per_worker.iter().enumerate() {
                let share = (number..batches).step_by(workers).count() as u64;
                assert_eq!((worker.batches, worker.steals), (share, 0), "{report}");
            }
        }
    }
}

/// The other workers process the batches of a blocked worker.
fn batches_of_a_blocked_worker_are_stolen(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for way in stealing_ways().filter(|way| !way.ordered) {
            let (door, mut results) = (Door::default(), 0);
            let pipeline = Pipeline::new(0..100).batch(1).map(|n| {
                if n == 0 {
                    door.pass();
                }
            });
            let sink = |()| {
                results += 1;
                if results == 99 {
                    door.open();
                }
            };
            let report = way.of(pipeline).run(&pool, sink).expect("an end");
            if way.distribution == Distribution::RoundRobin {
                assert!(report.steals > 0, "{report}");
            }
            assert_sums(&report, workers);
        }
    }
}

fn no_steals(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| !way.steals || workers == 1) {
            let report = way.of(Pipeline::new(0..200).batch(1)).run(&pool, drop).expect("an end");
            assert_eq!(report.steals, 0, "{way:?}");
        }
    }
}

/// One worker alone is balanced; one of several that does everything is not.
fn balance(kind: Kind) {
    let report = Pipeline::new(0..100).run(&kind.pool(1), drop).expect("an end");
    assert_eq!(report.balance(), 1.0);
    assert_eq!(Report::default().balance(), 1.0);
    let pipeline = Pipeline::new(0..1).distribute(Distribution::RoundRobin).steal(false);
    let report = pipeline.map(|n| (0..n + 1000).sum::<u64>()).run(&kind.pool(4), drop);
    assert!(report.expect("an end").balance() <= 0.25);
}

fn shown(kind: Kind) {
    let report = Pipeline::new(0..205).batch(10).run(&kind.pool(2), drop).expect("an end");
    let text = report.to_string();
    assert!(text.starts_with("205 items in 21 batches, "), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(format!("{report:?}").contains("largest_in_flight"));
}

/// An invalid pipeline returns an error that says what to do, however it is run, and consumes no item.
fn misuse(kind: Kind) {
    let pool = kind.pool(1);
    for way in ways() {
        let new = || way.of(Pipeline::new(0..9).map(|n| n + 1));
        let outcomes = [
            new().batch(0).run(&pool, drop).map(drop),
            new().batch(0).results(&pool).map(drop),
            new().in_flight(0).run(&pool, drop).map(drop),
            new().in_flight(0).results(&pool).map(drop),
            new().weigh(|_| 1, 0).run(&pool, drop).map(drop),
            new().weigh(|_| 1, 0).results(&pool).map(drop),
        ];
        let errors = outcomes.map(|outcome| outcome.expect_err("no such pipeline"));
        assert!(matches!(errors[0], PipelineError::ZeroBatch) && errors[0].stage().is_none());
        assert!(matches!(errors[1], PipelineError::ZeroBatch) && errors[1].batch().is_none());
        assert!(matches!(errors[2..4], [PipelineError::ZeroInFlight, PipelineError::ZeroInFlight]));
        assert!(matches!(errors[4..], [PipelineError::ZeroWeight, PipelineError::ZeroWeight]));
        for (error, setting) in errors
            .iter()
            .zip(["`batch`", "`in_flight`", "`weigh`"].iter().flat_map(|name| [name, name]))
        {
            assert!(error.to_string().contains(setting), "{error}");
        }
        assert_eq!(new().run(&pool, drop).expect("an end").results, 9);
    }
    assert_works(&pool);
}

/// An error with a cause.
#[derive(Debug)]
struct Wrapped;

impl Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&fmt::Error)
    }
}

#[test]
fn texts() {
    watched(test_path!("texts"), || {
        let pool = Kind::WORK_STEALING.pool(1);
        let failed = |fails: &str| {
            let source =
                (0..3).map(|n| if n == 2 && fails == "source" { Err("planned") } else { Ok(n) });
            let pipeline = Pipeline::try_new(source).batch(1).ordered();
            let check = |now: &str| if now == fails { Err("planned") } else { Ok(()) };
            let pipeline =
                pipeline.try_map(|n| check("first").map(|()| n)).try_map(|_| check("second"));
            pipeline.try_run(&pool, |()| check("sink")).expect_err("a fault")
        };
        assert_eq!(failed("source").to_string(), "the source failed at item 2 (batch 2): planned");
        assert_eq!(failed("first").to_string(), "stage 1 failed at item 0 (batch 0): planned");
        assert_eq!(failed("second").to_string(), "stage 2 failed at item 0 (batch 0): planned");
        let error = failed("sink");
        assert_eq!(error.to_string(), "the sink failed at item 0 (batch 0): planned");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Sink), Some(0)));
        // The message has been printed, and the error beneath it is the next cause.
        assert!(error.source().is_none());
        let wrapped = |n| if n == 2 { Err(io::Error::other(Wrapped)) } else { Ok(n) };
        let error = Pipeline::new(0..3).try_map(wrapped).run(&pool, drop).expect_err("a fault");
        assert_eq!(error.to_string(), "stage 1 failed at item 2 (batch 0): outer");
        assert_eq!(error.source().expect("a cause").to_string(), fmt::Error.to_string());
        let stages = [Stage::Source, Stage::Step(3), Stage::Sink].map(|stage| stage.to_string());
        assert_eq!(stages, ["the source", "stage 3", "the sink"]);
        pool.stop();
        let error = Pipeline::new(0..3).run(&pool, drop).expect_err("a stop");
        assert!(error.to_string().contains("run it on another"), "{error}");
        assert!(error.stage().is_none() && error.source().is_none());
    });
}

/// What may be sent to another thread, and what may be shared.
#[test]
fn types() {
    /// `Send` but not `Sync`.
    type Sendable = std::cell::Cell<u8>;
    fn is_send<T: Send>() {}
    fn is_send_and_sync<T: Send + Sync>() {}
    fn is_error<T: Error + Debug + Display + Send + Sync + 'static>() {}
    is_send_and_sync::<Sender<Sendable>>();
    is_send::<Results<Sendable>>();
    is_send_and_sync::<CancelToken>();
    is_send_and_sync::<Report>();
    is_error::<PipelineError>();
    is_error::<SendError<String>>();
}

/// The report of a run that fails counts each result that the sink has taken.
fn results_of_a_run_that_fails(kind: Kind) {
    let pool = kind.pool(2);
    for (way, how) in ways().flat_map(|way| (0..4).map(move |how| (way, how))) {
        let (token, mut taken) = (CancelToken::new(), 0);
        let stage = |n: u64| {
            if how == 0 && n == 70 { Err("planned") } else { Ok(n) }
        };
        let pipeline = Pipeline::new(0..).batch(7).cancel_on(&token).try_map(stage);
        let sink = |_| {
            match (how, taken) {
                (1, 23) => return Err("planned"),
                (2, 23) => panic!("planned"),
                (3, 23) => token.cancel(),
                _ => {}
            }
            taken += 1;
            Ok(())
        };
        let error = way.of(pipeline).try_run(&pool, sink).expect_err("an error");
        assert_eq!(error.report().expect("a report").results, taken, "{way:?} {how}");
    }
}

/// So does the report of the iterator, at any time.
fn results_so_far(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let pipeline = Pipeline::new(0..).batch(7).cancel_on(&token).map(|n: u64| n);
        let mut results = way.of(pipeline).results(&pool).expect("a start");
        for taken in 0..30 {
            assert_eq!(results.report().results, taken, "{way:?}");
            results.next().expect("a result").expect("no error");
        }
        token.cancel();
        let error = results.next().expect("the end").expect_err("a cancellation");
        assert_eq!(error.report().expect("a report").results, 30, "{way:?}");
        assert_eq!(results.report().results, 30, "{way:?}");
    }
}
