//! The contract of a pool that stops during a run: the run ends, with its result or because of the stop,
//! and the pool stops.

use std::fmt::Debug;
use std::num::NonZero;
use std::thread;

use heist::Pool;
use heist::pipeline::{Pipeline, PipelineError, Report};

use crate::common::pipeline::{Traffic, Way, into_result, stealing_ways, tracked_items, ways};
use crate::common::{
    Gate, Kind, Rng, ThreadGroup, Tracked, WORKERS, eventually, for_every_strategy,
};

for_every_strategy! {
    before_the_run,
    endless,
    idle_feed,
    any_time,
    by_the_sink,
    results_of_a_stopped_pool,
    results_outlive_the_pool,
    before_any_worker_started,
}

fn assert_stopped<T: Debug>(outcome: Result<T, PipelineError>) {
    assert!(matches!(outcome, Err(PipelineError::Stopped { .. })), "{outcome:?}");
}

fn before_the_run(kind: Kind) {
    for (workers, stop) in [(1, Pool::stop as fn(&Pool)), (2, Pool::stop_now)] {
        let pool = kind.pool(workers);
        stop(&pool);
        for way in ways() {
            let (ledger, items) = tracked_items(50);
            let pipeline = Pipeline::new(items).batch(3).map(into_result);
            assert_stopped(way.of(pipeline).run(&pool, |_| panic!("{way:?}")));
            ledger.assert_each_once();
        }
    }
}

/// Stops the pool from another thread once a condition holds.
fn stopped_by_another(
    pool: &Pool,
    stop: fn(&Pool),
    is_so: impl Fn() -> bool + Send,
    run: impl FnOnce() -> Result<Report, PipelineError>,
) -> Result<Report, PipelineError> {
    thread::scope(|scope| {
        scope.spawn(move || {
            eventually("it is time to stop", is_so);
            stop(pool);
        });
        run()
    })
}

fn endless(kind: Kind) {
    for workers in WORKERS {
        for way in ways() {
            let group = ThreadGroup::new();
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            let traffic = Traffic::default();
            let mut results = Vec::new();
            let some = || traffic.delivered() > 200;
            let outcome = stopped_by_another(&pool, Pool::stop_now, some, || {
                let sink = |n| {
                    traffic.deliver(1);
                    results.push(n);
                };
                let pipeline = Pipeline::new(0..).batch(3).in_flight(20).map(|n: usize| n);
                way.of(pipeline).run(&pool, sink)
            });
            assert_stopped(outcome);
            way.assert_some(results, usize::MAX);
            group.assert_gone();
        }
    }
}

/// The pool stops while the feed is empty and no worker is active.
fn idle_feed(kind: Kind) {
    for workers in WORKERS {
        for way in ways() {
            let pool = kind.pool(workers);
            let traffic = Traffic::default();
            let (sender, pipeline) = Pipeline::fed(NonZero::new(3).expect("a number"));
            sender.send(0).expect("room");
            let idle = || traffic.delivered() == 1;
            let outcome = stopped_by_another(&pool, Pool::stop_now, idle, || {
                way.of(pipeline.map(|n: usize| n)).run(&pool, |_| traffic.deliver(1))
            });
            assert_stopped(outcome);
            assert!(sender.send(1).is_err(), "{way:?}");
        }
    }
}

/// The pool stops at a random moment of a run.
fn any_time(kind: Kind) {
    for (seed, way) in ways().cycle().take(120).enumerate() {
        let mut rng = Rng::new(seed as u64);
        let pool = kind.pool(WORKERS[rng.below(3)]);
        let stop = [Pool::stop as fn(&Pool), Pool::stop_now][rng.below(2)];
        let (ledger, items) = tracked_items(300);
        let mut results = Vec::new();
        let patience = rng.below(20_000);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                (0..patience).for_each(|_| std::hint::spin_loop());
                stop(&pool);
            });
            let pipeline = Pipeline::new(items).batch(2).in_flight(9).map(into_result);
            way.of(pipeline).run(&pool, |result| results.push(result.number - 300))
        });
        match outcome {
            Ok(report) => assert_eq!((report.results, results.len()), (300, 300), "{way:?}"),
            Err(PipelineError::Stopped { .. }) => {}
            Err(other) => panic!("{way:?}: {other}"),
        }
        way.assert_some(results, 300);
        ledger.assert_each_once();
    }
}

/// The sink runs on the thread of the caller: it may stop the pool and wait for the stop.
fn by_the_sink(kind: Kind) {
    for workers in WORKERS {
        for (way, stop) in
            stealing_ways().flat_map(|way| [(way, Pool::stop as fn(&Pool)), (way, Pool::stop_now)])
        {
            let pool = kind.pool(workers);
            let (ledger, items) = tracked_items(300);
            let pipeline = Pipeline::new(items).batch(2).in_flight(9).map(into_result);
            let mut results = Vec::new();
            let sink = |result: Tracked| {
                results.push(result.number - 300);
                if results.len() == 50 {
                    stop(&pool);
                }
            };
            assert_stopped(way.of(pipeline).run(&pool, sink));
            way.assert_some(results, 300);
            ledger.assert_each_once();
        }
    }
}

/// Checks that the results end with the reason of the stop, once.
fn last_word(way: Way, results: impl Iterator<Item = Result<usize, PipelineError>>) -> Vec<usize> {
    let (mut delivered, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        assert!(errors.is_empty(), "{way:?}: something after the error");
        result.map_or_else(|error| errors.push(error), |n| delivered.push(n));
    }
    assert_stopped(errors.pop().map_or(Ok(()), Err));
    delivered
}

fn results_of_a_stopped_pool(kind: Kind) {
    let pool = kind.pool(2);
    pool.stop();
    for way in ways() {
        let (ledger, items) = tracked_items(50);
        let pipeline = Pipeline::new(items).batch(3).map(|item| into_result(item).number);
        let results = way.of(pipeline).results(&pool).expect("a start");
        assert_eq!(last_word(way, results), [0; 0], "{way:?}");
        eventually("everything is gone", || ledger.dropped() == 100);
        ledger.assert_each_once();
    }
}

/// Dropping the pool does not wait for results that are not pulled.
fn results_outlive_the_pool(kind: Kind) {
    for workers in WORKERS {
        for way in ways() {
            let group = ThreadGroup::new();
            let pool = kind.builder_in(&group, workers).build().expect("a pool");
            let (ledger, items) = tracked_items(300);
            let pipeline = Pipeline::new(items).batch(2).in_flight(9);
            let pipeline = pipeline.map(|item| into_result(item).number - 300);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let mut delivered: Vec<_> = results.by_ref().take(50).map(Result::unwrap).collect();
            drop(pool);
            group.assert_gone();
            delivered.extend(last_word(way, results));
            // At most the items that were in flight are delivered.
            assert!(delivered.len() <= 50 + 18, "{way:?}");
            way.assert_some(delivered, 300);
            eventually("everything is gone", || ledger.dropped() == 600);
            ledger.assert_each_once();
        }
    }
}

/// The pool accepts the worker tasks of the pipeline, and is stopped before it runs them.
fn before_any_worker_started(kind: Kind) {
    for way in ways() {
        let pool = kind.pool(2);
        let (ledger, items) = tracked_items(50);
        let gate = Gate::close(&pool);
        let pipeline = Pipeline::new(items).batch(3).map(|item| into_result(item).number);
        let results = way.of(pipeline).results(&pool).expect("a start");
        gate.stop_now(&pool);
        assert_eq!(last_word(way, results), [0; 0], "{way:?}");
        eventually("everything is gone", || ledger.dropped() == 100);
        ledger.assert_each_once();
    }
}
