//! The results of a pipeline are a stream: in tokio and smol, complete, in order, and until the first error.

use std::num::NonZero;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError};
use smol::stream::{Stream, StreamExt};

use crate::common::pipeline::{assert_cancelled, assert_works, ways};
use crate::common::{Kind, Ledger, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    in_tokio,
    in_smol,
    one_at_a_time,
    several_on_one_thread,
    dropped_in_the_middle,
    failing,
    cancelled_while_it_waits,
    polled_and_iterated,
}

async fn check<S: Stream<Item = Result<usize, PipelineError>> + Unpin>(
    mut results: S,
    is_ordered: bool,
) {
    let mut all = Vec::new();
    while let Some(result) = results.next().await {
        all.push(result.expect("no error"));
    }
    if !is_ordered {
        all.sort_unstable();
    }
    assert!(all.into_iter().eq((0..500).map(|n| 2 * n)));
    assert!(results.next().await.is_none());
}

fn in_tokio(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let streams: Vec<_> = ways()
            .map(|way| {
                let doubled = Pipeline::new(0..500).batch(7).in_flight(9).map(|n| 2 * n);
                let results = way.of(doubled).results(&pool).expect("a run").into_stream();
                runtime.spawn(check(results, way.ordered))
            })
            .collect();
        runtime.block_on(async {
            for stream in streams {
                stream.await.expect("no panic");
            }
        });
    }
}

fn in_smol(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let doubled = Pipeline::new(0..500).batch(7).in_flight(2).map(|n| 2 * n);
            let results = way.of(doubled).results(&pool).expect("a run").into_stream();
            smol::block_on(check(results, way.ordered));
        }
    }
}

/// Each item is sent when the result of the one before has come.
fn one_at_a_time(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
            let mut results = way.of(pipeline).results(&pool).expect("a run").into_stream();
            smol::block_on(async {
                for n in 0..20 {
                    sender.send_async(n).await.expect("a run");
                    assert_eq!(results.next().await.expect("a result").expect("no error"), n);
                }
                drop(sender);
                assert!(results.next().await.is_none());
            });
        }
    }
}

/// A stream that waits does not keep the thread from the others.
fn several_on_one_thread(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
        let (mut first, second) = (
            way.of(pipeline).results(&pool).expect("a run").into_stream(),
            way.of(Pipeline::new(0..500).map(|n| 2 * n))
                .results(&pool)
                .expect("a run")
                .into_stream(),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let waits = async { first.next().await.expect("a result").expect("no error") };
            let sends = async {
                check(second, way.ordered).await;
                sender.send_async(7).await.expect("a run");
            };
            let (seven, ()) = smol::future::zip(waits, sends).await;
            assert_eq!(seven, 7);
        });
    }
}

fn dropped_in_the_middle(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let ledger = Ledger::new(300);
        let items: Vec<_> = (0..300).map(|n| ledger.item(n)).collect();
        let mut results =
            way.of(Pipeline::new(items).batch(3)).results(&pool).expect("a run").into_stream();
        smol::block_on(async {
            for _ in 0..10 {
                results.next().await.expect("a result").expect("no error");
            }
        });
        drop(results);
        eventually("all is dropped", || ledger.dropped() == 300);
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

fn failing(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| way.ordered) {
            let fail = |n| if n == 33 { Err("planned") } else { Ok(n) };
            let pipeline = Pipeline::new(0..100).batch(5).try_map(fail);
            let mut results = way.of(pipeline).results(&pool).expect("a run").into_stream();
            smol::block_on(async {
                for n in 0..30 {
                    assert_eq!(results.next().await.expect("a result").expect("no error"), n);
                }
                let error = results.next().await.expect("an error").expect_err("33");
                assert_eq!(error.item(), Some(33));
                assert!(results.next().await.is_none());
            });
        }
    }
}

fn cancelled_while_it_waits(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let (sender, pipeline) = Pipeline::<heist::pipeline::Feed<u32>>::fed(NonZero::<usize>::MIN);
        let mut results =
            way.of(pipeline.cancel_on(&token)).results(&pool).expect("a run").into_stream();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut results).poll_next(&mut context).is_pending());
        let (begin, begun) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                begun.recv().expect("the test begins");
                token.cancel();
            });
            begin.send(()).expect("a thread");
            assert_cancelled(smol::block_on(results.next()).expect("an error"));
        });
        assert!(smol::block_on(results.next()).is_none());
        drop(sender);
    }
}

/// A stream may be used as an iterator after a poll has found nothing.
fn polled_and_iterated(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
        let mut results = way.of(pipeline).results(&pool).expect("a run").into_stream();
        let mut context = Context::from_waker(Waker::noop());
        for n in 0..20 {
            assert!(matches!(Pin::new(&mut results).poll_next(&mut context), Poll::Pending));
            sender.send(n).expect("a run");
            let next = if n % 2 == 0 {
                let mut iterator = results.into_results();
                let next = iterator.next();
                results = iterator.into_stream();
                next
            } else {
                smol::block_on(results.next())
            };
            assert_eq!(next.expect("a result").expect("no error"), n);
        }
    }
}
