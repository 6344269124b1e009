//! The contract of a pipeline: in every configuration the results are those of a sequential loop, each
//! once, and nothing is left over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use heist::pipeline::Pipeline;
use heist_testkit::test_path;

use crate::common::pipeline::{into_result, tracked_items, ways};
use crate::common::{Kind, Ledger, WORKERS, for_every_strategy, watched};

for_every_strategy! {
    every_way,
    strings,
    boxes,
    lines,
    borrowing,
    rest_of_a_source,
    three_maps,
    batches_then_maps,
    maps_that_may_fail,
    maps_before_settings,
    leftovers,
    drops,
    large_items,
    many_runs,
}

/// The number of items, and the number of items in a batch.
const SHAPES: [(usize, usize); 9] =
    [(0, 1), (0, 64), (1, 1), (1, 64), (64, 64), (200, 1), (200, 7), (200, 64), (200, 1000)];

fn every_way(kind: Kind) {
    for workers in [1, 2, 4, 8, 24] {
        let pool = kind.pool(workers);
        for way in ways() {
            for (items, batch) in SHAPES {
                let mut results = Vec::new();
                let pipeline = Pipeline::new(0..items).batch(batch).map(|n| 3 * n + 1);
                let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
                way.assert_all(results, &(0..items).map(|n| 3 * n + 1).collect::<Vec<_>>());
                let (items, batches) = (items as u64, items.div_ceil(batch) as u64);
                let told = (report.items, report.batches, report.results);
                assert_eq!(told, (items, batches, items), "{way:?}");
            }
        }
    }
}

/// Items without a size.
#[test]
fn zero_sized() {
    struct Nothing;
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    watched(test_path!("zero_sized"), || {
        let pool = Kind::WORK_STEALING.pool(3);
        for way in ways() {
            for batch in [1, 64, 5000] {
                let mut results = 0;
                let nothings = std::iter::repeat_with(|| Nothing).take(1000);
                let pipeline = Pipeline::new(nothings).batch(batch).map(|nothing| (nothing, ()));
                way.of(pipeline).run(&pool, |_| results += 1).expect("an end");
                assert_eq!((results, DROPS.swap(0, Ordering::Relaxed)), (1000, 1000), "{way:?}");
            }
        }
    });
}

fn strings(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let words: Vec<_> = (100..300).map(|n| n.to_string()).collect();
            let expected: Vec<_> = words.iter().map(|word| format!("<{word}>")).collect();
            let mut results = Vec::new();
            let marked = Pipeline::new(words).batch(7).map(|word| format!("<{word}>"));
            way.of(marked).run(&pool, |word| results.push(word)).expect("an end");
            way.assert_all(results, &expected);
        }
    }
}

/// Boxed items become boxed results.
fn boxes(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let items = (0..200).map(Box::new);
        let mut results = Vec::new();
        let tasks = Pipeline::new(items)
            .batch(3)
            .map(|n: Box<usize>| -> Box<dyn Send + Fn() -> usize> { Box::new(move || *n + 1) });
        way.of(tasks).run(&pool, |task| results.push(task())).expect("an end");
        way.assert_all(results, &(1..=200).collect::<Vec<_>>());
    }
}

/// The last line has no newline.
fn lines(kind: Kind) {
    let text: String = (0..500).map(|n| format!("{n}\n")).collect::<String>() + "500";
    let pool = kind.pool(2);
    for way in ways() {
        let numbers = Pipeline::lines(text.as_bytes()).batch(10).try_map(|line| line.parse());
        let mut results: Vec<usize> = Vec::new();
        way.of(numbers).run(&pool, |n| results.push(n)).expect("an end");
        way.assert_all(results, &(0..=500).collect::<Vec<_>>());
    }
}

/// Source, stages, results and sink may all borrow from the caller.
fn borrowing(kind: Kind) {
    let words: Vec<String> = (0..100).map(|n| format!("word {n:03}")).collect();
    let ranks: HashMap<&str, usize> = words.iter().map(String::as_str).zip(0..).collect();
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let calls = AtomicUsize::new(0);
            let mut found: Vec<(&str, usize)> = Vec::new();
            let mut longest = 0;
            let ranked = Pipeline::new(&words).batch(9).map(|word| {
                calls.fetch_add(1, Ordering::Relaxed);
                (word.as_str(), ranks[word.as_str()])
            });
            let sink = |pair: (_, _)| {
                longest = longest.max(str::len(pair.0));
                found.push(pair);
            };
            way.of(ranked).run(&pool, sink).expect("an end");
            assert_eq!((calls.into_inner(), longest), (100, 8));
            found.sort_unstable();
            assert!(found.iter().zip(0..).all(|(pair, n)| *pair == (words[n].as_str(), n)));
        }
    }
}

/// A caller that lends an iterator can continue it after the run.
fn rest_of_a_source(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut numbers = 0..100;
        let mut sum = 0;
        way.of(Pipeline::new(numbers.by_ref().take(50)).batch(8))
            .run(&pool, |n| sum += n)
            .expect("an end");
        assert_eq!((sum, numbers.next()), (1225, Some(50)), "{way:?}");
        way.of(Pipeline::new(&mut numbers).batch(8)).run(&pool, |n| sum += n).expect("an end");
        assert_eq!((sum, numbers.next()), (4900, None), "{way:?}");
    }
}

fn three_maps(kind: Kind) {
    let pool = kind.pool(3);
    for way in ways() {
        let mut results = Vec::new();
        let pipeline = Pipeline::new(100..200_u32)
            .batch(7)
            .map(|n| n.to_string())
            .map(|digits| digits.chars().rev().collect::<String>())
            .map(|digits| digits.parse::<u32>().expect("a number"));
        way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        let turned = |n: u32| n % 10 * 100 + n / 10 % 10 * 10 + n / 100;
        if way.ordered {
            assert!(results.iter().copied().eq((100..200).map(turned)), "{way:?}");
        }
        results.sort_unstable_by_key(|n| turned(*n));
        assert!(results.into_iter().eq((100..200).map(turned)), "{way:?}");
    }
}

fn batches_then_maps(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..95_u64)
            .batch(10)
            .map_batch(|batch| (batch.len(), batch.iter().sum::<u64>()))
            .map(|(length, sum)| (sum, length))
            .try_map(|(sum, length)| if length > 0 { Ok((sum, length)) } else { Err("empty") });
        let report = way.of(pipeline).run(&pool, |sum| results.push(sum)).expect("an end");
        let mut expected: Vec<_> = (0..9).map(|tens| (100 * tens + 45, 10)).collect();
        expected.push((460, 5));
        expected.sort_unstable();
        results.sort_unstable();
        assert_eq!(results, expected, "{way:?}");
        assert_eq!((report.items, report.batches, report.results), (95, 10, 10));
    }
}

fn maps_that_may_fail(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..200_usize)
            .batch(16)
            .map(|n| n.to_string())
            .try_map(|text| text.parse::<usize>())
            .map(|n| n + 1)
            .try_map(|n| n.checked_sub(1).ok_or("too small"))
            .map(|n| n);
        way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        way.assert_all(results, &(0..200).collect::<Vec<_>>());
    }
}

/// Settings take effect before the maps and after them.
fn maps_before_settings(kind: Kind) {
    let pool = kind.pool(2);
    let mut results = Vec::new();
    let before = Pipeline::new(0..100).batch(9).in_flight(2).ordered().map(|n| n + 1);
    let reports = [before.run(&pool, |n| results.push(n)), {
        let after = Pipeline::new(100..200).map(|n| n + 1).batch(9).in_flight(2).ordered();
        after.run(&pool, |n| results.push(n))
    }];
    assert_eq!(results, (1..=200).collect::<Vec<_>>());
    for report in reports.map(|report| report.expect("an end")) {
        assert_eq!(report.batches, 12);
        assert!(report.largest_in_flight <= 2);
    }
}

/// A stage leaves items in its batch, or takes the batch away.
fn leftovers(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let ledger = Ledger::new(103);
        let items: Vec<_> = (0..103).map(|n| ledger.item(n)).collect();
        let mut kept = Vec::new();
        let halved =
            Pipeline::new(items).batch(10).map_batch(|batch| batch.split_off(batch.len() / 2));
        way.of(halved).run(&pool, |half| kept.extend(half)).expect("an end");
        assert_eq!((ledger.dropped(), kept.len()), (51, 52), "{way:?}");
        drop(kept);
        ledger.assert_each_once();
    }
}

fn drops(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = tracked_items(150);
            let mut kept = Vec::new();
            let pipeline = way.of(Pipeline::new(items).batch(4).map(into_result));
            pipeline.run(&pool, |result| kept.push(result)).expect("an end");
            assert_eq!(ledger.dropped(), 150, "{way:?}");
            way.assert_all(
                kept.iter().map(|result| result.number).collect(),
                &(150..300).collect::<Vec<_>>(),
            );
            drop(kept);
            ledger.assert_each_once();
        }
    }
}

fn large_items(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let pages =
            Pipeline::new((0..100_usize).map(|n| [n; 512])).batch(3).map(|page| (page[511], page));
        way.of(pages).run(&pool, |(n, page)| results.push(n + page[0])).expect("an end");
        way.assert_all(results, &(0..100).map(|n| 2 * n).collect::<Vec<_>>());
    }
}

/// Many short runs, one after the other: each has ended completely before the next starts.
fn many_runs(kind: Kind) {
    for workers in [1, 2, 8] {
        let pool = kind.pool(workers);
        for (run, way) in ways().cycle().take(150).enumerate() {
            let mut sum = 0;
            way.of(Pipeline::new(0..run % 9).batch(2)).run(&pool, |n| sum += n).expect("an end");
            assert_eq!(sum, (0..run % 9).sum::<usize>(), "{way:?}");
        }
    }
}
