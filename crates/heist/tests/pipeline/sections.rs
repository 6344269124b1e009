//! The contract of sections: `limit_workers` processes few batches at the same time, and `group_by_key` the items of a key in
//! order. Neither keeps a worker waiting, and neither changes what a chain of stages has for results and errors.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use heist::pipeline::{Pipeline, PipelineError, Retry, Skip};

use crate::common::pipeline::{
    Door, assert_works, ordered_ways, stealing_ways, tracked_items, ways,
};
use crate::common::{Kind, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    few_workers,
    one_after_the_other,
    keys_in_order,
    groups_side_by_side,
    a_full_section_keeps_no_worker,
    values_of_a_section,
    like_a_chain,
    sections_in_a_row,
    batches_in_a_section,
    policies_in_a_section,
    misuse,
}

const ITEMS: usize = 120;

/// Counts the threads that are inside.
#[derive(Default)]
struct Inside(AtomicUsize, AtomicUsize);

impl Inside {
    fn pass<R>(&self, f: impl FnOnce() -> R) -> R {
        let inside = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.1.fetch_max(inside, Ordering::SeqCst);
        std::thread::yield_now();
        let result = f();
        self.0.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn most(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

fn few_workers(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (n, way) in ways().enumerate() {
            let limit = n % 3 + 1;
            let inside = Inside::default();
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..ITEMS).batch(3).in_flight(7).map(|n| n + 1);
            let pipeline = pipeline
                .limit_workers(limit, |stages| stages.map(|n| inside.pass(|| n - 1)))
                .map(|n| n);
            let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..ITEMS).collect::<Vec<_>>());
            assert!((1..=limit).contains(&inside.most()), "{way:?}");
            assert!(report.largest_in_flight <= 7, "{way:?}");
            let batches: u64 = report.per_worker.iter().map(|worker| worker.batches).sum();
            assert_eq!((report.batches, batches), (40, 40), "{way:?}");
        }
    }
}

/// With one worker, a section of an ordered pipeline has its items in order.
fn one_after_the_other(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let mut results = Vec::new();
            let number = |next: &mut usize, n: usize| {
                *next += 1;
                (n, *next - 1)
            };
            let pipeline = Pipeline::new(0..ITEMS)
                .batch(4)
                .filter(|n| n / 8 != 3)
                .limit_workers(1, |stages| stages.map_init(|| 0, number));
            way.of(pipeline).run(&pool, |pair| results.push(pair)).expect("an end");
            let expected = (0..ITEMS).filter(|n| n / 8 != 3).enumerate().map(|(at, n)| (n, at));
            assert_eq!(results, expected.collect::<Vec<_>>(), "{way:?}");
        }
    }
}

/// A key of an item, of which some have many items.
fn key(n: &usize) -> usize {
    (n * n) % 11
}

fn keys_in_order(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (n, way) in ways().enumerate() {
            let groups = [1, 2, 5, 64][n % 4];
            let seen = Mutex::new(HashMap::<usize, Vec<usize>>::new());
            let see = |n: usize| {
                seen.lock().expect("no panic").entry(key(&n)).or_default().push(n);
                n
            };
            let mut results = Vec::new();
            let pipeline =
                Pipeline::new(0..ITEMS)
                    .batch(5)
                    .in_flight(6)
                    .group_by_key(groups, key, |group| group.map(see));
            let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..ITEMS).collect::<Vec<_>>());
            assert!(report.largest_in_flight <= 6, "{way:?}");
            let seen = seen.into_inner().expect("no panic");
            assert_eq!(seen.values().map(Vec::len).sum::<usize>(), ITEMS);
            assert!(seen.values().all(|items| items.is_sorted()), "{way:?}: {seen:?}");
        }
    }
}

/// Two groups have one item each at the same time.
fn groups_side_by_side(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let came = AtomicUsize::new(0);
        let meet = |n: usize| {
            came.fetch_add(1, Ordering::SeqCst);
            eventually("another group", || came.load(Ordering::SeqCst) >= 2);
            n
        };
        let pipeline = Pipeline::new(0..40).batch(40);
        let pipeline = pipeline.group_by_key(16, |n| *n, |group| group.map(meet));
        way.of(pipeline).run(&pool, |_| ()).expect("an end");
    }
}

/// While one batch is in the section, the other worker processes all others that may be in flight up to there.
fn a_full_section_keeps_no_worker(kind: Kind) {
    let pool = kind.pool(2);
    for way in stealing_ways() {
        for grouped in [false, true] {
            let (door, came) = (Door::default(), AtomicUsize::new(0));
            let come = |n: usize| {
                if came.fetch_add(1, Ordering::SeqCst) + 1 == 5 {
                    door.open();
                }
                n
            };
            let wait = |n: usize| {
                door.pass();
                n
            };
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..20).batch(1).in_flight(5).map(come);
            let outcome = if grouped {
                let pipeline = pipeline.group_by_key(1, |_| (), |group| group.map(wait));
                way.of(pipeline).run(&pool, |n| results.push(n))
            } else {
                let pipeline = pipeline.limit_workers(1, |stages| stages.map(wait));
                way.of(pipeline).run(&pool, |n| results.push(n))
            };
            outcome.expect("an end");
            way.assert_all(results, &(0..20).collect::<Vec<_>>());
        }
    }
}

/// A section has as many values as batches may be inside, and a group has one.
fn values_of_a_section(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let made = AtomicUsize::new(0);
            let init = || made.fetch_add(1, Ordering::Relaxed);
            let pipeline = Pipeline::new(0..ITEMS).batch(2);
            let pipeline = pipeline.limit_workers(2, |stages| stages.map_init(init, |_value, n| n));
            way.of(pipeline).run(&pool, |_| ()).expect("an end");
            assert!((1..=2).contains(&made.swap(0, Ordering::Relaxed)), "{way:?}");

            let count = |counts: &mut (usize, HashMap<usize, usize>), n: usize| {
                let count = counts.1.entry(key(&n)).or_insert(0);
                *count += 1;
                (n, *count)
            };
            let pipeline = Pipeline::new(0..ITEMS).batch(7);
            let pipeline = pipeline
                .group_by_key(3, key, |group| group.map_init(|| (init(), HashMap::new()), count));
            let mut results = Vec::new();
            way.of(pipeline).run(&pool, |pair| results.push(pair)).expect("an end");
            let expected = (0..ITEMS).map(|n| (n, (0..=n).filter(|m| key(m) == key(&n)).count()));
            way.assert_all(results, &expected.collect::<Vec<_>>());
            assert!((1..=3).contains(&made.into_inner()), "{way:?}");
        }
    }
}

/// A section changes none of the results, whatever is before it, in it and after it.
fn like_a_chain(kind: Kind) {
    let expected: Vec<_> = (0..ITEMS)
        .flat_map(|n| vec![n; n % 4])
        .filter(|n| n % 3 != 0)
        .flat_map(|n| vec![2 * n; n % 5])
        .filter(|n| n % 7 != 0)
        .collect();
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let before = || {
                let pipeline = Pipeline::new(0..ITEMS).batch(6).flat_map(|n| vec![n; n % 4]);
                way.of(pipeline).filter(|n| n % 3 != 0)
            };
            let mut results = Vec::new();
            let inside = |n: usize| vec![2 * n; n % 5];
            let limited = before().limit_workers(2, |stages| stages.flat_map(inside));
            limited.filter(|n| n % 7 != 0).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &expected);
            let mut results = Vec::new();
            let grouped = before().group_by_key(4, key, |group| group.flat_map(inside));
            grouped.filter(|n| n % 7 != 0).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &expected);
        }
    }
}

fn sections_in_a_row(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(ITEMS);
            let inside = Inside::default();
            let pipeline = Pipeline::new(items)
                .batch(5)
                .in_flight(4)
                .group_by_key(3, |item| item.0.number % 5, |group| group.map(|item| item))
                .limit_workers(1, |stages| {
                    stages.map(|item| inside.pass(|| item)).filter(|item| item.0.number % 2 == 0)
                })
                .map_batch(std::mem::take)
                .group_by_key(2, Vec::len, |group| group.flat_map(|batch| batch))
                .limit_workers(2, |stages| stages.map(|item| item.0.number));
            let mut results = Vec::new();
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..ITEMS).step_by(2).collect::<Vec<_>>());
            assert_eq!(inside.most(), 1);
            ledger.assert_each_once();
        }
    }
}

/// A function for batches has a whole batch in `limit_workers`, and what belongs to one group in `group_by_key`.
fn batches_in_a_section(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..30).batch(10).filter(|n| *n < 15);
        let pipeline = pipeline.limit_workers(1, |stages| stages.map_batch(|batch| batch.len()));
        way.of(pipeline).run(&pool, |length| results.push(length)).expect("an end");
        results.sort_unstable();
        assert_eq!(results, [0, 5, 10], "{way:?}");

        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..60_usize).batch(10).group_by_key(
            4,
            |n| n % 3,
            |group| group.map_batch(std::mem::take).flat_map(|batch| batch),
        );
        way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        assert!((0..3).all(|key| {
            let of_key: Vec<_> = results.iter().filter(|n| *n % 3 == key).collect();
            way.ordered <= of_key.is_sorted() && of_key.len() == 20
        }));
    }
}

fn policies_in_a_section(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let fail = |n: usize| if n % 10 == 0 { Err("planned") } else { Ok(n) };
        let pipeline = Pipeline::new(0..ITEMS)
            .batch(7)
            .try_map(|n| if n % 10 == 5 { Err("planned") } else { Ok(n) })
            .on_error(Skip)
            .group_by_key(
                4,
                |n| *n,
                |group| group.try_map(fail).on_error(Retry::times(2)).on_error(Skip),
            )
            .limit_workers(1, |stages| {
                stages.try_map(|n| if n % 10 == 1 { Err("planned") } else { Ok(n) }).on_error(Skip)
            })
            .try_map(|n| if n % 10 == 2 { Err("planned") } else { Ok(n) })
            .on_error(Skip);
        let mut results = Vec::new();
        let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        assert_eq!((report.skipped, report.retried), (48, 24), "{way:?}");
        let left = (0..ITEMS).filter(|n| ![0, 1, 2, 5].contains(&(n % 10)));
        way.assert_all(results, &left.collect::<Vec<_>>());
    }
}

fn misuse(kind: Kind) {
    let pool = kind.pool(1);
    let numbers = || Pipeline::new(0..10_usize);
    let error = numbers().limit_workers(0, |stages| stages).run(&pool, |_| ()).expect_err("zero");
    assert!(
        matches!(error, PipelineError::ZeroWorkers) && error.to_string().contains("at least 1")
    );
    for groups in [0, 65_537, usize::MAX] {
        let grouped = numbers().group_by_key(groups, |n| *n, |group| group);
        let error = grouped.results(&pool).expect_err("no such number of groups");
        assert!(matches!(error, PipelineError::Groups { groups: said } if said == groups));
        assert!(error.to_string().contains(&groups.to_string()));
    }
    let set = numbers().limit_workers(1, |stages| stages.ordered().map(|n| n));
    let error = set.into_iter().next().expect("an item").expect_err("a setting");
    assert!(
        matches!(error, PipelineError::Misplaced { setting: "ordered", by: "limit_workers" }),
        "{error}"
    );
    let set = numbers().group_by_key(1, |n| *n, |group| group.batch(3));
    let error = set.run(&pool, |_| ()).expect_err("a setting");
    assert!(
        matches!(error, PipelineError::Misplaced { setting: "batch", by: "group_by_key" }),
        "{error}"
    );
    // What was wrong first is told.
    let both = numbers().limit_workers(0, |stages| stages).group_by_key(0, |n| *n, |group| group);
    let error = both.run(&pool, |_| ()).expect_err("two errors");
    assert!(matches!(error, PipelineError::ZeroWorkers), "{error}");
    let error = error.report();
    assert!(error.is_none());
    assert_works(&pool);
    // The largest number of groups, and a section without a stage.
    let many = numbers().group_by_key(65_536, |n| *n, |group| group).limit_workers(9, |all| all);
    let mut sum = 0;
    many.run(&pool, |n| sum += n).expect("an end");
    assert_eq!(sum, 45);
}
