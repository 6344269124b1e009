//! The contract of results that are pulled: the same as a run would deliver. While the caller does not
//! pull, the run does not pass its bound. Results that are dropped or forgotten do no harm.

use std::mem;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError, Stage};
use heist_testkit::test_path;

use crate::common::pipeline::{
    Door, Fault, How, TrackedItem, Traffic, assert_cancelled, assert_works, into_result,
    tracked_items, ways,
};
use crate::common::{Kind, Ledger, ThreadGroup, WORKERS, eventually, for_every_strategy, watched};

for_every_strategy! {
    smoke,
    into_iter_inside,
    pulled_slowly,
    dropped_at_once,
    dropped_half_way,
    dropped_while_the_source_blocks,
    dropped_while_a_stage_runs,
    dropped_with_a_feed,
    dropped_by_a_task,
    forget,
    elsewhere,
    pulled_by_a_task,
    error_comes_last,
    source_error_comes_last,
    cancelled,
    report,
    several_at_once,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            for (items, batch) in [(0, 3), (1, 3), (3, 3), (100, 1), (100, 7), (100, 1000)] {
                let (ledger, tracked) = tracked_items(items);
                let pipeline = Pipeline::new(tracked).batch(batch).map(into_result);
                let results = way.of(pipeline).results(&pool).expect("a start");
                let results = results.map(|result| result.expect("no error").number - items);
                way.assert_all(results.collect(), &(0..items).collect::<Vec<_>>());
                eventually("everything is gone", || ledger.dropped() == 2 * items);
                ledger.assert_each_once();
            }
        }
    }
}

/// `into_iter` uses the current pool, or else the global one.
fn into_iter_inside(kind: Kind) {
    let group = Arc::new(ThreadGroup::new());
    let pool = kind.builder_in(&group, 2).build().expect("a pool");
    for way in ways() {
        let inside = Arc::clone(&group);
        let pipeline = way.of(Pipeline::new(0..50).batch(3).map(move |_| inside.has_current()));
        let here = pool.install(|| pipeline.into_iter().all(|here| here.expect("no error")));
        assert!(here, "{way:?}");
    }
}

#[test]
fn into_iter_outside() {
    watched(test_path!("into_iter_outside"), || {
        let mut sum = 0;
        for square in Pipeline::new(1..=100_u64).batch(7).map(|n| n * n) {
            sum += square.expect("no error");
        }
        assert_eq!(sum, 338_350);
        let mut results = Pipeline::new(0..3).batch(0).into_iter();
        assert!(matches!(results.next(), Some(Err(PipelineError::ZeroBatch))));
        assert!(results.next().is_none() && results.next().is_none());
    });
}

/// The run is ahead of the caller by at most its bound.
fn pulled_slowly(kind: Kind) {
    for workers in [1, 3] {
        let pool = kind.pool(workers);
        for (way, bound) in ways().flat_map(|way| [1, 2, 7].map(|bound| (way, bound))) {
            let traffic = Arc::new(Traffic::default());
            let taken = Arc::clone(&traffic);
            let items = (0..200).inspect(move |_| taken.take(1));
            let pipeline = Pipeline::new(items).batch(3).in_flight(bound);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let mut pulled = Vec::new();
            for wanted in [0, 1, 2, 3, 7] {
                // A pull makes room when it returns, not before it is called.
                traffic.deliver(wanted);
                let next = results.by_ref().take(wanted).map(|result| result.expect("no error"));
                pulled.extend(next);
                let least = 3 * bound + pulled.len().saturating_sub(2) / 3 * 3;
                eventually("all that may be is on its way", || traffic.taken() >= least.min(200));
            }
            thread::sleep(Duration::from_millis(2));
            assert!(traffic.most() <= 3 * bound, "{way:?}: {traffic:?}");
            traffic.deliver(200);
            pulled.extend(results.map(|result| result.expect("no error")));
            way.assert_all(pulled, &(0..200).collect::<Vec<_>>());
        }
    }
}

fn dropped_at_once(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(100);
            let pipeline = Pipeline::new(items).batch(3).in_flight(4).map(into_result);
            drop(way.of(pipeline).results(&pool).expect("a start"));
            eventually("everything is gone", || ledger.dropped() == 200);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn dropped_half_way(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, half) in ways().flat_map(|way| [1, 5, 50, 99, 100].map(|half| (way, half))) {
            let (ledger, items) = tracked_items(100);
            let pipeline = Pipeline::new(items).batch(3).in_flight(4).map(into_result);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let pulled: Vec<_> = results.by_ref().take(half).map(Result::unwrap).collect();
            drop(results);
            eventually("all the others are gone", || ledger.dropped() == 200 - half);
            way.assert_some(pulled.iter().map(|result| result.number - 100).collect(), 100);
            drop(pulled);
            ledger.assert_each_once();
        }
        assert_works(&pool);
    }
}

/// Dropping the results does not wait for a blocking source. The source is dropped when it returns.
fn dropped_while_the_source_blocks(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let ledger = Ledger::new(20);
            let (send, receive) = mpsc::channel();
            (0..10).for_each(|n| send.send(ledger.item(n)).expect("a source"));
            let pipeline = Pipeline::new(receive).batch(1);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            (0..5).for_each(|_| _ = results.next());
            drop(results);
            // The receiver may be gone.
            (10..20).for_each(|n| _ = send.send(ledger.item(n)));
            drop(send);
            eventually("everything is gone", || ledger.dropped() == 20);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

/// Running batches finish without the caller.
fn dropped_while_a_stage_runs(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(30);
            let door = Arc::new(Door::default());
            let held = Arc::clone(&door);
            let pipeline = Pipeline::new(items).batch(2).map(move |item| {
                held.pass();
                into_result(item)
            });
            let results = way.of(pipeline).results(&pool).expect("a start");
            door.wait_for(1);
            drop(results);
            door.open();
            eventually("everything is gone", || ledger.dropped() == 60);
            ledger.assert_each_once();
            eventually("so are the stages", || Arc::strong_count(&door) == 1);
        }
        assert_works(&pool);
    }
}

/// The senders receive an error, wherever they wait.
fn dropped_with_a_feed(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = Pipeline::fed(NonZero::new(2).expect("a number"));
            let mut results = way.of(pipeline.in_flight(1)).results(&pool).expect("a start");
            sender.send(0).expect("a run");
            assert!(matches!(results.next(), Some(Ok(0))), "{way:?}");
            let task = pool.spawn({
                let sender = sender.clone();
                move || (1..).find_map(|n| sender.send(n).err())
            });
            assert!(matches!(results.next(), Some(Ok(1))), "{way:?}");
            drop(results);
            assert!(task.join().expect("a result").is_some(), "{way:?}");
            eventually("nobody listens", || sender.send(7).is_err());
        }
        assert_works(&pool);
    }
}

/// A worker drops the results.
fn dropped_by_a_task(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(100);
            let pipeline = Pipeline::new(items).batch(3).in_flight(4).map(into_result);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let pulled = pool.spawn(move || results.next().is_some()).join().expect("a result");
            assert!(pulled, "{way:?}");
            eventually("everything is gone", || ledger.dropped() == 200);
            ledger.assert_each_once();
        }
        assert_works(&pool);
    }
}

/// Forgotten results leak, but the pool stays usable and stops.
fn forget(kind: Kind) {
    for workers in WORKERS {
        for way in ways() {
            let pool = kind.pool(workers);
            let mut results = way
                .of(Pipeline::new(0..1000).batch(1).in_flight(3))
                .results(&pool)
                .expect("a start");
            (0..5).for_each(|_| assert!(results.next().is_some_and(|result| result.is_ok())));
            mem::forget(results);
            assert_works(&pool);
        }
    }
}

/// Results can be sent to another thread and pulled there.
fn elsewhere(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = way.of(Pipeline::new(0..100).batch(3)).results(&pool).expect("a start");
        let mut pulled: Vec<_> = results.by_ref().take(10).map(Result::unwrap).collect();
        let rest = thread::spawn(|| results.map(Result::unwrap).collect::<Vec<_>>());
        pulled.extend(rest.join().expect("no panic"));
        way.assert_all(pulled, &(0..100).collect::<Vec<_>>());
    }
}

/// A worker pulls results that it has to compute itself.
fn pulled_by_a_task(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let pipeline = way.of(Pipeline::new(0..100).batch(3).in_flight(2).map(|n| n + 1));
            let task = || pipeline.into_iter().map(Result::unwrap).collect::<Vec<usize>>();
            way.assert_all(pool.install(task), &(1..=100).collect::<Vec<_>>());
        }
    }
}

fn error_comes_last(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, how) in ways().flat_map(|way| [How::Error, How::Panic].map(|how| (way, how))) {
            let fault = Fault { stage: Stage::Step(1), how, item: 33 };
            let (ledger, items) = tracked_items(60);
            let pipeline = Pipeline::new(items).batch(5).try_map(move |item: TrackedItem| {
                fault.check(Stage::Step(1), item.0.number).map(|()| into_result(item).number - 60)
            });
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let (mut delivered, mut error) = (Vec::new(), None);
            for result in results.by_ref() {
                assert!(error.is_none(), "{way:?}: something after the error");
                result.map_or_else(|told| error = Some(told), |n| delivered.push(n));
            }
            assert!(results.next().is_none() && results.next().is_none());
            fault.assert_told(&error.expect("a fault"), 5);
            assert!(delivered.len() == 30 || !way.ordered, "{way:?}");
            way.assert_some(delivered, 60);
            drop(results);
            eventually("everything is gone", || ledger.dropped() == 120);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn source_error_comes_last(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let source = (0..33).map(Ok).chain([Err("planned")]).chain((34..60).map(Ok));
        let mut results =
            way.of(Pipeline::try_new(source).batch(5)).results(&pool).expect("a start");
        let delivered: Vec<_> = results.by_ref().map_while(Result::ok).collect();
        assert!(delivered.len() == 33 || !way.ordered, "{way:?}");
        way.assert_some(delivered, 33);
        assert!(results.next().is_none(), "{way:?}");
    }
}

fn cancelled(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let pipeline = Pipeline::new(0_usize..).batch(3).in_flight(4).cancel_on(&token);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let mut delivered: Vec<_> = results.by_ref().take(20).map(Result::unwrap).collect();
            token.cancel();
            // Finished results may still come, and then the reason of the end.
            let last = results.by_ref().find_map(|result| match result {
                Ok(n) => {
                    delivered.push(n);
                    None
                }
                Err(error) => Some(error),
            });
            assert_cancelled(Err::<(), _>(last.expect("a reason")));
            assert!(results.next().is_none() && delivered.len() <= 32, "{way:?}");
            way.assert_some(delivered, usize::MAX);
            let pipeline = way.of(Pipeline::new(0..).cancel_on(&token));
            let mut results = pipeline.results(&pool).into_iter().flatten();
            assert!(results.next().is_none_or(|result: Result<usize, _>| result.is_err()));
        }
    }
}

/// The report counts what was pulled so far, and in the end equals that of a run.
fn report(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let pipeline = Pipeline::new(0..100).batch(10).in_flight(3).map(move |n| {
            counted.fetch_add(1, Ordering::Relaxed);
            n
        });
        let mut results = way.of(pipeline).results(&pool).expect("a start");
        assert_eq!(results.report().results, 0, "{way:?}");
        assert_eq!(results.by_ref().take(25).count(), 25);
        // Results may be available a moment before the items of the source are counted.
        eventually("what was delivered is counted", || results.report().items >= 25);
        let early = results.report();
        assert!(early.results <= 25 && early.items <= 60, "{way:?}: {early}");
        assert_eq!(results.by_ref().count(), 75);
        let last = results.report();
        assert_eq!((last.items, last.batches, last.results), (100, 10, 100), "{way:?}");
        assert_eq!(last.per_worker.iter().map(|worker| worker.batches).sum::<u64>(), 10);
        assert!(last.largest_in_flight <= 3, "{way:?}");
        assert_eq!(calls.load(Ordering::Relaxed), 100);
    }
}

/// The caller pulls from several pipelines in turn.
fn several_at_once(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let mut all: Vec<_> = (0..4)
                .map(|k| {
                    let pipeline = Pipeline::new((0..60).map(move |n| 4 * n + k));
                    way.of(pipeline.batch(4).in_flight(2)).results(&pool).expect("a start")
                })
                .collect();
            let mut merged = Vec::new();
            for _ in 0..60 {
                merged.extend(all.iter_mut().map(|results| results.next().unwrap().unwrap()));
            }
            assert!(all.iter_mut().all(|results| results.next().is_none()), "{way:?}");
            way.assert_all(merged, &(0..240).collect::<Vec<_>>());
        }
    }
}
