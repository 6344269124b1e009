//! The contract of runs with sections that end early: an error names the stage and the item, nothing is lost or done twice, and nobody
//! waits for a batch that does not come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{Pipeline, Retry, Stage};

use crate::common::pipeline::{
    Fault, How, Way, assert_cancelled, assert_works, ordered_ways, stealing_ways, tracked_items,
    ways,
};
use crate::common::{Kind, Ledger, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    faults,
    faults_behind_flat_map,
    errors_of_an_ordered_run,
    cancelled_inside,
    a_failure_ends_a_pause_in_a_group,
    results_dropped,
    destructors_that_panic,
    keys_that_panic_when_dropped,
}

const ITEMS: usize = 120;

/// Runs a chain of eight stages, of which the third one is a key. Stages 2 and 4 to 7 are in sections.
fn run_with_fault(kind: Kind, way: Way, workers: usize, fault: Fault) {
    let pool = kind.pool(workers);
    let (ledger, items) = tracked_items(ITEMS);
    let check = |step: usize, item: usize| fault.check(Stage::Step(step), item);
    let pipeline = Pipeline::new(items)
        .batch(5)
        .in_flight(6)
        .try_map(|item| check(1, item.0.number).map(|()| item))
        .limit_workers(2, |stages| stages.try_map(|item| check(2, item.0.number).map(|()| item)))
        .group_by_key(
            5,
            |item| {
                check(3, item.0.number).expect("a key has no error");
                item.0.number % 7
            },
            |group| {
                let group = group.try_map(|item| check(4, item.0.number).map(|()| item));
                group.try_map_init(|| (), |(), item| check(5, item.0.number).map(|()| item))
            },
        )
        .limit_workers(1, |stages| {
            let stages = stages.try_map(|item| check(6, item.0.number).map(|()| item));
            stages.try_map(|item| check(7, item.0.number).map(|()| item))
        })
        .try_map(|item| check(8, item.0.number).map(|()| item.0.number));
    let mut results = Vec::new();
    let error = way.of(pipeline).run(&pool, |n| results.push(n)).expect_err("planned");
    fault.assert_told(&error, 5);
    if way.ordered {
        assert_eq!(results.len(), fault.item / 5 * 5, "{way:?} {fault:?}");
    }
    way.assert_some(results, ITEMS);
    ledger.assert_each_once();
    assert_works(&pool);
}

fn faults(kind: Kind) {
    for (n, way) in ways().enumerate() {
        for step in 1..=8 {
            let workers = WORKERS[(n + step) % WORKERS.len()];
            let item = (n * 31 + step * 17) % ITEMS;
            run_with_fault(
                kind,
                way,
                workers,
                Fault { stage: Stage::Step(step), how: How::Panic, item },
            );
            if step != 3 {
                let how = How::Error;
                run_with_fault(kind, way, workers, Fault { stage: Stage::Step(step), how, item });
            }
        }
    }
}

/// The index is that of the item of the source, also if there were others and more before the section.
fn faults_behind_flat_map(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let fail = |n: usize| if n == 77 { Err("planned") } else { Ok(n) };
        let before = || {
            let pipeline = Pipeline::new(0..ITEMS).batch(8).filter(|n| n % 2 == 1);
            way.of(pipeline).flat_map(|n| vec![n; 3])
        };
        let limited = before().limit_workers(2, |stages| stages.filter(|_| true).try_map(fail));
        let grouped =
            before().group_by_key(3, |n| *n, |group| group.filter(|_| true).try_map(fail));
        let behind = before().group_by_key(3, |n| *n, |group| group.flat_map(|n| vec![n; 2]));
        let outcomes = [
            (limited.run(&pool, |_| ()), 4),
            (grouped.run(&pool, |_| ()), 5),
            (behind.try_map(fail).run(&pool, |_| ()), 5),
        ];
        for (outcome, stage) in outcomes {
            let error = outcome.expect_err("planned");
            assert_eq!(
                (error.stage(), error.batch(), error.item()),
                (Some(Stage::Step(stage)), Some(9), Some(77)),
                "{way:?}"
            );
        }
    }
}

/// The first batch that fails ends the run, whichever of its items it is.
fn errors_of_an_ordered_run(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let mut results = Vec::new();
            let fail = |n: usize| if n % 20 > 15 { Err("planned") } else { Ok(n) };
            let pipeline = Pipeline::new(0..ITEMS).batch(5);
            let pipeline = pipeline.group_by_key(3, |n| *n, |group| group.try_map(fail));
            let error = way.of(pipeline).run(&pool, |n| results.push(n)).expect_err("planned");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(2)), Some(3)));
            assert!((16..20).contains(&error.item().expect("an item")), "{error}");
            assert_eq!(results, (0..15).collect::<Vec<_>>());
        }
    }
}

fn cancelled_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            for grouped in [false, true] {
                let (ledger, items) = tracked_items(ITEMS);
                let token = CancelToken::new();
                let cancelled = AtomicBool::new(false);
                let cancel = |item: (_, Tracked)| {
                    assert!(!cancelled.load(Ordering::SeqCst) || workers > 1, "{way:?}");
                    if item.1.number == ITEMS + 60 {
                        token.cancel();
                        cancelled.store(true, Ordering::SeqCst);
                    }
                    item.1
                };
                let pipeline = way.of(Pipeline::new(items).batch(5).cancel_on(&token));
                let outcome = if grouped {
                    let key = |item: &(Tracked, _)| item.0.number % 3;
                    pipeline.group_by_key(2, key, |group| group.map(cancel)).run(&pool, drop)
                } else {
                    pipeline.limit_workers(1, |stages| stages.map(cancel)).run(&pool, drop)
                };
                assert_cancelled(outcome);
                ledger.assert_each_once();
                assert_works(&pool);
            }
        }
    }
}

/// Two workers pause in the same batch, and a third one ends the run.
fn a_failure_ends_a_pause_in_a_group(kind: Kind) {
    let pool = kind.pool(4);
    for way in stealing_ways() {
        let pausing = AtomicUsize::new(0);
        let fail = |n: usize| {
            if n == 2 {
                eventually("two pauses", || pausing.load(Ordering::SeqCst) >= 2);
                panic!("planned");
            }
            pausing.fetch_add(1, Ordering::SeqCst);
            Err::<usize, _>("not yet")
        };
        // These keys are in three groups.
        let keys = distinct_groups();
        let retry = Retry::times(1).backoff(Duration::from_secs(1 << 20));
        let pipeline = Pipeline::new(0..3_usize).batch(3).group_by_key(
            64,
            |n| keys[*n],
            |group| group.try_map(fail).on_error(retry),
        );
        let error = way.of(pipeline).run(&pool, |_| ()).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Step(2)), Some(2)), "{way:?}");
        assert_eq!(pausing.into_inner(), 2, "{way:?}");
    }
}

/// Returns three keys that are in different ones of 64 groups.
fn distinct_groups() -> Vec<usize> {
    let pool = heist::Pool::builder().workers(1).build().expect("a pool");
    let number = |ids: &AtomicUsize| ids.fetch_add(1, Ordering::Relaxed);
    let ids = AtomicUsize::new(0);
    let mut groups = HashMap::new();
    let pipeline = Pipeline::new(0..64_usize).group_by_key(
        64,
        |n| *n,
        |group| group.map_init(|| number(&ids), |id, n| (*id, n)),
    );
    pipeline.run(&pool, |(id, n)| _ = groups.entry(id).or_insert(n)).expect("an end");
    assert!(groups.len() >= 3);
    groups.into_values().take(3).collect()
}

fn results_dropped(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(ITEMS);
            let pipeline = Pipeline::new(items)
                .batch(2)
                .in_flight(8)
                .group_by_key(3, |item| item.0.number % 4, |group| group.map(|item| item))
                .limit_workers(1, |stages| stages.map(|item| item));
            let mut results = way.of(pipeline).results(&pool).expect("valid settings");
            assert!(results.by_ref().take(20).all(|result| result.is_ok()));
            drop(results);
            eventually("everything is gone", || ledger.dropped() == 2 * ITEMS);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

/// An item panics when it is dropped beside one whose stage has panicked.
fn destructors_that_panic(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            for grouped in [false, true] {
                let ledger = Ledger::new(ITEMS);
                let item = |n| if n == 35 { ledger.bomb(n) } else { ledger.item(n) };
                let items: Vec<_> = (0..ITEMS).map(item).collect();
                let fail = |item: Tracked| match item.number {
                    30 => panic!("planned"),
                    _ => item,
                };
                let pipeline = way.of(Pipeline::new(items).batch(9));
                let error = if grouped {
                    let key = |item: &Tracked| item.number % 4;
                    let pipeline = pipeline.group_by_key(3, key, |group| group.map(fail));
                    pipeline.run(&pool, drop).expect_err("planned")
                } else {
                    let pipeline = pipeline.limit_workers(2, |stages| stages.map(fail));
                    pipeline.run(&pool, drop).expect_err("planned")
                };
                assert!(error.stage().is_some(), "{error}");
                ledger.assert_each_once();
                assert_works(&pool);
            }
        }
    }
}

fn keys_that_panic_when_dropped(kind: Kind) {
    struct Key(usize);
    impl std::hash::Hash for Key {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl Drop for Key {
        fn drop(&mut self) {
            assert!(self.0 != 50, "planned");
        }
    }
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = tracked_items(ITEMS);
        let pipeline = Pipeline::new(items).batch(4).group_by_key(
            3,
            |item| Key(item.0.number),
            |group| group.map(|item| item.1),
        );
        let error = way.of(pipeline).run(&pool, drop).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Step(1)), Some(50)), "{way:?}");
        ledger.assert_each_once();
    }
}
