//! Merged sources take turns. Each item is taken once, and the bounds, the failures and the end are those of one source.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::{iter, thread};

use heist::CancelToken;
use heist::pipeline::{Distribution, Pipeline, PipelineError, Stage};

use crate::common::pipeline::{Traffic, assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, Tracked, eventually};
use crate::{LONG, fed, pools, watched_tests};

watched_tests! {
    in_turn,
    merged_ones_are_merged,
    lines_of_several_readers,
    none_and_empty_ones,
    feeds_and_an_iterator,
    every_feed_wakes_the_run,
    an_ended_source_is_dropped,
    a_source_fails,
    a_source_panics,
    bounded,
    weighed,
    cancelled,
    results_dropped_in_the_middle,
    drops_that_panic,
    progress_knows_the_sum,
    misplaced_settings,
}

/// What sources with so many items yield: the number of the source and of the item, in the order of the rounds.
fn rounds(lengths: &[usize]) -> Vec<(usize, usize)> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let round = |n| (0..lengths.len()).filter(move |s| n < lengths[*s]).map(move |s| (s, n));
    (0..longest).flat_map(round).collect()
}

/// The items of a source.
fn items(source: usize, length: usize) -> impl Iterator<Item = (usize, usize)> + Clone + Send {
    (0..length).map(move |n| (source, n))
}

const LENGTHS: [&[usize]; 6] =
    [&[20], &[10, 10], &[0, 30, 3], &[7, 0, 1, 25], &[1, 2, 3, 4, 5, 6], &[100, 1]];

fn in_turn() {
    for pool in pools() {
        for (way, lengths) in ways().flat_map(|way| LENGTHS.map(|lengths| (way, lengths))) {
            let sources =
                lengths.iter().enumerate().map(|(s, length)| Pipeline::new(items(s, *length)));
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::merge_all(sources)).batch(4).map(|item| item);
            let report = pipeline.run(&pool, |item| results.push(item)).expect("an end");
            let mut expected = rounds(lengths);
            assert_eq!(report.items, expected.len() as u64);
            if !way.ordered {
                expected.sort_unstable();
            }
            way.assert_all(results, &expected);
        }
    }
}

/// Each source has one item in a round, however they were merged.
fn merged_ones_are_merged() {
    let pool = Kind::WORK_STEALING.pool(2);
    for (batch, lengths) in
        [1, 2, 3, 7].into_iter().flat_map(|n| [(n, [6, 6, 6, 6]), (n, [5, 9, 2, 7])])
    {
        let source = |n: usize| Pipeline::new(items(n, lengths[n]));
        let (mut one_by_one, mut in_pairs) = (Vec::new(), Vec::new());
        let merged = source(0).merge(source(1)).merge(source(2)).merge(source(3));
        merged.batch(batch).ordered().run(&pool, |item| one_by_one.push(item)).expect("an end");
        let merged = source(0).merge(source(1)).merge(source(2).merge(source(3)));
        merged.batch(batch).ordered().run(&pool, |item| in_pairs.push(item)).expect("an end");
        // When one of them ends, the next one of the same pair has its turn.
        let alike = 4 * lengths.iter().min().expect("four");
        for mut results in [one_by_one, in_pairs] {
            assert_eq!(results[..alike], rounds(&lengths)[..alike]);
            results.sort_unstable();
            assert!(results.into_iter().eq((0..4).flat_map(|s| items(s, lengths[s]))));
        }
    }
}

fn lines_of_several_readers() {
    let pool = Kind::WORK_STEALING.pool(2);
    let mut lines = Vec::new();
    let pipeline = Pipeline::lines("a\nb\nc".as_bytes()).merge(Pipeline::lines("d\n\n".as_bytes()));
    pipeline.ordered().run(&pool, |line| lines.push(line)).expect("lines");
    assert_eq!(lines, ["a", "d", "b", "", "c"]);
}

fn none_and_empty_ones() {
    for pool in pools() {
        for way in ways() {
            let none = Pipeline::merge_all(Vec::<
                Pipeline<heist::pipeline::Items<std::ops::Range<u8>>>,
            >::new());
            assert_eq!(way.of(none).run(&pool, drop).expect("an end").items, 0);
            let empty = Pipeline::merge_all([Pipeline::new(0..0), Pipeline::new(0..0)]);
            assert_eq!(way.of(empty).run(&pool, drop).expect("an end").items, 0);
        }
    }
}

fn feeds_and_an_iterator() {
    for pool in pools() {
        for way in ways() {
            let ledger = Ledger::new(3 * 40);
            let items: Vec<_> = (0..40).map(|n| ledger.item(n)).collect();
            let (sender, first) = fed(3);
            let (other, second) = fed(50);
            let mut results = Vec::new();
            thread::scope(|scope| {
                let ledger = &ledger;
                scope.spawn(move || (40..80).try_for_each(|n| sender.send(ledger.item(n))));
                scope.spawn(move || (80..120).try_for_each(|n| other.send(ledger.item(n))));
                let pipeline = first.merge(Pipeline::new(items)).merge(second);
                let pipeline = way.of(pipeline).batch(5).in_flight(3);
                pipeline.run(&pool, |item| results.push(item.number)).expect("an end");
            });
            ledger.assert_each_once();
            if way.ordered {
                for source in 0..3 {
                    let own = results.iter().copied().filter(|n| n / 40 == source);
                    assert!(own.eq(40 * source..40 * (source + 1)), "{way:?}");
                }
            }
            results.sort_unstable();
            assert!(results.into_iter().eq(0..120), "{way:?}");
        }
    }
}

/// All feeds are empty, and any of them may get the next item.
fn every_feed_wakes_the_run() {
    for pool in pools() {
        for way in ways() {
            let (senders, feeds): (Vec<_>, Vec<_>) = (0..3).map(|_| fed(1)).unzip();
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..12_usize {
                        senders[n % 4 % 3].send(n).expect("a run");
                        assert_eq!(delivered.recv_timeout(LONG), Ok(n));
                    }
                });
                let pipeline = way.of(Pipeline::merge_all(feeds).map(|n| n));
                pipeline.run(&pool, |n| deliver.send(n).expect("the test waits")).expect("an end");
            });
        }
    }
}

/// Says that it was dropped.
struct Flag<'f>(&'f AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn an_ended_source_is_dropped() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let dropped = AtomicBool::new(false);
        let flag = Flag(&dropped);
        let short = (0..2).inspect(move |_| _ = &flag);
        let check = |n: &i32| assert!(*n < 4 || dropped.load(Ordering::Acquire));
        let sources: [Box<dyn Iterator<Item = i32> + Send + '_>; 2] =
            [Box::new(short), Box::new((0..9).inspect(check))];
        let pipeline = Pipeline::merge_all(sources.map(Pipeline::new));
        assert_eq!(way.of(pipeline).run(&pool, drop).expect("an end").items, 11);
    }
}

fn a_source_fails() {
    for pool in pools() {
        for (way, failing) in ordered_ways().flat_map(|way| [0, 1, 2].map(|s| (way, s))) {
            let ledger = Ledger::new(90);
            let source = |s: usize| {
                let items: Vec<_> = (0..30).map(|n| ledger.item(3 * n + s)).collect();
                let fail = move |item: Tracked| {
                    if s == failing && item.number / 3 == 11 { Err("planned") } else { Ok(item) }
                };
                Pipeline::try_new(items.into_iter().map(fail))
            };
            let pipeline = Pipeline::merge_all([0, 1, 2].map(source)).batch(5);
            let mut results = Vec::new();
            let error = way.of(pipeline).run(&pool, |item| results.push(item.number));
            let (error, at) = (error.expect_err("planned"), 33 + failing);
            assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(at as u64)));
            assert!(results.into_iter().eq(0..at), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn a_source_panics() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let bad = (0..10).inspect(|n| assert!(*n < 6, "planned"));
        let pipeline = way.of(Pipeline::new(0..).merge(Pipeline::new(bad)).batch(4));
        let mut count = 0;
        let error = pipeline.run(&pool, |_| count += 1).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(13)), "{way:?}");
        assert!(error.to_string().contains("planned"), "{error}");
        assert_eq!(count, 13);
    }
}

fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Traffic::default();
            let source = |length| Pipeline::new((0..length).inspect(|_| traffic.take(1)));
            let pipeline = Pipeline::merge_all([100, 3, 50].map(source)).batch(5).in_flight(3);
            let report = way.of(pipeline).run(&pool, |_| traffic.deliver(1)).expect("an end");
            assert!(traffic.most() <= 3 * 5, "{way:?}: {}", traffic.most());
            assert_eq!((report.items, traffic.delivered()), (153, 153), "{way:?}");
            assert!(report.largest_in_flight <= 3);
        }
    }
}

fn weighed() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (sender, feed) = fed(5);
        let mut results = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || (100..150).try_for_each(|n| sender.send(n)));
            let pipeline = Pipeline::new(0..100).merge(feed).weigh(|n: &usize| n % 7, 10);
            let report = way.of(pipeline).batch(6).run(&pool, |n| results.push(n));
            assert!(report.expect("an end").largest_weight <= 10, "{way:?}");
        });
        results.sort_unstable();
        assert!(results.into_iter().eq(0..150), "{way:?}");
    }
}

fn cancelled() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (token, ledger) = (CancelToken::new(), Ledger::new(4));
        let (senders, feeds): (Vec<_>, Vec<_>) = (0..2).map(|_| fed(2)).unzip();
        let (deliver, delivered) = mpsc::channel();
        let (cancel, ledger_of, senders) = (&token, &ledger, &senders);
        thread::scope(|scope| {
            scope.spawn(move || {
                (0..2).for_each(|n| senders[n].send(ledger_of.item(n)).expect("room"));
                // Then the run waits for the feeds.
                (0..2).for_each(|_| delivered.recv_timeout(LONG).expect("a result"));
                cancel.cancel();
                (0..2).for_each(|n| {
                    senders[n].send(ledger_of.item(2 + n)).map_or_else(drop, |()| panic!("no run"))
                });
            });
            let pipeline = way.of(Pipeline::merge_all(feeds).cancel_on(&token));
            assert_cancelled(pipeline.run(&pool, |_| deliver.send(()).expect("the test waits")));
        });
        ledger.assert_each_once();
    }
}

fn results_dropped_in_the_middle() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let ledger = Ledger::new(200);
        let source =
            |from| Pipeline::new((from..from + 100).map(|n| ledger.item(n)).collect::<Vec<_>>());
        let (sender, feed) = fed(1);
        let merged =
            Pipeline::merge_all([source(0), source(100)]).merge(feed).batch(3).in_flight(2);
        let mut results = way.of(merged).results(&pool).expect("a run");
        (0..20).for_each(|_| drop(results.next().expect("a result").expect("no error")));
        drop(results);
        eventually("all is dropped", || ledger.dropped() == 200);
        ledger.assert_each_once();
        drop(sender);
    }
}

/// Two sources panic when they are dropped, and so do items.
fn drops_that_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("planned");
        }
    }
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let source = |length| {
            let bomb = Bomb;
            Pipeline::new((0..length).inspect(move |_| _ = &bomb))
        };
        let pipeline = way.of(Pipeline::merge_all([3, 20, 30].map(source)));
        assert_eq!(pipeline.run(&pool, drop).expect("the panics end in the run").items, 53);
        let pipeline =
            way.of(Pipeline::merge_all([50, 1, 50].map(source)).try_map(|_| Err::<u8, _>("no")));
        pipeline.run(&pool, drop).expect_err("no item passes");
        assert_works(&pool);
    }
}

fn progress_knows_the_sum() {
    let pool = Kind::WORK_STEALING.pool(2);
    let totals = Arc::new(Mutex::new(Vec::new()));
    let show = |totals: &Arc<Mutex<Vec<_>>>| {
        let totals = totals.clone();
        move |progress: &heist::pipeline::Progress| {
            totals.lock().expect("no panic").push(progress.total)
        }
    };
    let known = Pipeline::new(0..30).merge(Pipeline::new(0..12)).progress(show(&totals));
    known.run(&pool, drop).expect("an end");
    let unknown = Pipeline::new(0..30)
        .merge(Pipeline::new(iter::successors(Some(0), |n| (*n < 5).then_some(n + 1))))
        .progress(show(&totals));
    unknown.run(&pool, drop).expect("an end");
    let totals = totals.lock().expect("no panic");
    assert_eq!((totals.first(), totals.last()), (Some(&Some(42)), Some(&None)));
}

fn misplaced_settings() {
    let pool = Kind::WORK_STEALING.pool(1);
    let token = CancelToken::new();
    let plain = || Pipeline::new(0..3_usize);
    let misplaced = |setting: &str, outcome: Result<_, PipelineError>| match outcome {
        Err(PipelineError::Misplaced { setting: found, by: "merge" }) => assert_eq!(found, setting),
        other => panic!("{setting}: {other:?}"),
    };
    let run = |other| plain().merge(other).run(&pool, drop);
    misplaced("batch", run(plain().batch(64)));
    misplaced("in_flight", run(plain().in_flight(3)));
    misplaced("ordered", run(plain().ordered()));
    misplaced("steal", run(plain().steal(false)));
    misplaced("distribute", run(plain().distribute(Distribution::Hybrid)));
    misplaced("cancel_on", run(plain().cancel_on(&token)));
    misplaced("progress", run(plain().progress(|_| ())));
    misplaced("weigh", plain().merge(plain().weigh(|n| *n, 5)).run(&pool, drop));
    misplaced("weigh", plain().weigh(|n| *n, 5).merge(plain()).run(&pool, drop));
    misplaced("flush_after", plain().flush_after(LONG).merge(plain()).run(&pool, drop));
    let error = plain().merge(plain().ordered()).results(&pool).expect_err("misplaced");
    assert!(error.to_string().contains("call it on the pipeline that `merge` returns"), "{error}");
    // The settings of the first one hold.
    let report = plain().batch(2).merge(plain()).run(&pool, drop).expect("an end");
    assert_eq!(report.batches, 3);
}
