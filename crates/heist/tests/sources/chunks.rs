//! Chunks consist of consecutive items, in order, and only the last one is shorter.

use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;

use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError, Progress, Stage};

use crate::common::pipeline::{Traffic, assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, Tracked, eventually};
use crate::{LONG, NEVER, SOON, fed, pools, watched_tests};

watched_tests! {
    as_those_of_a_slice,
    of_a_feed,
    not_before_it_is_complete,
    the_rest_of_a_source_that_fails,
    the_rest_of_a_source_that_panics,
    a_stage_fails,
    of_merged_sources,
    merged_chunks,
    weighed,
    bounded,
    cancelled_with_a_rest,
    results_dropped_in_the_middle,
    batches_by_default,
    progress_counts_chunks,
    misuse,
}

fn as_those_of_a_slice() {
    let items: Vec<_> = (0..100).collect();
    for pool in pools() {
        for (way, size) in
            ways().flat_map(|way| [1, 3, 10, 99, 100, 1 << 40].map(|size| (way, size)))
        {
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::new(items.clone()).chunks(size)).batch(2);
            let report = pipeline.map(|chunk| chunk).run(&pool, |chunk| results.push(chunk));
            let expected: Vec<_> = items.chunks(size).map(<[i32]>::to_vec).collect();
            assert_eq!(report.expect("an end").items, expected.len() as u64);
            way.assert_all(results, &expected);
        }
        assert_eq!(Pipeline::new(0..0).chunks(5).run(&pool, drop).expect("an end").items, 0);
    }
}

fn of_a_feed() {
    for pool in pools() {
        for (way, room) in ways().flat_map(|way| [1, 4, 100].map(|room| (way, room))) {
            let (sender, feed) = fed(room);
            let mut results = Vec::new();
            thread::scope(|scope| {
                scope.spawn(move || (0..50).try_for_each(|n| sender.send(n)));
                let pipeline = way.of(feed.chunks(7)).batch(3).in_flight(2);
                pipeline.run(&pool, |chunk| results.push(chunk)).expect("an end");
            });
            let items: Vec<_> = (0..50).collect();
            let expected: Vec<_> = items.chunks(7).map(<[i32]>::to_vec).collect();
            way.assert_all(results, &expected);
        }
    }
}

/// Each chunk is delivered when its last item was sent, while the sender stays.
fn not_before_it_is_complete() {
    for pool in pools() {
        for way in ways() {
            let (sender, feed) = fed(10);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..30 {
                        sender.send(n).expect("a run");
                        if n % 3 == 2 {
                            assert_eq!(delivered.recv_timeout(LONG), Ok(vec![n - 2, n - 1, n]));
                        }
                        assert!(delivered.try_recv().is_err());
                    }
                    sender.send(30).expect("a run");
                    drop(sender);
                    assert_eq!(delivered.recv_timeout(LONG), Ok(vec![30]));
                });
                let pipeline = way.of(feed.chunks(3));
                pipeline
                    .run(&pool, |chunk| deliver.send(chunk).expect("the test waits"))
                    .expect("an end");
            });
        }
    }
}

fn numbers(chunk: &[Tracked]) -> Vec<usize> {
    chunk.iter().map(|item| item.number).collect()
}

/// The items before the failure are the last chunk. The failure is that of the chunk after it.
fn the_rest_of_a_source_that_fails() {
    for pool in pools() {
        for (way, at) in ordered_ways().flat_map(|way| [0, 1, 4, 5, 17, 20].map(|at| (way, at))) {
            let ledger = Ledger::new(30);
            let items: Vec<_> = (0..30).map(|n| ledger.item(n)).collect();
            let fail =
                move |item: Tracked| if item.number == at { Err("planned") } else { Ok(item) };
            let pipeline = Pipeline::try_new(items.into_iter().map(fail)).chunks(5).batch(2);
            let mut results = Vec::new();
            let error = way.of(pipeline).run(&pool, |chunk| results.push(numbers(&chunk)));
            let error = error.expect_err("planned");
            let expected: Vec<_> = (0..at).collect();
            let expected: Vec<_> = expected.chunks(5).map(<[usize]>::to_vec).collect();
            assert_eq!(
                (error.stage(), error.item()),
                (Some(Stage::Source), Some(expected.len() as u64))
            );
            assert_eq!(results, expected);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn the_rest_of_a_source_that_panics() {
    let pool = Kind::WORK_STEALING.pool(2);
    for (way, batch) in ordered_ways().flat_map(|way| [1, 2, 64].map(|batch| (way, batch))) {
        let source = (0..30).inspect(|n| assert!(*n < 17, "planned"));
        let pipeline = way.of(Pipeline::new(source).chunks(5).batch(batch));
        let mut results = Vec::new();
        let error = pipeline.run(&pool, |chunk| results.extend(chunk)).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(4)), "{way:?}");
        assert!(error.to_string().contains("planned"), "{error}");
        assert!(results.into_iter().eq(0..17), "{way:?}");
    }
}

fn a_stage_fails() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let ledger = Ledger::new(60);
        let items: Vec<_> = (0..60).map(|n| ledger.item(n)).collect();
        let fail = |chunk: Vec<Tracked>| match chunk[0].number {
            40 => Err("planned"),
            _ => Ok(chunk),
        };
        let pipeline = way.of(Pipeline::new(items).chunks(5).batch(2)).try_map(fail);
        let mut results = Vec::new();
        let error =
            pipeline.run(&pool, |chunk| results.extend(numbers(&chunk))).expect_err("planned");
        assert_eq!(
            (error.stage(), error.item(), error.batch()),
            (Some(Stage::Step(1)), Some(8), Some(4))
        );
        assert!(results.into_iter().eq(0..40), "{way:?}");
        ledger.assert_each_once();
    }
}

fn of_merged_sources() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let merged = Pipeline::new([0, 1, 2]).merge(Pipeline::new(10..14)).chunks(3);
        way.of(merged).run(&pool, |chunk| results.push(chunk)).expect("an end");
        way.assert_all(results, &[vec![0, 10, 1], vec![11, 2, 12], vec![13]]);
    }
}

fn merged_chunks() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let mut results = Vec::new();
        let merged = Pipeline::new(0..5).chunks(2).merge(Pipeline::new(10..14).chunks(3));
        way.of(merged).run(&pool, |chunk| results.push(chunk)).expect("an end");
        assert_eq!(results, [vec![0, 1], vec![10, 11, 12], vec![2, 3], vec![13], vec![4]]);
    }
}

fn weighed() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let fail = |n: usize| if n == 95 { Err("planned") } else { Ok(n) };
        let pipeline = Pipeline::try_new((0..200).map(fail)).chunks(7).weigh(Vec::len, 20);
        let mut results = Vec::new();
        let error = way.of(pipeline).batch(2).run(&pool, |chunk| results.extend(chunk));
        let error = error.expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(14)), "{way:?}");
        assert!(error.report().expect("a report").largest_weight <= 20);
        if way.ordered {
            assert!(results.into_iter().eq(0..95), "{way:?}");
        }
    }
}

/// A chunk that is not complete is not in flight.
fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Traffic::default();
            let source = (0..200).inspect(|_| traffic.take(1));
            let pipeline = way.of(Pipeline::new(source).chunks(4).batch(3).in_flight(2));
            pipeline.run(&pool, |chunk| traffic.deliver(chunk.len())).expect("an end");
            assert!(traffic.most() <= 4 * 3 * 2, "{way:?}: {}", traffic.most());
            assert_eq!(traffic.delivered(), 200);
        }
    }
}

fn cancelled_with_a_rest() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (token, ledger) = (CancelToken::new(), Ledger::new(8));
        let (sender, feed) = fed(10);
        let (deliver, delivered) = mpsc::channel();
        let (cancel, ledger_of) = (&token, &ledger);
        thread::scope(|scope| {
            scope.spawn(move || {
                (0..8).for_each(|n| sender.send(ledger_of.item(n)).expect("a run"));
                delivered.recv_timeout(LONG).expect("the first chunk");
                cancel.cancel();
            });
            let pipeline = way.of(feed.chunks(5).cancel_on(&token));
            assert_cancelled(pipeline.run(&pool, |_| deliver.send(()).expect("the test waits")));
        });
        ledger.assert_each_once();
    }
}

fn results_dropped_in_the_middle() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let ledger = Ledger::new(103);
        let items: Vec<_> = (0..103).map(|n| ledger.item(n)).collect();
        let pipeline = Pipeline::new(items).chunks(4).batch(2).in_flight(3);
        let mut results = way.of(pipeline).results(&pool).expect("a run");
        (0..5).for_each(|_| drop(results.next().expect("a chunk").expect("no error")));
        drop(results);
        eventually("all is dropped", || ledger.dropped() == 103);
        ledger.assert_each_once();
    }
}

/// Unless it is set, a batch has as many chunks as contain 64 items.
fn batches_by_default() {
    let pool = Kind::WORK_STEALING.pool(1);
    for (size, batches) in [(1, 10), (16, 10), (64, 10), (320, 2), (100, 7)] {
        let report = Pipeline::new(0..640).chunks(size).run(&pool, drop).expect("an end");
        assert_eq!(report.batches, batches, "{size}");
    }
    let set =
        [Pipeline::new(0..640).batch(4).chunks(16), Pipeline::new(0..640).chunks(16).batch(4)];
    for pipeline in set {
        assert_eq!(pipeline.run(&pool, drop).expect("an end").batches, 10);
    }
}

fn progress_counts_chunks() {
    let pool = Kind::WORK_STEALING.pool(1);
    let shown = std::sync::Arc::new(Mutex::new(None));
    let show = std::sync::Arc::clone(&shown);
    let pipeline = Pipeline::new(0..25).chunks(10).progress(move |progress: &Progress| {
        *show.lock().expect("no panic") = Some((progress.items, progress.total));
    });
    pipeline.run(&pool, drop).expect("an end");
    assert_eq!(*shown.lock().expect("no panic"), Some((3, Some(3))));
}

fn misuse() {
    let pool = Kind::WORK_STEALING.pool(1);
    let plain = || Pipeline::new(0..3_usize);
    let error = plain().chunks(0).run(&pool, drop).expect_err("no items");
    assert!(matches!(error, PipelineError::ZeroChunk));
    assert!(error.to_string().contains("at least 1"), "{error}");
    let error = plain().chunks_timeout(0, SOON).run(&pool, drop).expect_err("no items");
    assert!(matches!(error, PipelineError::ZeroChunk));
    let merged = plain().chunks(2).merge(plain().chunks(0));
    assert!(matches!(merged.run(&pool, drop), Err(PipelineError::ZeroChunk)));
    let error = plain().batch(0).chunks(2).run(&pool, drop).expect_err("no batch");
    assert!(matches!(error, PipelineError::ZeroBatch));
    let misplaced = |outcome, expected: (&str, &str)| match outcome {
        Err(PipelineError::Misplaced { setting, by }) => assert_eq!((setting, by), expected),
        other => panic!("{expected:?}: {other:?}"),
    };
    misplaced(plain().weigh(|n| *n, 5).chunks(2).run(&pool, drop), ("weigh", "chunks"));
    misplaced(plain().flush_after(NEVER).chunks(2).run(&pool, drop), ("flush_after", "chunks"));
    let timed = plain().flush_after(NEVER).chunks_timeout(2, SOON);
    misplaced(timed.run(&pool, drop), ("flush_after", "chunks_timeout"));
}
