//! The contract of weights: the items in flight weigh no more than the limit. A single item above the limit
//! is in flight alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::pipeline::Pipeline;

use crate::common::pipeline::{Door, OpenOnDrop, Traffic, ways};
use crate::common::{Kind, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    within_the_limit,
    batches,
    too_heavy,
    heaviest,
    weightless,
    heavy_first,
    light_among_heavy,
}

/// The weights of items, from 1 to 7.
fn weight(item: &usize) -> usize {
    item % 7 + 1
}

fn within_the_limit(kind: Kind) {
    for workers in [1, 3] {
        let pool = kind.pool(workers);
        for (way, limit) in ways().flat_map(|way| [7, 20, 300].map(|limit| (way, limit))) {
            let (taken, staged) = (Traffic::default(), Traffic::default());
            let items = (0..40).inspect(|n| taken.take(weight(n)));
            let pipeline = Pipeline::new(items).batch(10).weigh(weight, limit).map(|n| {
                staged.take(weight(&n));
                n
            });
            let mut results = Vec::new();
            let sink = |n| {
                taken.deliver(weight(&n));
                staged.deliver(weight(&n));
                results.push(n);
            };
            let report = way.of(pipeline).run(&pool, sink).expect("an end");
            way.assert_all(results, &(0..40).collect::<Vec<_>>());
            assert!(staged.most() <= limit, "{way:?} {limit}: {staged:?}");
            // The weight of an item is not known before it has been taken.
            assert!(taken.most() <= limit + 7, "{way:?} {limit}: {taken:?}");
            assert!((1..=limit as u64).contains(&report.largest_weight), "{way:?}: {report:?}");
        }
    }
}

/// A batch ends where it would be too heavy, or have too many items.
fn batches(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut weights = Vec::new();
        let pipeline = Pipeline::new(0..60)
            .batch(4)
            .weigh(weight, 12)
            .map_batch(|batch| (batch.len(), batch.iter().map(weight).sum::<usize>()));
        way.of(pipeline).run(&pool, |pair| weights.push(pair)).expect("an end");
        assert!(weights.iter().all(|(items, weight)| *items <= 4 && *weight <= 12), "{way:?}");
        assert_eq!(weights.iter().map(|(items, _)| items).sum::<usize>(), 60);
    }
}

/// An item above the limit waits until nothing else is in flight, and everything else waits for it.
fn too_heavy(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let inside = AtomicUsize::new(0);
            let heavy = |n: &usize| n % 10 == 3;
            let weigh = |n: &usize| if heavy(n) { 50 + n } else { 2 };
            let pipeline = Pipeline::new(0..100).batch(4).weigh(weigh, 10).map(|n| {
                let others = inside.fetch_add(weigh(&n), Ordering::AcqRel);
                assert!(others <= if heavy(&n) { 0 } else { 8 }, "{way:?}: {n} beside {others}");
                n
            });
            let mut results = Vec::new();
            let sink = |n| {
                inside.fetch_sub(weigh(&n), Ordering::AcqRel);
                results.push(n);
            };
            let report = way.of(pipeline).run(&pool, sink).expect("an end");
            way.assert_all(results, &(0..100).collect::<Vec<_>>());
            assert_eq!(report.largest_weight, 143, "{way:?}");
        }
    }
}

/// The sum of weights does not overflow.
fn heaviest(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        for limit in [1, usize::MAX] {
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..30_usize).batch(4);
            let pipeline =
                pipeline.weigh(|n| if n % 3 == 0 { usize::MAX } else { usize::MAX / 2 }, limit);
            let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..30).collect::<Vec<_>>());
            assert_eq!(report.largest_weight, usize::MAX as u64, "{way:?}");
        }
    }
}

/// Items without weight are bounded by the number of batches alone.
fn weightless(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let traffic = Traffic::default();
        let items = (0..100).inspect(|_| traffic.take(1));
        let pipeline = Pipeline::new(items).batch(5).in_flight(3).weigh(|_| 0, 1);
        let report = way.of(pipeline).run(&pool, |_| traffic.deliver(1)).expect("an end");
        assert_eq!((report.batches, report.largest_weight), (20, 0), "{way:?}");
        assert!(traffic.most() <= 15 + 1, "{way:?}: {traffic:?}");
        assert!(report.largest_in_flight <= 3, "{way:?}");
    }
}

/// Without an order, the heaviest queued items come first.
fn heavy_first(kind: Kind) {
    let pool = kind.pool(1);
    for way in ways().filter(|way| way.has_producer() && !way.ordered) {
        let (door, end) = (Door::default(), Door::default());
        let began = Mutex::new(Vec::new());
        let items = [1, 2, 3, 40, 4, 5].into_iter().inspect(|n| match n {
            2 => door.wait_for(1),
            // All other batches are queued.
            5 => end.pass(),
            _ => {}
        });
        let pipeline = Pipeline::new(items).batch(1).weigh(|n| *n, 1000).map(|n| {
            if n == 1 {
                door.pass();
            }
            began.lock().expect("no panic").push(n);
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                let (_opens, _ends) = (OpenOnDrop(&door), OpenOnDrop(&end));
                end.wait_for(1);
            });
            way.of(pipeline).run(&pool, |()| ()).expect("an end");
        });
        let began = began.into_inner().expect("no panic");
        assert_eq!(began[..2], [1, 40], "{way:?}: {began:?}");
    }
}

/// A flow of heavy items that never ends does not keep a light one waiting: fewer later ones than may be in
/// flight come before it.
fn light_among_heavy(kind: Kind) {
    const LAST: usize = 200;
    // With one worker, it is known in which order batches are taken.
    let pool = kind.pool(1);
    for bound in [4, 9] {
        for way in ways().filter(|way| way.has_producer() && way.steals && !way.ordered) {
            let (taken, delivered) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let began = Mutex::new(Vec::new());
            let items = (0..=LAST).inspect(|_| _ = taken.fetch_add(1, Ordering::AcqRel));
            let light = |n: &usize| n % 50 == 1;
            let weigh = |n: &usize| if light(n) { 1 } else { 10 };
            let pipeline = Pipeline::new(items).batch(1).in_flight(bound).weigh(weigh, 10_000);
            let pipeline = pipeline.map(|n| {
                began.lock().expect("no panic").push(n);
                // All that may be in flight is queued by then, so the worker always finds a heavy batch.
                let full = || {
                    let most = delivered.load(Ordering::Acquire) + bound;
                    taken.load(Ordering::Acquire) >= most.min(LAST + 1)
                };
                eventually("more are queued", full);
            });
            let sink = |()| _ = delivered.fetch_add(1, Ordering::AcqRel);
            way.of(pipeline).run(&pool, sink).expect("an end");
            let began = began.into_inner().expect("no panic");
            for n in (0..=LAST).filter(light) {
                let before = began.iter().take_while(|other| **other != n);
                let later = before.filter(|other| **other > n).count();
                assert!(later < bound, "{way:?}: {later} of {bound} before {n}: {began:?}");
            }
        }
    }
}
