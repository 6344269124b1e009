//! Async sinks get the results one after the other, in tokio and smol.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError, Stage};
use smol::future;
use tokio::runtime;

use crate::common::pipeline::{assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, eventually};
use crate::{fed, pools, watched_tests};

watched_tests! {
    spawned_in_tokio,
    on_one_thread,
    a_plain_closure,
    one_after_the_other,
    a_sink_that_fails,
    a_sink_that_panics,
    a_stage_fails,
    bounded,
    cancelled,
    dropped_while_the_sink_waits,
    from_a_stream_to_a_channel,
    wrong_settings,
}

fn spawned_in_tokio() {
    let runtime =
        runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    for pool in pools() {
        let runs: Vec<_> = ways()
            .map(|way| {
                let seen = Arc::new(Mutex::new(Vec::new()));
                let sink = Arc::clone(&seen);
                let pipeline = way.of(Pipeline::new(0..200).batch(7).in_flight(3).map(|n| 2 * n));
                let run = pipeline.run_async(&pool, async move |n| {
                    tokio::task::yield_now().await;
                    sink.lock().expect("no panic").push(n);
                });
                (way, seen, runtime.spawn(run))
            })
            .collect();
        for (way, seen, run) in runs {
            let report = runtime.block_on(run).expect("no panic").expect("an end");
            assert_eq!((report.items, report.results), (200, 200));
            let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
            way.assert_all(seen, &(0..200).map(|n| 2 * n).collect::<Vec<_>>());
        }
    }
}

/// The sink borrows what it changes, and keeps no other task from running.
fn on_one_thread() {
    let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
    for pool in pools() {
        for way in ways() {
            let (sender, feed) = fed(1);
            let mut seen = Vec::new();
            let run = way.of(feed).run_async(&pool, async |n| {
                tokio::task::yield_now().await;
                seen.push(n);
            });
            let send = async {
                for n in 0..30 {
                    sender.send_async(n).await.expect("a run");
                }
                drop(sender);
            };
            let (ended, ()) = runtime.block_on(future::zip(run, send));
            ended.expect("an end");
            way.assert_all(seen, &(0..30).collect::<Vec<_>>());
        }
    }
}

fn a_plain_closure() {
    let pool = Kind::WORK_STEALING.pool(2);
    let count = AtomicUsize::new(0);
    let count = &count;
    let sink = |n: usize| async move {
        count.fetch_add(n, Ordering::AcqRel);
    };
    let report = smol::block_on(Pipeline::new(0..100).run_async(&pool, sink)).expect("an end");
    assert_eq!((report.results, count.load(Ordering::Acquire)), (100, 4950));
}

fn one_after_the_other() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let run = way.of(Pipeline::new(0..100).batch(3)).run_async(&pool, async |_| {
            most.fetch_max(inside.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
            future::yield_now().await;
            inside.fetch_sub(1, Ordering::AcqRel);
        });
        smol::block_on(run).expect("an end");
        assert_eq!(most.into_inner(), 1);
    }
}

fn a_sink_that_fails() {
    for pool in pools() {
        for way in ordered_ways() {
            let ledger = Ledger::new(100);
            let items: Vec<_> = (0..100).map(|n| ledger.item(n)).collect();
            let mut count = 0;
            let run = way.of(Pipeline::new(items).batch(4)).try_run_async(&pool, async |item| {
                future::yield_now().await;
                if item.number == 42 {
                    return Err("planned");
                }
                count += 1;
                Ok(())
            });
            let error = smol::block_on(run).expect_err("planned");
            assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(42)));
            assert_eq!((error.batch(), count), (Some(10), 42));
            assert_eq!(error.report().expect("a report").results, 42);
            // The future does not wait for the workers.
            eventually("all is dropped", || ledger.dropped() == 100);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
    // Which item it was is not known.
    let pool = Kind::WORK_STEALING.pool(2);
    let run = Pipeline::new(0..9).batch(3).filter(|n| n % 2 == 0).ordered();
    let run = run.try_run_async(&pool, async |n| if n == 4 { Err("planned") } else { Ok(()) });
    let error = smol::block_on(run).expect_err("planned");
    assert_eq!((error.item(), error.batch()), (None, Some(1)));
}

fn a_sink_that_panics() {
    let pool = Kind::WORK_STEALING.pool(2);
    for (way, at_once) in ordered_ways().flat_map(|way| [false, true].map(|at_once| (way, at_once)))
    {
        let mut count = 0;
        let run = way.of(Pipeline::new(0..100).batch(4)).run_async(&pool, |n: i32| {
            assert!(!at_once || n != 42, "planned");
            count += 1;
            async move {
                future::yield_now().await;
                assert!(n != 42, "planned");
            }
        });
        let error = smol::block_on(run).expect_err("planned");
        assert!(matches!(error, PipelineError::Panicked { .. }));
        assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(42)));
        assert_eq!(count, if at_once { 42 } else { 43 });
    }
}

fn a_stage_fails() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ordered_ways() {
        let fail = |n| if n == 42 { Err("planned") } else { Ok(n) };
        let mut seen = Vec::new();
        let pipeline = way.of(Pipeline::new(0..100).batch(5).try_map(fail));
        let error = smol::block_on(pipeline.run_async(&pool, async |n| seen.push(n)));
        assert_eq!(error.expect_err("planned").item(), Some(42));
        assert!(seen.into_iter().eq(0..40), "{way:?}");
    }
}

/// A batch is no longer in flight when the sink is called with its last result.
fn bounded() {
    for pool in pools() {
        for way in ways() {
            let traffic = Arc::new(crate::common::pipeline::Traffic::default());
            let taken = Arc::clone(&traffic);
            let source = (0..200).inspect(move |_| taken.take(1));
            let pipeline = way.of(Pipeline::new(source).batch(5).in_flight(3));
            let run = pipeline.run_async(&pool, async |_| {
                future::yield_now().await;
                traffic.deliver(1);
            });
            smol::block_on(run).expect("an end");
            assert!(traffic.most() <= 3 * 5 + 1, "{way:?}: {}", traffic.most());
        }
    }
}

fn cancelled() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let mut count = 0;
        let endless = way.of(Pipeline::new(0_u64..).cancel_on(&token));
        let run = endless.run_async(&pool, async |_| {
            future::yield_now().await;
            count += 1;
            if count == 100 {
                token.cancel();
            }
        });
        assert_cancelled(smol::block_on(run));
        assert_eq!(count, 100);
    }
}

fn dropped_while_the_sink_waits() {
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let ledger = Ledger::new(50);
        let items: Vec<_> = (0..50).map(|n| ledger.item(n)).collect();
        let mut run =
            Box::pin(way.of(Pipeline::new(items).batch(2)).run_async(&pool, async |_item| {
                future::pending::<()>().await;
            }));
        smol::block_on(future::poll_fn(|context| {
            // It has a result when a first one was made.
            assert!(run.as_mut().poll(context).is_pending());
            Poll::Ready(())
        }));
        drop(run);
        eventually("all is dropped", || ledger.dropped() == 50);
        ledger.assert_each_once();
    }
}

fn from_a_stream_to_a_channel() {
    let runtime =
        runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let pool = Kind::WORK_STEALING.pool(2);
    for way in ways() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
        let squares = Pipeline::from_stream(smol::stream::iter(0..100)).map(|n: u64| n * n);
        let run =
            way.of(squares.batch(3)).try_run_async(&pool, async move |n| sender.send(n).await);
        let run = runtime.spawn(run);
        let mut seen = Vec::new();
        runtime.block_on(async {
            while let Some(n) = receiver.recv().await {
                seen.push(n);
            }
            run.await.expect("no panic").expect("an end");
        });
        way.assert_all(seen, &(0..100).map(|n| n * n).collect::<Vec<_>>());
        // A receiver that is gone is a failure of the sink.
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        drop(receiver);
        let run = Pipeline::new(0..9).try_run_async(&pool, async |n| sender.send(n).await);
        assert_eq!(runtime.block_on(run).expect_err("no receiver").stage(), Some(Stage::Sink));
    }
}

fn wrong_settings() {
    let pool = Kind::WORK_STEALING.pool(1);
    let run = Pipeline::new(0..9).batch(0).run_async(&pool, async |_| ());
    assert!(matches!(smol::block_on(run), Err(PipelineError::ZeroBatch)));
}
