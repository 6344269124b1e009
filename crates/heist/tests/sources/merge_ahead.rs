//! Merged iterators and readers that are flushed have a thread each: one that blocks does not hold up the others.

use std::sync::mpsc;
use std::thread;

use heist::CancelToken;
use heist::pipeline::{Pipeline, Stage};

use crate::common::pipeline::{Traffic, assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, Tracked, eventually};
use crate::{LONG, NEVER, SOON, pools, watched_tests};

watched_tests! {
    a_source_that_blocks,
    each_item_once,
    full_batches,
    the_first_failure_ends_all,
    a_panic_ends_all,
    bounded,
    cancelled,
    results_dropped_while_all_sources_block,
    never_run,
}

/// The items of one source are delivered while the other one has none.
fn a_source_that_blocks() {
    for pool in pools() {
        for way in ways() {
            let (send, slow) = mpsc::channel();
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let mut fast: Vec<_> =
                        (0..20).map(|_| delivered.recv_timeout(LONG).expect("an item")).collect();
                    fast.sort_unstable();
                    assert!(fast.into_iter().eq(0..20));
                    send.send(20).expect("a run");
                    assert_eq!(delivered.recv_timeout(LONG), Ok(20));
                });
                let pipeline = Pipeline::new(slow).merge(Pipeline::new(0..20)).flush_after(SOON);
                let pipeline = way.of(pipeline.map(|n| n));
                pipeline.run(&pool, |n| deliver.send(n).expect("the test waits")).expect("an end");
            });
        }
    }
}

fn each_item_once() {
    for pool in pools() {
        for way in ways() {
            let ledger = Ledger::new(4 * 50);
            let source = |s: usize| {
                Pipeline::new((50 * s..50 * (s + 1)).map(|n| ledger.item(n)).collect::<Vec<_>>())
            };
            let pipeline =
                source(0).merge(source(1)).merge(Pipeline::merge_all([source(2), source(3)]));
            let mut results = Vec::new();
            let pipeline = way.of(pipeline.batch(7).in_flight(3).flush_after(SOON));
            pipeline.run(&pool, |item| results.push(item.number)).expect("an end");
            ledger.assert_each_once();
            if way.ordered {
                for source in 0..4 {
                    let own = results.iter().copied().filter(|n| n / 50 == source);
                    assert!(own.eq(50 * source..50 * (source + 1)), "{way:?}");
                }
            }
            results.sort_unstable();
            assert!(results.into_iter().eq(0..200), "{way:?}");
        }
    }
}

fn full_batches() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let pipeline = Pipeline::merge_all([40, 3, 40].map(|n| Pipeline::new(0..n))).batch(4);
        let report = way.of(pipeline.flush_after(NEVER)).run(&pool, drop).expect("an end");
        assert_eq!((report.items, report.batches), (83, 21), "{way:?}");
    }
}

/// The other source would go on for ever.
fn the_first_failure_ends_all() {
    for pool in pools() {
        for way in ordered_ways() {
            let bad = (0..).map(|n| if n == 17 { Err("planned") } else { Ok(n) });
            let endless = (0..).map(|_| Ok::<i32, &str>(-1));
            let pipeline =
                Pipeline::try_new(bad).merge(Pipeline::try_new(endless)).flush_after(NEVER);
            let mut results = Vec::new();
            let error =
                way.of(pipeline.batch(3)).run(&pool, |n| results.push(n)).expect_err("planned");
            assert_eq!(
                (error.stage(), error.item()),
                (Some(Stage::Source), Some(results.len() as u64))
            );
            assert!(results.into_iter().filter(|n| *n >= 0).eq(0..17), "{way:?}");
            assert_works(&pool);
        }
    }
}

fn a_panic_ends_all() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let ledger = Ledger::new(60);
        let items: Vec<_> = (0..60).map(|n| ledger.item(n)).collect();
        let mut left = items.into_iter();
        let first: Vec<_> = left.by_ref().take(30).collect();
        let bad = first.into_iter().inspect(|item| assert!(item.number != 20, "planned"));
        let all: [Box<dyn Iterator<Item = Tracked> + Send>; 2] = [Box::new(bad), Box::new(left)];
        let pipeline = Pipeline::merge_all(all.map(Pipeline::new)).batch(4).flush_after(NEVER);
        let error = way.of(pipeline).run(&pool, drop).expect_err("planned");
        assert_eq!(error.stage(), Some(Stage::Source));
        assert!(error.to_string().contains("planned"), "{error}");
        ledger.assert_each_once();
    }
}

/// One batch, and one item of each source, may be read ahead.
fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Traffic::default();
            let source = |n| Pipeline::new((0..n).inspect(|_| traffic.take(1)));
            let pipeline = Pipeline::merge_all([80, 20, 60].map(source)).batch(5).in_flight(3);
            way.of(pipeline.flush_after(SOON)).run(&pool, |_| traffic.deliver(1)).expect("an end");
            assert!(traffic.most() <= 3 * 5 + 5 + 3, "{way:?}: {}", traffic.most());
            assert_eq!((traffic.taken(), traffic.delivered()), (160, 160), "{way:?}");
        }
    }
}

fn cancelled() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let endless = || Pipeline::new(0_u64..);
        let pipeline = endless().merge(endless()).flush_after(SOON).cancel_on(&token);
        let mut count = 0;
        assert_cancelled(way.of(pipeline).run(&pool, |_| {
            count += 1;
            if count == 300 {
                token.cancel();
            }
        }));
        assert_eq!(count, 300);
    }
}

fn results_dropped_while_all_sources_block() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (senders, sources): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel()).unzip();
        let pipeline =
            Pipeline::merge_all(sources.into_iter().map(Pipeline::new)).flush_after(SOON);
        let mut results = way.of(pipeline).results(&pool).expect("a run");
        for (n, sender) in senders.iter().enumerate() {
            sender.send(n).expect("a run");
            assert_eq!(results.next().expect("a result").expect("no error"), n);
        }
        drop(results);
        for sender in senders {
            eventually("the source is dropped", || sender.send(0).is_err());
        }
    }
}

fn never_run() {
    let ledger = Ledger::new(6);
    let source = |n| Pipeline::new((n..n + 3).map(|n| ledger.item(n)).collect::<Vec<_>>());
    drop(source(0).merge(source(3)).flush_after(SOON).ordered());
    ledger.assert_each_once();
    let settings = Pipeline::new(0..3).merge(Pipeline::new(0..3)).flush_after(SOON).batch(0);
    settings.run(&Kind::WORK_STEALING.pool(1), drop).expect_err("no batch");
}
