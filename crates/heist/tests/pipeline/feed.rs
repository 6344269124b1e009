//! The contract of a feed: every item sent is processed once, without waiting for more. Senders wait while
//! the feed is full, and a sender that is too late gets its item back.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{Feed, Pipeline, SendError, Sender};

use crate::common::pipeline::{Door, OpenOnDrop, assert_cancelled, assert_works, ways};
use crate::common::{Kind, Ledger, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    smoke,
    several_senders,
    senders_on_the_pool,
    sends_from_the_sink,
    nothing_at_all,
    sent_before_the_run,
    partial_batch,
    one_at_a_time,
    full,
    full_when_the_run_ends,
    after_the_end,
    never_run,
    left_in_the_feed,
    failing_sink,
    weighed,
}

fn fed<T>(capacity: usize) -> (Sender<T>, Pipeline<Feed<T>>) {
    Pipeline::fed(NonZero::new(capacity).expect("some room"))
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, capacity) in ways().flat_map(|way| [1, 3, 100].map(|room| (way, room))) {
            let (sender, pipeline) = fed(capacity);
            let mut results = Vec::new();
            thread::scope(|scope| {
                scope.spawn(move || (0..200).for_each(|n| sender.send(n).expect("a run")));
                let pipeline = pipeline.batch(7).map(|n: usize| n + 1);
                let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
                assert_eq!((report.items, report.results), (200, 200), "{way:?}");
            });
            way.assert_all(results, &(1..=200).collect::<Vec<_>>());
        }
    }
}

/// The items of one sender stay in order, and the items of all senders arrive.
fn several_senders(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(5);
            let mut results = Vec::new();
            thread::scope(|scope| {
                for name in 0..4 {
                    let sender = sender.clone();
                    scope.spawn(move || (0..50).try_for_each(|n| sender.send((name, n))));
                }
                drop(sender);
                let pipeline = pipeline.batch(3).in_flight(10);
                way.of(pipeline).run(&pool, |pair| results.push(pair)).expect("an end");
            });
            if way.ordered {
                // A stable sort by sender keeps the order of each sender.
                results.sort_by_key(|(name, _)| *name);
            } else {
                results.sort_unstable();
            }
            let all = (0..4).flat_map(|name| (0..50).map(move |n| (name, n)));
            assert!(results.into_iter().eq(all), "{way:?}");
        }
    }
}

/// The senders block on workers that the pipeline needs.
fn senders_on_the_pool(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(2);
            for name in 0..3 {
                let sender = sender.clone();
                pool.spawn(move || {
                    (0..30).for_each(|n| sender.send(30 * name + n).expect("a run"))
                });
            }
            drop(sender);
            let mut results = Vec::new();
            let pipeline = pipeline.batch(4).in_flight(2).map(|n: usize| n);
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            results.sort_unstable();
            assert!(results.into_iter().eq(0..90), "{way:?}");
        }
    }
}

/// The sink sends results as new items, and drops the sender at the last one.
fn sends_from_the_sink(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(4);
            sender.send(0).expect("room");
            let mut sender = Some(sender);
            let mut results = Vec::new();
            let sink = |n: usize| {
                results.push(n);
                if let Some(sender) = sender.take_if(|_| n == 15) {
                    drop(sender);
                } else if let Some(sender) = &sender {
                    sender.send(n).expect("a run");
                }
            };
            way.of(pipeline.map(|n| n + 1)).run(&pool, sink).expect("an end");
            assert!(results.into_iter().eq(1..=15), "{way:?}");
        }
    }
}

fn nothing_at_all(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed::<String>(1);
        let another = sender.clone();
        thread::scope(|scope| {
            scope.spawn(|| drop(another));
            drop(sender);
            let report = way.of(pipeline).run(&pool, |_| panic!("{way:?}")).expect("an end");
            assert_eq!((report.items, report.batches), (0, 0));
        });
    }
}

/// The sender is dropped before the run.
fn sent_before_the_run(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(100);
            (0..100).for_each(|n| sender.send(n).expect("room"));
            drop(sender);
            let mut results = Vec::new();
            way.of(pipeline.batch(9)).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..100).collect::<Vec<_>>());
        }
    }
}

/// A result is delivered while its sender is alive, before a batch is full.
fn partial_batch(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(100);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..5 {
                        sender.send(n).expect("a run");
                        let patience = Duration::from_secs(20);
                        assert_eq!(
                            delivered.recv_timeout(patience),
                            Ok(n),
                            "nobody waits for more"
                        );
                    }
                });
                let sink = |n: usize| deliver.send(n).expect("a test that waits");
                let report = way.of(pipeline.batch(64)).run(&pool, sink).expect("an end");
                assert_eq!((report.items, report.batches), (5, 5), "{way:?}");
            });
        }
    }
}

/// The pipeline sleeps, or is about to, between two items.
fn one_at_a_time(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(1);
            let delivered = AtomicUsize::new(0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let sender = sender;
                    for n in 0..40 {
                        sender.send(n).expect("a run");
                        while n % 3 == 0 && delivered.load(Ordering::Acquire) <= n {
                            thread::yield_now();
                        }
                    }
                });
                let sink = |_| _ = delivered.fetch_add(1, Ordering::AcqRel);
                way.of(pipeline.batch(2)).run(&pool, sink).expect("an end");
            });
            assert_eq!(delivered.into_inner(), 40, "{way:?}");
        }
    }
}

fn full(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(3);
            let (door, sent) = (Door::default(), AtomicUsize::new(0));
            let mut results = Vec::new();
            thread::scope(|scope| {
                let (sent, door) = (&sent, &door);
                scope.spawn(move || {
                    for n in 0..100 {
                        sender.send(n).expect("a run");
                        sent.fetch_add(1, Ordering::Release);
                    }
                });
                scope.spawn(move || {
                    let _opens = OpenOnDrop(door);
                    eventually("it is full", || sent.load(Ordering::Acquire) >= 3);
                    thread::sleep(Duration::from_millis(2));
                    // Three in the feed, and two in each of two batches.
                    let sent = sent.load(Ordering::Acquire);
                    assert!(sent <= 7, "{way:?}: {sent}");
                });
                let pipeline = pipeline.batch(2).in_flight(2).map(|n: usize| {
                    door.pass();
                    n
                });
                way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            });
            way.assert_all(results, &(0..100).collect::<Vec<_>>());
        }
    }
}

/// A sender that waits for room receives an error when the run ends.
fn full_when_the_run_ends(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(1);
            let token = CancelToken::new();
            thread::scope(|scope| {
                let senders: Vec<_> = (0..3)
                    .map(|_| {
                        let sender = sender.clone();
                        scope.spawn(move || (0..).find_map(|n: u64| sender.send(n).err()))
                    })
                    .collect();
                let mut results = 0;
                let sink = |_| {
                    results += 1;
                    if results == 20 {
                        token.cancel();
                    }
                };
                let pipeline = pipeline.batch(2).in_flight(2).cancel_on(&token);
                assert_cancelled(way.of(pipeline).run(&pool, sink));
                for returned in senders.into_iter().map(|sender| sender.join().expect("no panic")) {
                    assert!(returned.is_some(), "{way:?}");
                }
            });
        }
    }
}

fn after_the_end(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(2);
        let token = CancelToken::new();
        sender.send("a".to_owned()).expect("room");
        let cancel = |_| token.cancel();
        assert_cancelled(way.of(pipeline.cancel_on(&token)).run(&pool, cancel));
        let SendError(item) = sender.clone().send("b".to_owned()).expect_err("no run");
        assert_eq!(item, "b");
        let error = sender.send("c".to_owned()).expect_err("no run");
        assert!(!error.to_string().is_empty() && !error.to_string().contains('c'), "{error}");
        assert_works(&pool);
    }
}

/// A pipeline that is dropped without a run takes no items, and waiting senders receive an error.
fn never_run(kind: Kind) {
    let (sender, pipeline) = fed(1);
    drop(pipeline.batch(3).map(|n: u32| n).ordered());
    assert_eq!(sender.send(1), Err(SendError(1)));

    let ledger = Ledger::new(3);
    let (sender, pipeline) = fed(1);
    sender.send(ledger.item(0)).expect("room");
    let waiting = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in [1, 2] {
            let (sender, item, waiting) = (sender.clone(), ledger.item(n), &waiting);
            scope.spawn(move || {
                waiting.fetch_add(1, Ordering::Release);
                assert_eq!(sender.send(item).expect_err("no run").0.number, n);
            });
        }
        eventually("both wait", || waiting.load(Ordering::Acquire) == 2);
        thread::sleep(Duration::from_millis(2));
        drop(pipeline);
    });
    drop(sender);
    ledger.assert_each_once();

    // The same for a pipeline that cannot be run.
    let (sender, pipeline) = fed(1);
    pipeline.batch(0).run(&kind.pool(1), |_: u32| ()).expect_err("no batch");
    assert_eq!(sender.send(7), Err(SendError(7)));
}

/// Items left in the feed are dropped when the run ends, not with the last sender.
fn left_in_the_feed(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let ledger = Ledger::new(100);
        let (sender, pipeline) = fed(100);
        (0..100).for_each(|n| sender.send(ledger.item(n)).expect("room"));
        let token = CancelToken::new();
        let pipeline = pipeline.batch(2).in_flight(3).cancel_on(&token);
        assert_cancelled(way.of(pipeline).run(&pool, |_| token.cancel()));
        ledger.assert_each_once();
        drop(sender);
    }
}

/// A run may end while a task of the same pool waits for room.
fn failing_sink(kind: Kind) {
    for workers in WORKERS {
        let pool = Arc::new(kind.pool(workers));
        for way in ways() {
            let (sender, pipeline) = fed(1);
            let task = pool.spawn(move || (0..).find_map(|n: u64| sender.send(n).err()));
            let pipeline = pipeline.batch(1).in_flight(1);
            let sink = |n| if n < 10 { Ok(()) } else { Err("planned") };
            let error = way.of(pipeline).try_run(&pool, sink).expect_err("a fault");
            assert_eq!(error.to_string(), "the sink failed at item 10 (batch 10): planned");
            assert!(task.join().expect("a result").is_some(), "{way:?}");
        }
    }
}

fn weighed(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(10);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..30 {
                        sender.send(n).expect("a run");
                        // The pipeline does not wait for the next item.
                        if n % 10 == 9 {
                            let come = |_| delivered.recv_timeout(Duration::from_secs(20)).is_ok();
                            assert!((0..10).all(come), "{way:?}");
                        }
                    }
                });
                let pipeline = pipeline.batch(4).weigh(|n: &usize| n % 5, 9);
                let sink = |n: usize| deliver.send(n).expect("a test that waits");
                let report = way.of(pipeline).run(&pool, sink).expect("an end");
                assert!(report.items == 30 && report.largest_weight <= 9, "{way:?}");
            });
        }
    }
}

/// One thread sends and pulls: each pulled result makes room for another item.
#[test]
fn fed_and_pulled_by_one_thread() {
    let pool = heist::Pool::builder().workers(1).build().expect("a pool");
    for limit in [1, usize::MAX] {
        let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
        let pipeline = pipeline.batch(1).in_flight(if limit == 1 { 64 } else { 1 });
        let mut results = pipeline.weigh(|_| 1, limit).results(&pool).expect("a start");
        sender.send(0).expect("a run");
        sender.send(1).expect("a run");
        for n in 0..100 {
            assert_eq!(results.next().expect("a result").expect("no error"), n);
            sender.send(n + 2).expect("a run");
        }
    }
}
