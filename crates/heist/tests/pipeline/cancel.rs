//! The contract of cancellation: a run whose token is cancelled ends, wherever it waits. Items that are
//! being processed finish; all others are dropped.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use heist::pipeline::{Pipeline, PipelineError};
use heist::{CancelToken, Pool};

use crate::common::pipeline::{
    Door, OpenOnDrop, Traffic, Way, assert_cancelled, assert_works, into_result, ordered_ways,
    stealing_ways, tracked_items, ways,
};
use crate::common::{Kind, Rng, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    before_the_run,
    from_the_sink,
    from_a_stage,
    from_the_source,
    queued_batches_are_dropped,
    at_the_next_item,
    while_a_feed_is_idle,
    while_a_source_blocks,
    while_the_bound_is_reached,
    while_a_sink_waits,
    straggler,
    any_time,
    children,
    too_late,
    many_runs_on_one,
}

fn before_the_run(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            token.cancel();
            let (ledger, items) = tracked_items(100);
            let traffic = Traffic::default();
            let items = items.into_iter().inspect(|_| traffic.take(1));
            let pipeline = Pipeline::new(items).batch(3).cancel_on(&token).map(into_result);
            assert_cancelled(way.of(pipeline).run(&pool, |_| panic!("{way:?}")));
            assert_eq!(traffic.taken(), 0, "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn from_the_sink(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let mut results = Vec::new();
            let sink = |n| {
                results.push(n);
                if results.len() == 22 {
                    token.cancel();
                }
            };
            let pipeline = Pipeline::new(0..).batch(5).cancel_on(&token);
            assert_cancelled(way.of(pipeline).run(&pool, sink));
            // After the cancellation, the rest of that batch is not delivered.
            assert_eq!(results.len(), 22, "{way:?}");
            way.assert_some(results, usize::MAX);
            assert_works(&pool);
        }
    }
}

fn from_a_stage(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let (ledger, items) = tracked_items(200);
            let mut results = Vec::new();
            // The run continues after the end of the source.
            let pipeline = Pipeline::new(items).batch(5).cancel_on(&token).map(|item| {
                if item.0.number == 33 {
                    token.cancel();
                }
                into_result(item)
            });
            let outcome = way.of(pipeline).run(&pool, |result| results.push(result.number - 200));
            assert_cancelled(outcome);
            way.assert_some(results, 200);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn from_the_source(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let cancel = |n: &usize| {
                if *n == 33 {
                    token.cancel();
                }
            };
            let mut results = Vec::new();
            let pipeline = Pipeline::new((0..).inspect(cancel)).batch(5).cancel_on(&token);
            assert_cancelled(way.of(pipeline).run(&pool, |n| results.push(n)));
            way.assert_some(results, 35);
        }
    }
}

/// A running item finishes, and no other starts. With one worker this is deterministic.
fn queued_batches_are_dropped(kind: Kind) {
    let pool = kind.pool(1);
    for way in ways().filter(|way| way.has_producer()) {
        let (ledger, items) = tracked_items(60);
        let (traffic, begun) = (Traffic::default(), AtomicUsize::new(0));
        let token = CancelToken::new();
        let items = items.into_iter().inspect(|_| traffic.take(1));
        let pipeline = Pipeline::new(items).batch(3).in_flight(10).cancel_on(&token).map(|item| {
            if begun.fetch_add(1, Ordering::Relaxed) == 0 {
                eventually("everything is full", || traffic.taken() == 30);
                token.cancel();
            }
            into_result(item)
        });
        assert_cancelled(way.of(pipeline).run(&pool, drop));
        assert_eq!((begun.into_inner(), traffic.taken()), (1, 30), "{way:?}");
        ledger.assert_each_once();
    }
}

/// A cancellation is noticed in the middle of a batch: in the source, in a stage, in the sink and by an iterator.
fn at_the_next_item(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (token, taken) = (CancelToken::new(), AtomicUsize::new(0));
            let items = (0..).inspect(|n| {
                taken.fetch_add(1, Ordering::Relaxed);
                if *n == 33 {
                    token.cancel();
                }
            });
            let pipeline = Pipeline::new(items).batch(1000).cancel_on(&token);
            assert_cancelled(way.of(pipeline).run(&pool, |_: usize| panic!("{way:?}")));
            assert_eq!(taken.into_inner(), 34, "{way:?}");

            let (token, begun) = (CancelToken::new(), AtomicUsize::new(0));
            let pipeline = Pipeline::new(0..300).batch(100).cancel_on(&token).map(|n| {
                if n / 100 == 1 {
                    begun.fetch_add(1, Ordering::Relaxed);
                }
                if n == 133 {
                    token.cancel();
                }
            });
            assert_cancelled(way.of(pipeline).run(&pool, |()| ()));
            assert_eq!(begun.into_inner(), 34, "{way:?}");

            let token = CancelToken::new();
            let pipeline = Pipeline::new(0..300).batch(100).cancel_on(&token);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            assert!(results.by_ref().take(33).all(|result| result.is_ok()), "{way:?}");
            token.cancel();
            assert_cancelled(results.next().expect("an error"));
            assert!(results.next().is_none(), "{way:?}");
            assert_works(&pool);
        }
    }
}

/// Runs a pipeline and cancels it from another thread, which then calls `then`.
fn cancelled_by_another(
    token: &CancelToken,
    wait: impl FnOnce() + Send,
    then: impl FnOnce() + Send,
    run: impl FnOnce() -> Result<(), PipelineError>,
) {
    thread::scope(|scope| {
        scope.spawn(|| {
            wait();
            token.cancel();
            then();
        });
        assert_cancelled(run());
    });
}

fn while_a_feed_is_idle(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let traffic = Traffic::default();
            let (sender, pipeline) = Pipeline::fed(NonZero::new(10).expect("a number"));
            (0..5).for_each(|n| sender.send(n).expect("room"));
            let idle = || eventually("all were delivered", || traffic.delivered() == 5);
            cancelled_by_another(
                &token,
                idle,
                || (),
                || {
                    let pipeline = pipeline.cancel_on(&token).map(|n: usize| n);
                    way.of(pipeline).run(&pool, |_| traffic.deliver(1)).map(drop)
                },
            );
            assert_eq!(sender.send(6).expect_err("nobody listens").0, 6, "{way:?}");
            assert_works(&pool);
        }
    }
}

/// A blocking source cannot be interrupted. The items that it yields afterwards are not processed.
fn while_a_source_blocks(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let (send, receive) = mpsc::sync_channel(3);
            let mut results = Vec::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    (0..5).for_each(|n| send.send(n).expect("a source"));
                    token.cancel();
                    // More than one batch, until the run has ended.
                    (5..).take_while(|n| send.send(*n).is_ok()).for_each(drop);
                });
                let pipeline = Pipeline::new(receive).batch(1).cancel_on(&token);
                assert_cancelled(way.of(pipeline).run(&pool, |n| results.push(n)));
            });
            way.assert_some(results, usize::MAX);
            assert_works(&pool);
        }
    }
}

/// Everything waits for a stage. The run waits for that stage only.
fn while_the_bound_is_reached(kind: Kind) {
    for workers in [1, 2, 4] {
        let pool = kind.pool(workers);
        for (way, bound) in ways().flat_map(|way| [1, 2, 10].map(|bound| (way, bound))) {
            let token = CancelToken::new();
            let (door, traffic) = (Door::default(), Traffic::default());
            let _opens = OpenOnDrop(&door);
            let wait = || {
                door.wait_for(1);
                if way.has_producer() {
                    eventually("everything is full", || traffic.taken() == bound);
                }
            };
            let items = (0..).inspect(|_| traffic.take(1));
            let pipeline = Pipeline::new(items).batch(1).in_flight(bound).cancel_on(&token);
            let pipeline = pipeline.map(|_: usize| {
                door.pass();
            });
            let run = || way.of(pipeline).run(&pool, drop).map(drop);
            cancelled_by_another(&token, wait, || door.open(), run);
            assert!(traffic.taken() <= bound, "{way:?}: {traffic:?}");
            assert_works(&pool);
        }
    }
}

/// The sink is not interrupted, and it is not called again.
fn while_a_sink_waits(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let (door, mut calls) = (Door::default(), 0);
            let wait = || door.wait_for(1);
            cancelled_by_another(
                &token,
                wait,
                || door.open(),
                || {
                    let pipeline = Pipeline::new(0..).batch(1).in_flight(10).cancel_on(&token);
                    let sink = |_: usize| {
                        calls += 1;
                        door.pass();
                    };
                    way.of(pipeline).run(&pool, sink).map(drop)
                },
            );
            assert_eq!(calls, 1, "{way:?}");
        }
    }
}

/// Complete results that wait for their turn are dropped.
fn straggler(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let token = CancelToken::new();
            let (ledger, items) = tracked_items(60);
            let ended = AtomicUsize::new(0);
            let pipeline = Pipeline::new(items).batch(1).in_flight(10).cancel_on(&token);
            let pipeline = pipeline.map(|item| {
                if item.0.number == 0 {
                    eventually("the others end", || ended.load(Ordering::Acquire) == 9);
                    token.cancel();
                } else {
                    ended.fetch_add(1, Ordering::AcqRel);
                }
                into_result(item)
            });
            let mut results = 0;
            assert_cancelled(way.of(pipeline).run(&pool, |_| results += 1));
            assert!(results <= 1, "{way:?} {results}");
            ledger.assert_each_once();
        }
    }
}

fn cancel_some_time(pool: &Pool, way: Way, seed: u64) {
    let token = CancelToken::new();
    let (ledger, items) = tracked_items(300);
    let mut results = Vec::new();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            (0..Rng::new(seed).below(20_000)).for_each(|_| std::hint::spin_loop());
            token.cancel();
        });
        let pipeline =
            Pipeline::new(items).batch(2).in_flight(9).cancel_on(&token).map(into_result);
        way.of(pipeline).run(pool, |result| results.push(result.number - 300))
    });
    match outcome {
        Ok(report) => assert_eq!((report.results, results.len()), (300, 300), "{way:?}"),
        Err(PipelineError::Cancelled { .. }) => {}
        Err(other) => panic!("{way:?}: {other}"),
    }
    way.assert_some(results, 300);
    ledger.assert_each_once();
}

/// The token is cancelled at a random moment of a run.
fn any_time(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for seed in 0..6 {
            ways().for_each(|way| cancel_some_time(&pool, way, seed));
        }
        assert_works(&pool);
    }
}

/// A child token is cancelled with its parent, or alone.
fn children(kind: Kind) {
    let pool = kind.pool(2);
    for way in stealing_ways() {
        let all = CancelToken::new();
        let (one, other) = (all.child(), all.child());
        let endless = |token: &CancelToken, cancel: &CancelToken| {
            let pipeline = Pipeline::new(0..).batch(3).cancel_on(token);
            assert_cancelled(way.of(pipeline).run(&pool, |n: usize| {
                if n == 40 {
                    cancel.cancel();
                }
            }));
        };
        endless(&one, &one);
        assert!(!all.is_cancelled() && !other.is_cancelled());
        let mut sum = 0;
        let finite = Pipeline::new(0..10).cancel_on(&other);
        way.of(finite).run(&pool, |n| sum += n).expect("an end");
        assert_eq!(sum, 45);
        // The token between is dropped.
        let grandchild = other.child().child();
        endless(&grandchild, &all);
        assert!(other.is_cancelled());
        assert_cancelled(Pipeline::new(0..10).cancel_on(&all.child()).run(&pool, drop));
    }
}

/// A cancellation after the end of the run has no effect.
fn too_late(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let report =
            way.of(Pipeline::new(0..100).cancel_on(&token)).run(&pool, drop).expect("an end");
        assert_eq!(report.results, 100, "{way:?}");
        token.cancel();
        assert_works(&pool);
        assert_cancelled(way.of(Pipeline::new(0..100).cancel_on(&token)).run(&pool, drop));
    }
}

fn many_runs_on_one(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    for way in ways().cycle().take(300) {
        let mut sum = 0;
        let pipeline = Pipeline::new(0..5).batch(2).cancel_on(&token);
        way.of(pipeline).run(&pool, |n| sum += n).expect("an end");
        assert_eq!(sum, 10);
    }
    // All runs that use the token at that moment end.
    thread::scope(|scope| {
        let endless = |way: Way| {
            let token = &token;
            let pool = &pool;
            scope.spawn(move || {
                let pipeline = Pipeline::new(0_u64..).cancel_on(token);
                assert_cancelled(way.of(pipeline).run(pool, |_| ()));
            });
        };
        stealing_ways().for_each(endless);
        let mut results = 0;
        let last = Pipeline::new(0_u64..).cancel_on(&token).run(&pool, |_| {
            results += 1;
            if results == 1000 {
                token.cancel();
            }
        });
        assert_cancelled(last);
    });
    assert_works(&pool);
}
