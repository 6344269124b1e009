//! The contract of bounds: no more items are in flight than the bound allows, however fast the source and
//! however slow the sink.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use heist::Pool;
use heist::pipeline::Pipeline;

use crate::common::pipeline::{Door, OpenOnDrop, Traffic, Way, ordered_ways, stealing_ways, ways};
use crate::common::{Kind, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    always,
    sink_that_waits,
    straggler_in_order,
    straggler,
    one_by_one,
    huge_settings,
}

const BOUNDS: [usize; 4] = [1, 2, 3, 64];

fn always(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, bound) in ways().flat_map(|way| BOUNDS.map(|bound| (way, bound))) {
            let traffic = Traffic::default();
            let items = (0..200).inspect(|_| traffic.take(1));
            let pipeline = Pipeline::new(items).batch(5).in_flight(bound).map(|n| n + 1);
            let report = way.of(pipeline).run(&pool, |_| traffic.deliver(1)).expect("an end");
            assert_eq!(traffic.delivered(), 200);
            assert!(traffic.most() <= 5 * bound, "{way:?} {bound}: {traffic:?}");
            assert!((1..=bound).contains(&report.largest_in_flight), "{way:?} {bound}: {report}");
        }
    }
}

/// Waits until the source has yielded this many items, and panics if it yields more after a while.
fn assert_full(traffic: &Traffic, way: Way, items: usize) {
    eventually("everything is full", || traffic.taken() >= items);
    // Long enough that a pipeline without the bound would pass it.
    thread::sleep(Duration::from_millis(2));
    assert_eq!(traffic.taken(), items, "{way:?}");
}

/// While the sink blocks on the first result, the pipeline continues up to its bound.
fn sink_that_waits(kind: Kind) {
    for workers in [1, 3] {
        let pool = kind.pool(workers);
        for (way, bound) in ways().flat_map(|way| BOUNDS.map(|bound| (way, bound))) {
            let (traffic, all) = (Traffic::default(), 3 * (bound + 5));
            let items = (0..all).inspect(|_| traffic.take(1));
            let mut results = Vec::new();
            let sink = |n| {
                if results.is_empty() {
                    assert_full(&traffic, way, 3 * bound);
                }
                results.push(n);
            };
            let pipeline = Pipeline::new(items).batch(3).in_flight(bound);
            let report = way.of(pipeline).run(&pool, sink).expect("an end");
            way.assert_all(results, &(0..all).collect::<Vec<_>>());
            assert_eq!(report.largest_in_flight, bound, "{way:?}");
        }
    }
}

/// While the first batch is slow, no later result is delivered, and all of them count as in flight.
fn straggler_in_order(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        // One worker is not enough for the slow batch and the rest, unless the source has its own
        // thread.
        for way in ordered_ways().filter(|way| workers > 1 || way.has_producer()) {
            for bound in BOUNDS {
                hold_the_first_up(&pool, way, bound);
            }
        }
    }
}

fn hold_the_first_up(pool: &Pool, way: Way, bound: usize) {
    let (traffic, door, all) = (Traffic::default(), Door::default(), 3 * (bound + 20));
    let items = (0..all).inspect(|_| traffic.take(1));
    let pipeline = Pipeline::new(items).batch(3).in_flight(bound).map(|n| {
        if n == 1 {
            door.pass();
        }
        n
    });
    let mut results = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _opens = OpenOnDrop(&door);
            assert_full(&traffic, way, 3 * bound);
            assert_eq!(traffic.delivered(), 0, "{way:?}");
        });
        let sink = |n| {
            traffic.deliver(1);
            results.push(n);
        };
        way.of(pipeline).run(pool, sink).expect("an end");
    });
    way.assert_all(results, &(0..all).collect::<Vec<_>>());
    assert!(traffic.most() <= 3 * bound, "{way:?} {bound}: {traffic:?}");
}

/// Without an order, a slow batch delays no other.
fn straggler(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for way in stealing_ways().filter(|way| !way.ordered) {
            for bound in [2, 3, 64] {
                let (door, mut results) = (Door::default(), Vec::new());
                let pipeline = Pipeline::new(0..100).batch(1).in_flight(bound).map(|n| {
                    if n == 0 {
                        door.pass();
                    }
                    n
                });
                let sink = |n| {
                    results.push(n);
                    if results.len() == 99 {
                        door.open();
                    }
                };
                way.of(pipeline).run(&pool, sink).expect("an end");
                assert_eq!(results.last(), Some(&0), "{way:?}");
                way.assert_all(results, &(0..100).collect::<Vec<_>>());
            }
        }
    }
}

/// With one item in flight, everything happens in turn, on whichever threads.
fn one_by_one(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let inside = AtomicUsize::new(0);
            let enter =
                |n: &usize| assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "{way:?} {n}");
            let items = (0..100).inspect(enter);
            let pipeline = Pipeline::new(items).batch(1).in_flight(1).map(|n| n + 1);
            let sink = |_| assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1, "{way:?}");
            way.of(pipeline).run(&pool, sink).expect("an end");
        }
    }
}

/// A huge number stands for no bound: nothing of that size is allocated.
fn huge_settings(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        for (batch, bound) in [(usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..100_usize).batch(batch).in_flight(bound);
            let pipeline = pipeline.weigh(|n| *n, usize::MAX);
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..100).collect::<Vec<_>>());

            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..100_usize).batch(batch).in_flight(bound);
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..100).collect::<Vec<_>>());
        }
    }
}
