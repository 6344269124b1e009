//! The second sink gets each result once, before the sink of the run does.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::CancelToken;
use heist::pipeline::{Pipeline, Stage};
use heist_testkit::panics::panic_message;

use crate::common::pipeline::{Traffic, assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, Tracked, WorkStealing};
use crate::{fed, pools, watched_tests};

watched_tests! {
    both_get_all,
    one_after_the_other,
    a_second_sink_that_fails,
    a_second_sink_that_panics,
    the_sink_fails,
    bounded,
    a_second_pipeline,
    a_second_pipeline_that_ends,
    cancelled,
    drops_that_panic,
    wrong_settings,
}

fn both_get_all() {
    for pool in pools() {
        for way in ways() {
            let ledger = Ledger::new(150);
            let items: Vec<_> = (0..150).map(|n| ledger.item(n)).collect();
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let pipeline = way.of(Pipeline::new(items).batch(4).in_flight(5)).map(|item| item);
            let report = pipeline
                .tee(|item| second.push(item.number))
                .run(&pool, |item| first.push(item.number))
                .expect("an end");
            assert_eq!((report.items, report.results), (150, 150));
            assert_eq!(first, second);
            way.assert_all(first, &(0..150).collect::<Vec<_>>());
            ledger.assert_each_once();
        }
    }
}

fn one_after_the_other() {
    let pool = WorkStealing::pool(2);
    for way in ways() {
        let (calls, thread) = (RefCell::new(Vec::new()), thread::current().id());
        let note = |sink: char, n: i32| {
            assert_eq!(thread::current().id(), thread);
            calls.borrow_mut().push((n, sink));
        };
        let pipeline = way.of(Pipeline::new(0..50).batch(3));
        pipeline.tee(|n| note('a', *n)).run(&pool, |n| note('b', n)).expect("an end");
        let calls = calls.into_inner();
        assert!(calls.chunks(2).all(|pair| pair[0] == (pair[1].0, 'a') && pair[1].1 == 'b'));
        assert_eq!(calls.len(), 100);
    }
}

fn a_second_sink_that_fails() {
    for pool in pools() {
        for way in ordered_ways() {
            let ledger = Ledger::new(100);
            let items: Vec<_> = (0..100).map(|n| ledger.item(n)).collect();
            let (mut first, mut second) = (0, 0);
            let pipeline = way.of(Pipeline::new(items).batch(4));
            let fail = |item: &Tracked| {
                second += 1;
                if item.number == 42 { Err("planned") } else { Ok(()) }
            };
            let error = pipeline.try_tee(fail).run(&pool, |_| first += 1).expect_err("planned");
            assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(42)));
            assert_eq!(error.report().expect("a report").results, 42);
            assert_eq!((first, second), (42, 43));
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn a_second_sink_that_panics() {
    let pool = WorkStealing::pool(2);
    for way in ordered_ways() {
        let mut first = Vec::new();
        let pipeline = way.of(Pipeline::new(0..100).batch(4));
        let error = pipeline.tee(|n| assert!(*n != 42, "planned")).run(&pool, |n| first.push(n));
        let error = error.expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(42)));
        assert!(first.into_iter().eq(0..42));
    }
}

fn the_sink_fails() {
    let pool = WorkStealing::pool(2);
    for way in ordered_ways() {
        let mut second = Vec::new();
        let pipeline = way.of(Pipeline::new(0..100).batch(4)).tee(|n| second.push(*n));
        let error = pipeline.try_run(&pool, |n| if n == 42 { Err("planned") } else { Ok(()) });
        assert_eq!(error.expect_err("planned").item(), Some(42));
        assert!(second.into_iter().eq(0..=42));
    }
}

fn bounded() {
    let pool = WorkStealing::pool(2);
    for way in ways() {
        let traffic = Traffic::default();
        let source = (0..200).inspect(|_| traffic.take(1));
        let pipeline = way.of(Pipeline::new(source).batch(5).in_flight(3));
        pipeline.tee(|_| thread::yield_now()).run(&pool, |_| traffic.deliver(1)).expect("an end");
        assert!(traffic.most() <= 3 * 5, "{way:?}: {}", traffic.most());
    }
}

/// The second one has room for as many as it may be behind.
fn a_second_pipeline() {
    for pool in pools() {
        for way in ordered_ways() {
            let (sender, copies) = fed(3);
            let (mut first, mut second) = (Vec::new(), Vec::new());
            thread::scope(|scope| {
                let copies = way.of(copies.map(|n: i32| 10 * n));
                let other = scope.spawn(|| copies.run(&pool, |n| second.push(n)));
                let pipeline = way.of(Pipeline::new(0..200).batch(4));
                let tee = pipeline.try_tee(move |n| sender.send(*n));
                tee.run(&pool, |n| first.push(n)).expect("an end");
                other.join().expect("no panic").expect("an end");
            });
            assert!(first.into_iter().eq(0..200));
            assert!(second.into_iter().eq((0..200).map(|n| 10 * n)));
        }
    }
}

/// Its end is a failure of the first one, unless that disregards it.
fn a_second_pipeline_that_ends() {
    let pool = WorkStealing::pool(2);
    let (sender, copies) = fed(3);
    drop(copies);
    let mut seen = Vec::new();
    let pipeline = Pipeline::new(0..20).ordered();
    let error = pipeline.try_tee(|n| sender.send(*n)).run(&pool, drop).expect_err("no receiver");
    assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(0)));
    let pipeline = Pipeline::new(0..20).ordered().tee(|n| _ = sender.send(*n));
    pipeline.run(&pool, |n| seen.push(n)).expect("an end");
    assert!(seen.into_iter().eq(0..20));
}

fn cancelled() {
    let pool = WorkStealing::pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let (mut first, mut second) = (0, 0);
        let pipeline = way.of(Pipeline::new(0_u64..).cancel_on(&token));
        assert_cancelled(pipeline.tee(|_| second += 1).run(&pool, |_| {
            first += 1;
            if first == 100 {
                token.cancel();
            }
        }));
        assert_eq!((first, second), (100, 100));
    }
}

/// Both sinks panic when they are dropped. The first panic goes to the caller, as with one sink.
fn drops_that_panic() {
    struct Bomb<'d>(&'d AtomicUsize);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("planned");
        }
    }
    let pool = WorkStealing::pool(2);
    let dropped = AtomicUsize::new(0);
    let (first, second) = (Bomb(&dropped), Bomb(&dropped));
    let run = move || {
        let tee = Pipeline::new(0..20).tee(move |_| _ = &second);
        tee.run(&pool, move |_| _ = &first)
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert_eq!(panic_message(&*panicked.expect_err("the drops panic")), "planned");
    assert_eq!(dropped.into_inner(), 2);
}

fn wrong_settings() {
    let pool = WorkStealing::pool(1);
    let tee = Pipeline::new(0..3).batch(0).tee(|_| panic!("no run"));
    tee.run(&pool, drop).expect_err("no batch");
}
