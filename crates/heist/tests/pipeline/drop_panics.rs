//! The contract of destructors that panic: a panic affects no other item, wherever it happens.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

use heist::CancelToken;
use heist::pipeline::{Pipeline, Stage};

use crate::common::pipeline::{assert_cancelled, assert_works, ways};
use crate::common::{Kind, Ledger, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    in_a_stage,
    left_by_a_stage,
    in_the_sink,
    in_the_source,
    when_cancelled,
    in_a_feed,
    when_results_are_dropped,
}

const ITEMS: usize = 60;

/// Items, one of which panics when it is dropped.
fn items(bomb: usize) -> (Ledger, Vec<Tracked>) {
    let ledger = Ledger::new(ITEMS);
    let item = |n| if n == bomb { ledger.bomb(n) } else { ledger.item(n) };
    let items = (0..ITEMS).map(item).collect();
    (ledger, items)
}

fn in_a_stage<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        for way in ways() {
            let (ledger, items) = items(33);
            let pipeline = Pipeline::new(items).batch(5).map(drop);
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Map(1)), Some(6)), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn left_by_a_stage<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        for way in ways() {
            let (ledger, items) = items(33);
            let pipeline = Pipeline::new(items).batch(5).map_batch(|batch| batch.len());
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Map(1)), Some(6)), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn in_the_sink<S: Kind>() {
    let pool = S::pool(2);
    for way in ways() {
        let (ledger, items) = items(33);
        let error = way.of(Pipeline::new(items).batch(5)).run(&pool, drop).expect_err("a panic");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Sink), Some(6)), "{way:?}");
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// A failure elsewhere drops the source with its remaining items.
fn in_the_source<S: Kind>() {
    let pool = S::pool(2);
    for way in ways() {
        let (ledger, items) = items(59);
        let pipeline = Pipeline::new(items).batch(5).in_flight(2);
        let fail = |_| Err("planned");
        let error = way.of(pipeline).try_run(&pool, fail).expect_err("a fault");
        assert_eq!(error.stage(), Some(Stage::Sink), "{way:?}");
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// The item is in the source, in a queue or in an outbox.
fn when_cancelled<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        for (way, bomb) in ways().flat_map(|way| [1, 4, 11, 22, 59].map(|bomb| (way, bomb))) {
            let (ledger, items) = items(bomb);
            let token = CancelToken::new();
            let pipeline = Pipeline::new(items).batch(1).in_flight(20).cancel_on(&token);
            let sink = |item: Tracked| {
                token.cancel();
                drop(item.defuse());
            };
            assert_cancelled(way.of(pipeline).run(&pool, sink));
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn in_a_feed<S: Kind>() {
    let pool = S::pool(2);
    for way in ways() {
        let (ledger, items) = items(59);
        let (sender, pipeline) = Pipeline::fed(NonZero::new(ITEMS).expect("a number"));
        items.into_iter().for_each(|item| sender.send(item).expect("room"));
        let token = CancelToken::new();
        let pipeline = pipeline.batch(1).in_flight(2).cancel_on(&token);
        assert_cancelled(way.of(pipeline).run(&pool, |item| {
            token.cancel();
            drop(item.defuse());
        }));
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

fn when_results_are_dropped<S: Kind>() {
    for workers in WORKERS {
        let pool = S::pool(workers);
        for (way, bomb) in ways().flat_map(|way| [0, 3, 9, 59].map(|bomb| (way, bomb))) {
            let (ledger, items) = items(bomb);
            let pipeline = Pipeline::new(items).batch(2).in_flight(5);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let first = results.next().expect("a result").expect("no error");
            // A panicking destructor of an item may panic out of this drop.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(results)));
            drop(first.defuse());
            eventually("everything is gone", || ledger.dropped() == ITEMS);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

/// A panic in the destructor of the sink reaches the caller, because the run is over.
#[test]
fn sink() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let pool = heist::Pool::builder().workers(2).build().expect("a pool");
    let bomb = Bomb;
    let run = || {
        let sink = move |_| _ = &bomb;
        Pipeline::new(0..10).run(&pool, sink).expect("an end");
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(Pipeline::new(0..10).run(&pool, drop).expect("an end").results, 10);
}
