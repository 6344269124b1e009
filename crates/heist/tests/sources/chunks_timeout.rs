//! A chunk is also complete when its first item is old enough.

use std::sync::mpsc::{self, Receiver};
use std::thread;

use heist::CancelToken;
use heist::pipeline::{Pipeline, Stage};

use crate::common::pipeline::{Traffic, assert_cancelled, ordered_ways, ways};
use crate::common::{Kind, Ledger};
use crate::{LONG, NEVER, SOON, fed, pools, watched_tests};

watched_tests! {
    alone_from_a_sender,
    alone_from_an_iterator,
    complete_ones_do_not_wait,
    the_last_one_does_not_wait,
    no_more_than_the_feed_has_room_for,
    in_order_and_complete,
    of_merged_sources,
    a_source_fails,
    bounded,
    cancelled,
}

/// Sends each item when the chunk of the one before has been delivered. Nothing else is sent meanwhile.
fn one_by_one(send: impl Fn(usize), delivered: &Receiver<Vec<usize>>) {
    for n in 0..5 {
        send(n);
        assert_eq!(delivered.recv_timeout(LONG), Ok(vec![n]), "an item is held back");
    }
}

fn alone_from_a_sender() {
    for pool in pools() {
        for way in ways() {
            let (sender, feed) = fed(100);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || one_by_one(|n| sender.send(n).expect("a run"), &delivered));
                let pipeline = way.of(feed.chunks_timeout(10, SOON));
                pipeline
                    .run(&pool, |chunk| deliver.send(chunk).expect("the test waits"))
                    .expect("an end");
            });
        }
    }
}

fn alone_from_an_iterator() {
    for pool in pools() {
        for way in ways() {
            let (send, source) = mpsc::channel();
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || one_by_one(|n| send.send(n).expect("a run"), &delivered));
                let pipeline = way.of(Pipeline::new(source).chunks_timeout(10, SOON));
                pipeline
                    .run(&pool, |chunk| deliver.send(chunk).expect("the test waits"))
                    .expect("an end");
            });
        }
    }
}

/// The chunk is delivered when it is full, while its sender stays.
fn complete_ones_do_not_wait() {
    for pool in pools() {
        for way in ways() {
            let (sender, feed) = fed(100);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..5 {
                        (3 * n..3 * n + 3).for_each(|n| sender.send(n).expect("a run"));
                        assert_eq!(
                            delivered.recv_timeout(LONG),
                            Ok(vec![3 * n, 3 * n + 1, 3 * n + 2])
                        );
                    }
                });
                let pipeline = way.of(feed.chunks_timeout(3, NEVER));
                pipeline
                    .run(&pool, |chunk| deliver.send(chunk).expect("the test waits"))
                    .expect("an end");
            });
        }
    }
}

fn the_last_one_does_not_wait() {
    for pool in pools() {
        for way in ways() {
            let items: Vec<_> = (0..23).collect();
            let expected: Vec<_> = items.chunks(5).map(<[i32]>::to_vec).collect();
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::new(items).chunks_timeout(5, NEVER));
            pipeline.run(&pool, |chunk| results.push(chunk)).expect("an end");
            way.assert_all(results, &expected);
            let (sender, feed) = fed(100);
            (0..7).for_each(|n| sender.send(n).expect("room"));
            drop(sender);
            let mut results = Vec::new();
            let pipeline = way.of(feed.chunks_timeout(5, NEVER));
            pipeline.run(&pool, |chunk| results.push(chunk)).expect("an end");
            way.assert_all(results, &[vec![0, 1, 2, 3, 4], vec![5, 6]]);
        }
    }
}

fn no_more_than_the_feed_has_room_for() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (sender, feed) = fed(3);
        let mut results = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || (0..40).try_for_each(|n| sender.send(n)));
            let pipeline = way.of(feed.chunks_timeout(10, NEVER));
            pipeline.run(&pool, |chunk| results.extend(chunk)).expect("an end");
        });
        results.sort_unstable();
        assert!(results.into_iter().eq(0..40), "{way:?}");
    }
}

/// Where the chunks end depends on the time. What is in them does not.
fn in_order_and_complete() {
    for pool in pools() {
        for way in ordered_ways() {
            let (sender, feed) = fed(7);
            let mut results = Vec::new();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..60 {
                        sender.send(n).expect("a run");
                        if n % 10 == 0 {
                            thread::sleep(2 * SOON);
                        }
                    }
                });
                let pipeline = way.of(feed.chunks_timeout(4, SOON).batch(3));
                pipeline.run(&pool, |chunk| results.push(chunk)).expect("an end");
            });
            assert!(results.iter().all(|chunk| (1..=4).contains(&chunk.len())), "{results:?}");
            assert!(results.concat().into_iter().eq(0..60), "{way:?}");
        }
    }
}

fn of_merged_sources() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let merged = Pipeline::new(0..30).merge(Pipeline::new(30..41));
        let (mut results, mut sizes) = (Vec::new(), Vec::new());
        let pipeline = way.of(merged.chunks_timeout(10, NEVER));
        let end = pipeline.run(&pool, |chunk| {
            sizes.push(chunk.len());
            results.extend(chunk);
        });
        end.expect("an end");
        results.sort_unstable();
        sizes.sort_unstable();
        assert!(results.into_iter().eq(0..41), "{way:?}");
        assert_eq!(sizes, [1, 10, 10, 10, 10]);
    }
}

fn a_source_fails() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let source = (0..30).map(|n| if n == 17 { Err("planned") } else { Ok(n) });
        let pipeline = way.of(Pipeline::try_new(source).chunks_timeout(5, NEVER));
        let mut results = Vec::new();
        let error = pipeline.run(&pool, |chunk| results.push(chunk)).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(4)), "{way:?}");
        assert_eq!(results.last(), Some(&vec![15, 16]));
        assert!(results.concat().into_iter().eq(0..17), "{way:?}");
    }
}

/// One chunk and one item may be read ahead.
fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Traffic::default();
            let source = (0..200).inspect(|_| traffic.take(1));
            let pipeline = Pipeline::new(source).chunks_timeout(4, SOON).batch(2).in_flight(3);
            way.of(pipeline).run(&pool, |chunk| traffic.deliver(chunk.len())).expect("an end");
            assert!(traffic.most() <= 4 * 2 * 3 + 4 + 1, "{way:?}: {}", traffic.most());
            assert_eq!(traffic.delivered(), 200);
        }
    }
}

fn cancelled() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (token, ledger) = (CancelToken::new(), Ledger::new(3));
        let (sender, feed) = fed(100);
        (0..3).for_each(|n| sender.send(ledger.item(n)).expect("room"));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(SOON);
                token.cancel();
            });
            let pipeline = way.of(feed.chunks_timeout(10, NEVER).cancel_on(&token));
            assert_cancelled(pipeline.run(&pool, |_| panic!("no chunk is complete")));
        });
        ledger.assert_each_once();
    }
}
