//! Streams of any executor are sources. A stream that is pending wakes the run.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{panic, thread};

use heist::CancelToken;
use heist::pipeline::{Pipeline, Stage};
use smol::stream::{self, Stream, StreamExt};
use tokio::runtime;

use crate::common::pipeline::{Traffic, assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, eventually};
use crate::{fed, pools, watched_tests};

watched_tests! {
    ready_items,
    a_channel_of_tokio,
    a_timer_of_tokio,
    one_at_a_time,
    yields_in_the_middle,
    merged_with_a_feed,
    in_chunks,
    weighed,
    a_stream_fails,
    a_stream_panics,
    bounded,
    cancelled_while_it_is_pending,
    results_dropped_while_it_is_pending,
    woken_after_the_end,
}

fn ready_items() {
    for pool in pools() {
        for way in ways() {
            let ledger = Ledger::new(200);
            let items: Vec<_> = (0..200).map(|n| ledger.item(n)).collect();
            let pipeline = Pipeline::from_stream(stream::iter(items)).batch(7).in_flight(3);
            let mut results = Vec::new();
            let report = way.of(pipeline).run(&pool, |item| results.push(item.number));
            let report = report.expect("an end");
            assert_eq!((report.items, report.batches), (200, 29));
            way.assert_all(results, &(0..200).collect::<Vec<_>>());
            ledger.assert_each_once();
        }
    }
}

fn tokio() -> runtime::Runtime {
    runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
}

/// The receiver of a channel as a stream.
struct Received<T>(tokio::sync::mpsc::Receiver<T>);

impl<T> Stream for Received<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}

fn a_channel_of_tokio() {
    let runtime = tokio();
    for pool in pools() {
        for way in ways() {
            let (sender, receiver) = tokio::sync::mpsc::channel(3);
            for task in 0..4 {
                let sender = sender.clone();
                runtime.spawn(async move {
                    for n in 0..25 {
                        sender.send(25 * task + n).await.expect("a run");
                        if n % 5 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                });
            }
            drop(sender);
            let pipeline = way.of(Pipeline::from_stream(Received(receiver)).batch(4).in_flight(2));
            let mut results = Vec::new();
            pipeline.run(&pool, |n| results.push(n)).expect("an end");
            results.sort_unstable();
            assert!(results.into_iter().eq(0..100), "{way:?}");
        }
    }
}

/// A timer that was made in a runtime is polled outside of it.
fn a_timer_of_tokio() {
    let runtime = tokio();
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let ticks = runtime.block_on(async {
            let mut interval = tokio::time::interval(Duration::from_millis(1));
            interval.reset();
            stream::poll_fn(move |context| interval.poll_tick(context).map(Some)).take(3)
        });
        let report = way.of(Pipeline::from_stream(ticks)).run(&pool, drop).expect("an end");
        assert_eq!(report.items, 3);
    }
}

/// Each item is sent when the result of the one before has come.
fn one_at_a_time() {
    let runtime = tokio();
    for pool in pools() {
        for way in ways() {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            let pipeline = way.of(Pipeline::from_stream(Received(receiver)));
            let mut results = pipeline.results(&pool).expect("a run").into_stream();
            runtime.block_on(async {
                for n in 0..20 {
                    sender.send(n).await.expect("a run");
                    assert_eq!(results.next().await.expect("a result").expect("no error"), n);
                }
                drop(sender);
                assert!(results.next().await.is_none());
            });
        }
    }
}

/// Is pending before each item, and wakes itself at once.
struct Yielding(std::ops::Range<usize>, bool);

impl Stream for Yielding {
    type Item = usize;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<usize>> {
        self.1 = !self.1;
        if self.1 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.0.next())
    }
}

fn yields_in_the_middle() {
    for pool in pools() {
        for way in ways() {
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::from_stream(Yielding(0..50, false)));
            pipeline.run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..50).collect::<Vec<_>>());
        }
    }
}

fn merged_with_a_feed() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (sender, feed) = fed(2);
        let mut results = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || (50..90).try_for_each(|n| sender.send(n)));
            let streams = Pipeline::from_stream(Yielding(0..50, false));
            let pipeline = way.of(streams.merge(feed).merge(Pipeline::new(90..120)));
            pipeline.run(&pool, |n| results.push(n)).expect("an end");
        });
        results.sort_unstable();
        assert!(results.into_iter().eq(0..120), "{way:?}");
    }
}

fn in_chunks() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let mut results = Vec::new();
        let pipeline = way.of(Pipeline::from_stream(Yielding(0..50, false)).chunks(7));
        pipeline.run(&pool, |chunk| results.push(chunk)).expect("an end");
        let items: Vec<_> = (0..50).collect();
        way.assert_all(results, &items.chunks(7).map(<[usize]>::to_vec).collect::<Vec<_>>());
    }
}

fn weighed() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let pipeline = Pipeline::from_stream(Yielding(0..200, false)).weigh(|n| n % 7, 10);
        let mut results = Vec::new();
        let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        assert!(report.largest_weight <= 10);
        way.assert_all(results, &(0..200).collect::<Vec<_>>());
    }
}

fn a_stream_fails() {
    for pool in pools() {
        for way in ordered_ways() {
            let fail = |n| if n == 33 { Err("planned") } else { Ok(n) };
            let pipeline = Pipeline::try_from_stream(Yielding(0..100, false).map(fail)).batch(5);
            let mut results = Vec::new();
            let error = way.of(pipeline).run(&pool, |n| results.push(n)).expect_err("planned");
            assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(33)));
            assert!(results.into_iter().eq(0..33), "{way:?}");
            assert_works(&pool);
        }
    }
}

fn a_stream_panics() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let fail = |n| assert!(n != 33, "planned");
        let pipeline = Pipeline::from_stream(Yielding(0..100, false).map(fail));
        let mut count = 0;
        let error = way.of(pipeline).run(&pool, |()| count += 1).expect_err("planned");
        assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(33)));
        assert_eq!(count, 33);
    }
}

fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Traffic::default();
            let counted = stream::iter(0..200).map(|_| traffic.take(1));
            let pipeline = way.of(Pipeline::from_stream(counted).batch(5).in_flight(3));
            pipeline.run(&pool, |()| traffic.deliver(1)).expect("an end");
            assert!(traffic.most() <= 3 * 5, "{way:?}: {}", traffic.most());
            assert_eq!(traffic.delivered(), 200);
        }
    }
}

fn cancelled_while_it_is_pending() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (token, polls) = (CancelToken::new(), AtomicUsize::new(0));
        let silent = stream::poll_fn(|_| {
            polls.fetch_add(1, Ordering::AcqRel);
            Poll::<Option<u8>>::Pending
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the stream is polled", || polls.load(Ordering::Acquire) > 0);
                token.cancel();
            });
            let pipeline = way.of(Pipeline::from_stream(silent).cancel_on(&token));
            assert_cancelled(pipeline.run(&pool, drop));
        });
        assert_eq!(polls.into_inner(), 1, "{way:?}: there is no polling");
    }
}

fn results_dropped_while_it_is_pending() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let mut results =
            way.of(Pipeline::from_stream(Received(receiver))).results(&pool).expect("a run");
        sender.blocking_send(1).expect("a run");
        assert_eq!(results.next().expect("a result").expect("no error"), 1);
        drop(results);
        eventually("the stream is dropped", || sender.is_closed());
    }
}

/// A waker may be used when the run has ended, and the pool has been dropped.
fn woken_after_the_end() {
    for way in ways() {
        let pool = Kind::WORK_STEALING.pool(2);
        let mut kept = Vec::new();
        let mut left = 0..5;
        let keeping = stream::poll_fn(|context| {
            kept.push(context.waker().clone());
            Poll::Ready(left.next())
        });
        way.of(Pipeline::from_stream(keeping)).run(&pool, drop).expect("an end");
        drop(pool);
        assert_eq!(kept.len(), 6);
        for waker in kept {
            panic::catch_unwind(AssertUnwindSafe(|| waker.wake())).expect("nothing to do");
        }
    }
}
