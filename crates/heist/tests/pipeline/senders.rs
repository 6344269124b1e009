//! The contract of senders that wait: they are served in order, each item is sent once or returned, and a sender that gives up
//! keeps no other one waiting.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{
    Feed, Pipeline, PipelineError, SendError, SendTimeoutError, Sender, TrySendError,
};

use crate::common::pipeline::{assert_cancelled, ordered_ways, ways};
use crate::common::{Kind, Ledger, for_every_strategy, once};

for_every_strategy! {
    in_the_order_of_the_line,
    many,
    tries,
    in_time,
    too_late,
    a_timeout_on_a_worker,
    a_future_that_is_dropped,
    a_future_that_is_never_polled,
    in_tokio,
    in_smol,
    cancelled_futures,
    a_weight_function_that_panics,
    a_waker_that_panics,
    released_when_cancelled,
    released_when_the_pool_stops,
    released_when_the_sink_cancels,
    futures_are_woken_by_a_failure,
    released_by_a_later_batch_that_fails,
}

once! {
    far_in_the_future,
    closed_while_they_wait,
    futures_on_drop_of_the_pipeline,
}

fn fed<T>(capacity: usize) -> (Sender<T>, Pipeline<Feed<T>>) {
    Pipeline::fed(NonZero::new(capacity).expect("some room"))
}

/// A future that owns its sender.
async fn send_by<T: Send>(sender: Sender<T>, item: T) -> Result<(), SendError<T>> {
    sender.send_async(item).await
}

/// A waker that counts.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Futures get into the line when they are first polled, and their items come out in that order.
fn in_the_order_of_the_line(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways().filter(|way| way.ordered) {
        let (sender, pipeline) = fed(2);
        let mut waiting: Vec<_> = (0..10).map(|n| Box::pin(send_by(sender.clone(), n))).collect();
        let mut context = Context::from_waker(Waker::noop());
        for (n, future) in waiting.iter_mut().enumerate() {
            let is_sent = future.as_mut().poll(&mut context).is_ready();
            assert_eq!(is_sent, n < 2);
        }
        let mut results = Vec::new();
        let run = way.of(pipeline.batch(3).weigh(|_| 1, 4));
        thread::scope(|scope| {
            let run = scope.spawn(|| run.run(&pool, |n| results.push(n)).expect("an end"));
            waiting.drain(2..).for_each(|future| smol::block_on(future).expect("a run"));
            drop(waiting);
            drop(sender);
            run.join().expect("no panic");
        });
        assert!(results.into_iter().eq(0..10), "{way:?}");
    }
}

/// Many senders of each kind, and little room.
fn many(kind: Kind) {
    let pool = kind.pool(2);
    for (way, capacity) in ways().flat_map(|way| [1, 10].map(|room| (way, room))) {
        for limit in [None, Some(9)] {
            let (sender, pipeline) = fed(capacity);
            let mut results = Vec::new();
            thread::scope(|scope| {
                for name in 0..30 {
                    let sender = sender.clone();
                    scope.spawn(move || send_all(&sender, 10 * name));
                }
                drop(sender);
                let mut sink = |n| results.push(n);
                let pipeline = pipeline.batch(7);
                match limit {
                    None => way.of(pipeline).run(&pool, &mut sink),
                    Some(limit) => way.of(pipeline.weigh(|n| n % 5, limit)).run(&pool, &mut sink),
                }
                .expect("an end");
            });
            results.sort_unstable();
            assert!(results.into_iter().eq(0..300), "{way:?}");
        }
    }
}

/// Sends ten numbers, each in a way of its own.
fn send_all(sender: &Sender<usize>, first: usize) {
    for n in first..first + 10 {
        match n % 3 {
            0 => sender.send(n).expect("a run"),
            1 => sender.send_timeout(n, Duration::from_secs(100)).expect("a run"),
            _ => smol::block_on(sender.send_async(n)).expect("a run"),
        }
    }
}

fn tries(kind: Kind) {
    let pool = kind.pool(1);
    let (sender, pipeline) = fed(2);
    assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    let mut results = pipeline.batch(1).ordered().results(&pool).expect("a start");
    assert_eq!(results.next().expect("a result").expect("no error"), 1);
    drop(results);
    let error = sender.try_send(4).expect_err("no run");
    assert_eq!(error, TrySendError::Closed(4));
    assert!(!error.to_string().contains('4') && !format!("{error:?}").contains('4'));
    assert_eq!(TrySendError::from(SendError(5)).into_inner(), 5);
}

fn in_time(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(1);
        let mut results = Vec::new();
        thread::scope(|scope| {
            let send = move |n| sender.send_timeout(n, Duration::from_secs(100));
            scope.spawn(move || (0..100).try_for_each(send).expect("a run"));
            way.of(pipeline.batch(3)).run(&pool, |n| results.push(n)).expect("an end");
        });
        way.assert_all(results, &(0..100).collect::<Vec<_>>());
    }
}

/// Senders that give up leave the line, and the others stay in it.
fn too_late(kind: Kind) {
    let ledger = Ledger::new(4);
    let (sender, pipeline) = fed(1);
    sender.send(ledger.item(0)).expect("room");
    let mut stays = Box::pin(send_by(sender.clone(), ledger.item(1)));
    assert!(stays.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    for (n, timeout) in [(2, Duration::ZERO), (3, Duration::from_millis(2))] {
        let error = sender.send_timeout(ledger.item(n), timeout).expect_err("no run");
        assert!(matches!(&error, SendTimeoutError::Timeout(item) if item.number == n));
        assert!(!error.to_string().is_empty());
    }
    let mut results = Vec::new();
    thread::scope(|scope| {
        let pool = kind.pool(1);
        let results = &mut results;
        let run = scope.spawn(move || {
            pipeline.ordered().run(&pool, |item| results.push(item.number)).expect("an end")
        });
        smol::block_on(stays).expect("a run");
        drop(sender);
        run.join().expect("no panic");
    });
    assert_eq!(results, [0, 1]);
    ledger.assert_each_once();
}

fn far_in_the_future() {
    let (sender, pipeline) = fed(1);
    assert_eq!(sender.send_timeout(1, Duration::MAX), Ok(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(sender.send_timeout(2, Duration::MAX), Err(SendTimeoutError::Closed(2)));
        });
        drop(pipeline);
    });
}

/// The worker processes what there is of the pipeline while it waits.
fn a_timeout_on_a_worker(kind: Kind) {
    let pool = kind.pool(1);
    let (sender, pipeline) = fed(1);
    pool.spawn(move || {
        for n in 0..50 {
            sender.send_timeout(n, Duration::from_secs(100)).expect("a run");
        }
    });
    let mut sum = 0;
    pipeline.batch(1).run(&pool, |n: u64| sum += n).expect("an end");
    assert_eq!(sum, 49 * 50 / 2);
}

fn closed_while_they_wait() {
    let ledger = Ledger::new(4);
    let (sender, pipeline) = fed(1);
    sender.send(ledger.item(0)).expect("room");
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut future = pin!(sender.send_async(ledger.item(1)));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    thread::scope(|scope| {
        let send = scope.spawn(|| sender.send(ledger.item(2)));
        let (sender, item) = (&sender, ledger.item(3));
        let timed = scope.spawn(move || sender.send_timeout(item, Duration::from_secs(100)));
        drop(pipeline);
        assert_eq!(send.join().expect("no panic").expect_err("no run").0.number, 2);
        let error = timed.join().expect("no panic").expect_err("no run");
        assert!(matches!(error, SendTimeoutError::Closed(item) if item.number == 3));
    });
    assert_eq!(count.0.load(Ordering::Acquire), 1);
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Err(SendError(item))) if item.number == 1));
    ledger.assert_each_once();
}

/// Its item is dropped, its task is not woken, and the sender behind it is served.
fn a_future_that_is_dropped(kind: Kind) {
    let ledger = Ledger::new(3);
    let pool = kind.pool(1);
    let (sender, pipeline) = fed(1);
    sender.send(ledger.item(0)).expect("room");
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let mut first = Box::pin(send_by(sender.clone(), ledger.item(1)));
    let mut second = Box::pin(send_by(sender.clone(), ledger.item(2)));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    drop(first);
    assert_eq!(count.0.load(Ordering::Acquire), 0);
    let mut results = pipeline.batch(1).ordered().results(&pool).expect("a start");
    let mut next = || results.next().expect("a result").expect("no error").number;
    assert_eq!((next(), next()), (0, 2));
    assert!(matches!(second.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
    assert_eq!(count.0.load(Ordering::Acquire), 1);
    drop(second);
    drop(sender);
    assert!(results.next().is_none());
    ledger.assert_each_once();
}

fn a_future_that_is_never_polled(kind: Kind) {
    let (sender, pipeline) = fed(1);
    drop(sender.send_async(1));
    assert_eq!(sender.try_send(2), Ok(()));
    drop(sender);
    let mut results = Vec::new();
    pipeline.run(&kind.pool(1), |n| results.push(n)).expect("an end");
    assert_eq!(results, [2]);
}

fn futures_on_drop_of_the_pipeline() {
    let (sender, pipeline) = fed(1);
    smol::block_on(async {
        sender.send_async(1).await.expect("room");
        drop(pipeline);
        assert_eq!(sender.send_async(2).await, Err(SendError(2)));
    });
}

/// Sends from several tasks of an executor, which `spawn` starts.
fn from_tasks(kind: Kind, mut spawn: impl FnMut(Sender<usize>, usize)) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(2);
        for first in 0..4 {
            spawn(sender.clone(), first * 50);
        }
        drop(sender);
        let mut results = Vec::new();
        way.of(pipeline.batch(4)).run(&pool, |n| results.push(n)).expect("an end");
        results.sort_unstable();
        assert!(results.into_iter().eq(0..200), "{way:?}");
    }
}

async fn send_fifty(sender: Sender<usize>, first: usize) {
    for n in first..first + 50 {
        sender.send_async(n).await.expect("a run");
    }
}

fn in_tokio(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    from_tasks(kind, |sender, first| drop(runtime.spawn(send_fifty(sender, first))));
}

fn in_smol(kind: Kind) {
    from_tasks(kind, |sender, first| smol::spawn(send_fifty(sender, first)).detach());
}

/// Tasks that are aborted while they wait: each item is delivered or dropped, and the run ends.
fn cancelled_futures(kind: Kind) {
    let pool = kind.pool(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    for way in ways() {
        let ledger = Ledger::new(200);
        let (sender, pipeline) = fed(1);
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                let (sender, item) = (sender.clone(), ledger.item(n));
                runtime.spawn(async move { sender.send_async(item).await.is_ok() })
            })
            .collect();
        drop(sender);
        tasks.iter().step_by(2).for_each(|task| task.abort());
        let mut results = 0;
        way.of(pipeline.batch(3)).run(&pool, |_| results += 1).expect("an end");
        for task in tasks {
            // What was aborted may have been sent before.
            assert!(runtime.block_on(task).unwrap_or(true), "{way:?}");
        }
        assert!(results >= 100, "{way:?}: {results}");
        ledger.assert_each_once();
    }
}

/// What the feed has taken for the weighing is dropped with the run, and senders that wait receive an error.
fn a_weight_function_that_panics(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let ledger = Ledger::new(60);
        let (sender, pipeline) = fed(20);
        let token = CancelToken::new();
        thread::scope(|scope| {
            let items: Vec<_> = (0..60).map(|n| ledger.item(n)).collect();
            let send = move || {
                let sent = items.into_iter().map(|item| sender.send(item).is_ok());
                sent.filter(|sent| *sent).count()
            };
            let sent = scope.spawn(send);
            let weigh = |item: &crate::common::Tracked| {
                if item.number == 7 { panic!("planned") } else { 1 }
            };
            let pipeline = pipeline.batch(5).weigh(weigh, 100).cancel_on(&token);
            way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert!(sent.join().expect("no panic") < 60, "{way:?}");
        });
        ledger.assert_each_once();
    }
    let (sender, pipeline) = fed::<u8>(1);
    let token = CancelToken::new();
    token.cancel();
    assert_cancelled(pipeline.weigh(|_| 1, 1).cancel_on(&token).run(&pool, drop));
    assert_eq!(sender.try_send(1), Err(TrySendError::Closed(1)));
}

/// Sends until the run does not take any more. Returns how many items it has taken.
fn send_until_refused(sender: &Sender<usize>) -> usize {
    (0..).take_while(|n| sender.send(*n).is_ok()).count()
}

/// A sender that waits is released by the cancellation, before the iterator over the results is used again or dropped.
fn released_when_cancelled(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(1);
        let token = CancelToken::new();
        let pipeline = way.of(pipeline.batch(1).in_flight(1).cancel_on(&token));
        let mut results = pipeline.results(&pool).expect("a start");
        let feeder = thread::spawn(move || send_until_refused(&sender));
        results.next().expect("a result").expect("no error");
        token.cancel();
        assert!(feeder.join().expect("no panic") > 0, "{way:?}");
        assert_cancelled(results.next().expect("the end"));
        assert!(results.next().is_none());
    }
}

/// A task of the pool sends, and the pool waits for that task while it stops.
fn released_when_the_pool_stops(kind: Kind) {
    for way in ways() {
        let pool = kind.pool(2);
        let (sender, pipeline) = fed(1);
        let mut results = way.of(pipeline.batch(1).in_flight(1)).results(&pool).expect("a start");
        let feeder = pool.spawn(move || send_until_refused(&sender));
        results.next().expect("a result").expect("no error");
        pool.stop();
        assert!(feeder.join().expect("a task that ends") > 0, "{way:?}");
        let end = results.next().expect("the end");
        assert!(matches!(end, Err(PipelineError::Stopped { .. })), "{way:?}: {end:?}");
    }
}

fn released_when_the_sink_cancels(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(1);
        let token = CancelToken::new();
        let mut feeder = Some(thread::spawn(move || send_until_refused(&sender)));
        let sink = |_| {
            token.cancel();
            let feeder = feeder.take().expect("the sink is called once");
            assert!(feeder.join().expect("no panic") > 0, "{way:?}");
        };
        let pipeline = pipeline.batch(1).in_flight(1).cancel_on(&token);
        assert_cancelled(way.of(pipeline).run(&pool, sink));
    }
}

fn futures_are_woken_by_a_failure(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (sender, pipeline) = fed(1);
        let token = CancelToken::new();
        let pipeline = way.of(pipeline.batch(1).in_flight(1).cancel_on(&token));
        let results = pipeline.results(&pool).expect("a start");
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        // One item may be in flight, and one in the feed, as long as no result is taken.
        let mut futures: Vec<_> = (0..3).map(|n| Box::pin(send_by(sender.clone(), n))).collect();
        let mut context = Context::from_waker(Waker::noop());
        futures[..2].iter_mut().for_each(|future| _ = future.as_mut().poll(&mut context));
        let mut context = Context::from_waker(&waker);
        assert!(futures[2].as_mut().poll(&mut context).is_pending(), "{way:?}");
        token.cancel();
        assert_eq!(count.0.load(Ordering::Acquire), 1, "{way:?}");
        let polled = futures[2].as_mut().poll(&mut context);
        assert!(matches!(polled, Poll::Ready(Err(SendError(2)))), "{way:?}");
        drop(results);
    }
}

/// In order, a batch before the failed one is still delivered. Its stage sends, and must not wait for room that never comes.
fn released_by_a_later_batch_that_fails(kind: Kind) {
    let pool = kind.pool(2);
    for way in ordered_ways() {
        let (sender, pipeline) = fed(2);
        (0..2).for_each(|n| sender.send(n).expect("room"));
        let pipeline = pipeline.batch(1).try_map(|n| {
            while n == 0 && sender.send(2).is_ok() {}
            if n == 1 { Err("planned") } else { Ok(()) }
        });
        let mut results = 0;
        let error = way.of(pipeline).run(&pool, |()| results += 1).expect_err("a fault");
        assert_eq!((error.batch(), results), (Some(1), 1), "{way:?}");
    }
}

/// The clone of the waker panics. The future is in the line all the same, and its drop takes it out of there.
fn a_waker_that_panics(kind: Kind) {
    fn clone(_: *const ()) -> RawWaker {
        panic!("planned")
    }
    fn nothing(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    // SAFETY: no function of the table uses the pointer.
    let waker = unsafe { Waker::new(std::ptr::null(), &TABLE) };
    let ledger = Ledger::new(3);
    let (sender, pipeline) = fed(1);
    sender.send(ledger.item(0)).expect("room");
    let mut future = Box::pin(send_by(sender.clone(), ledger.item(1)));
    let poll = || future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
    assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
    let mut future = Box::pin(sender.send_async(ledger.item(2)));
    let poll = || future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
    assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
    drop(future);
    assert!(ledger.dropped() >= 1);
    drop(sender);
    let mut results = Vec::new();
    pipeline.run(&kind.pool(1), |item| results.push(item.number)).expect("an end");
    assert_eq!(results, [0]);
    ledger.assert_each_once();
}
