//! Whole pipelines, each with every distribution.
//!
//! A lost batch and a missed wake-up (of the source, the sink, a sender or a worker) are deadlocks, which
//! shuttle reports.

use std::num::NonZero;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use heist::pipeline::{
    Distribution, Items, Pipeline, PipelineError, Retry, SendError, Sender, Skip, Stage,
};
use heist::{CancelToken, Pool};
use shuttle::sync::Mutex;
use shuttle::thread;

/// Schedules of each kind; a pipeline takes many steps, and each scenario is run with five distributions.
const SCHEDULES: usize = 1_000;

// The list of distributions below is complete.
const _: () = assert!(Distribution::ALL.len() == 5);

/// A test for each distribution.
macro_rules! scenarios {
    ($($name:ident)*) => {$(
        mod $name {
            use heist::pipeline::Distribution;

            scenarios! { @each $name:
                pull Pull, round_robin RoundRobin, load_aware LoadAware, hybrid Hybrid, shared Shared
            }
        }
    )*};
    (@each $scenario:ident: $($test:ident $distribution:ident),*) => {$(
        #[test]
        fn $test() {
            heist_testkit::schedules::check(super::SCHEDULES, || {
                super::$scenario(Distribution::$distribution);
            });
        }
    )*};
}

scenarios! {
    to_its_end
    to_its_end_without_stealing
    in_order
    in_order_one_by_one
    by_weight
    pulled
    fed
    fed_by_two_blocking_senders
    fed_by_impatient_senders
    fed_by_two_tasks
    fed_and_cancelled_while_empty
    fed_and_stopped_while_empty
    fed_by_two_blocking_senders_and_the_sink_fails
    fed_by_a_blocking_sender_and_results_dropped
    fed_by_a_blocking_sender_and_results_dropped_in_a_task
    fed_by_a_blocking_sender_and_cancelled
    merged_feeds
    merged_and_read_ahead
    merged_and_read_ahead_and_one_fails
    from_a_stream
    items_left_out
    retried_and_skipped
    retried_and_cancelled
    a_stage_that_fails
    a_source_that_fails
    a_sink_that_fails
    a_stage_that_cancels
    cancelled
    results_dropped
    results_dropped_at_once
    a_pool_that_stops
    a_pool_that_stops_now
    in_a_task_of_a_single_worker
    two_on_a_single_worker
    in_each_other
}

fn pool(workers: usize) -> Arc<Pool> {
    Arc::new(Pool::builder().workers(workers).build().expect("a small pool"))
}

/// Checks that nothing of the pipeline is left in the pool: the pool works, and it stops.
fn end(pool: &Pool) {
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    stopped(pool);
}

fn stopped(pool: &Pool) {
    pool.stop();
    assert_eq!(unsettled(pool), 0, "{:?}", pool.stats());
}

/// Returns the number of tasks that were submitted and have not ended.
fn unsettled(pool: &Pool) -> u64 {
    let stats = pool.stats();
    stats.total.tasks_submitted
        - (stats.total.tasks_completed + stats.total.panics + stats.total.cancellations)
}

/// Like [`end`], where the thread of the source may still be submitting a task. The pool refuses that
/// task, and nothing waits for the thread. If a task is lost, this waits forever, which shuttle reports
/// as a failure.
fn end_after_drop(pool: &Pool) {
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    pool.stop();
    while unsettled(pool) > 0 {
        thread::yield_now();
    }
}

/// Numbers from zero, each a batch, of which two are in flight.
fn numbers(
    count: u64,
    distribution: Distribution,
) -> Pipeline<Items<impl Iterator<Item = u64> + Send + 'static>> {
    Pipeline::new(0..count).batch(1).in_flight(2).distribute(distribution)
}

/// A capacity of one.
const ONE: NonZero<usize> = NonZero::<usize>::MIN;

fn to_its_end(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let doubled = numbers(5, distribution).map(|n| n * 2);
    let report = doubled.run(&pool, |n| results.push(n)).unwrap();
    results.sort_unstable();
    assert_eq!(results, [0, 2, 4, 6, 8]);
    assert_eq!((report.items, report.batches, report.results), (5, 5, 5));
    assert!(report.largest_in_flight <= 2, "{report:?}");
    assert_eq!(report.per_worker.iter().map(|worker| worker.batches).sum::<u64>(), 5);
    end(&pool);
}

fn to_its_end_without_stealing(distribution: Distribution) {
    let pool = pool(2);
    let mut sum = 0;
    let report = numbers(5, distribution).steal(false).run(&pool, |n| sum += n).unwrap();
    assert_eq!((sum, report.steals), (10, 0));
    end(&pool);
}

fn in_order(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    numbers(5, distribution).ordered().run(&pool, |n| results.push(n)).unwrap();
    assert_eq!(results, [0, 1, 2, 3, 4]);
    end(&pool);
}

fn in_order_one_by_one(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let one = numbers(4, distribution).in_flight(1).ordered();
    let report = one.run(&pool, |n| results.push(n)).unwrap();
    assert_eq!(results, [0, 1, 2, 3]);
    assert_eq!(report.largest_in_flight, 1);
    end(&pool);
}

/// The last item is so heavy that no other may be in flight.
fn by_weight(distribution: Distribution) {
    let pool = pool(2);
    let mut sum = 0;
    let weighed = numbers(5, distribution).batch(2).in_flight(9).weigh(|&n| n as usize, 3);
    let report = weighed.run(&pool, |n| sum += n).unwrap();
    assert_eq!(sum, 10);
    assert!(report.largest_weight <= 4, "{report:?}");
    end(&pool);
}

fn pulled(distribution: Distribution) {
    let pool = pool(2);
    let results = numbers(4, distribution).ordered().results(&pool).unwrap();
    assert_eq!(results.map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3]);
    end(&pool);
}

fn fed(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let feeder = thread::spawn(move || (0..3).try_for_each(|n| sender.send(n)).unwrap());
    let mut results = Vec::new();
    let fed = pipeline.batch(2).in_flight(2).distribute(distribution).ordered();
    fed.run(&pool, |n: u64| results.push(n)).unwrap();
    assert_eq!(results, [0, 1, 2]);
    feeder.join().unwrap();
    end(&pool);
}

fn fed_by_two_blocking_senders(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let feed = |first: u64| {
        let sender = sender.clone();
        thread::spawn(move || (first..first + 2).try_for_each(|n| sender.send(n)).unwrap())
    };
    let feeders = [feed(0), feed(10)];
    drop(sender);
    let mut results = Vec::new();
    let fed = pipeline.batch(1).in_flight(1).distribute(distribution).ordered();
    fed.run(&pool, |n| results.push(n)).unwrap();
    let of = |first: u64| results.iter().copied().filter(move |n| n / 10 == first / 10);
    assert!(of(0).eq(0..2) && of(10).eq(10..12), "{results:?}");
    feeders.into_iter().for_each(|feeder| feeder.join().unwrap());
    end(&pool);
}

/// One sender gives up after some time, which has always passed here; another one is a future that is dropped when it waits. Each
/// item is delivered, or was not sent.
fn fed_by_impatient_senders(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let timed = thread::spawn({
        let sender = sender.clone();
        move || (0..2).filter(|n| sender.send_timeout(*n, Duration::ZERO).is_ok()).count()
    });
    let dropped = thread::spawn({
        let sender = sender.clone();
        move || {
            let mut context = Context::from_waker(Waker::noop());
            let mut future = pin!(sender.send_async(10_u64));
            usize::from(matches!(future.as_mut().poll(&mut context), Poll::Ready(Ok(()))))
        }
    });
    let patient = thread::spawn(move || (20..22).try_for_each(|n| sender.send(n)).unwrap());
    let mut results = Vec::new();
    let fed = pipeline.batch(1).in_flight(1).distribute(distribution).ordered();
    fed.run(&pool, |n: u64| results.push(n)).unwrap();
    let of = |first: u64| results.iter().filter(|n| **n / 10 == first).count();
    assert_eq!((of(0), of(2)), (timed.join().unwrap(), 2), "{results:?}");
    let sent = dropped.join().unwrap();
    // What was in the line may have been sent as well.
    assert!((sent..=1).contains(&of(1)), "{results:?}");
    patient.join().unwrap();
    end(&pool);
}

/// The tasks find the feed full, and work for the pipeline.
fn fed_by_two_tasks(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    for first in [0, 10] {
        let sender = sender.clone();
        drop(pool.spawn(move || (first..first + 2_u64).try_for_each(|n| sender.send(n)).unwrap()));
    }
    drop(sender);
    let fed = pipeline.batch(1).in_flight(2).distribute(distribution);
    assert_eq!(fed.run(&pool, |_| ()).unwrap().results, 4);
    end(&pool);
}

fn fed_and_cancelled_while_empty(distribution: Distribution) {
    let pool = pool(2);
    let token = CancelToken::new();
    let (sender, pipeline) = Pipeline::fed(ONE);
    sender.send(1).unwrap();
    let other = token.clone();
    let canceller = thread::spawn(move || other.cancel());
    let mut sum = 0;
    let fed = pipeline.batch(1).distribute(distribution).cancel_on(&token);
    let error = fed.run(&pool, |n: u64| sum += n).unwrap_err();
    assert!(matches!(error, PipelineError::Cancelled { .. }), "{error}");
    assert!(sum <= 1);
    assert_eq!(sender.send(2), Err(SendError(2)));
    canceller.join().unwrap();
    end(&pool);
}

fn fed_and_stopped_while_empty(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let stopper = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.stop_now()
    });
    let mut sum = 0;
    sender.send(1).unwrap();
    let error = pipeline.distribute(distribution).run(&pool, |n: u64| sum += n).unwrap_err();
    assert!(matches!(error, PipelineError::Stopped { .. }), "{error}");
    assert!(sum <= 1);
    assert_eq!(sender.send(2), Err(SendError(2)));
    stopper.join().unwrap();
    stopped(&pool);
}

fn fed_by_two_blocking_senders_and_the_sink_fails(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let feed = || {
        let sender = sender.clone();
        // Sends until the feed is closed.
        thread::spawn(move || _ = (0_u64..).try_for_each(|n| sender.send(n)).unwrap_err())
    };
    let feeders = [feed(), feed()];
    let fed = pipeline.batch(1).in_flight(1).distribute(distribution);
    let mut results = 0;
    let error = fed.try_run(&pool, |_| {
        results += 1;
        if results < 3 { Ok(()) } else { Err("full") }
    });
    let error = error.unwrap_err();
    assert_eq!((error.stage(), error.batch()), (Some(Stage::Sink), Some(2)));
    feeders.into_iter().for_each(|feeder| feeder.join().unwrap());
    drop(sender);
    end(&pool);
}

fn fed_by_a_blocking_sender_and_results_dropped(distribution: Distribution) {
    let pool = pool(2);
    let (sender, pipeline) = Pipeline::fed(ONE);
    let feeder = thread::spawn(move || _ = (0_u64..).try_for_each(|n| sender.send(n)).unwrap_err());
    let fed = pipeline.batch(1).in_flight(1).distribute(distribution);
    let mut results = fed.results(&pool).unwrap();
    assert_eq!(results.next().unwrap().unwrap(), 0);
    drop(results);
    feeder.join().unwrap();
    end_after_drop(&pool);
}

/// The sender that waits is released although the thread that cancels the run does not go on with the results before that.
fn fed_by_a_blocking_sender_and_cancelled(distribution: Distribution) {
    let pool = pool(2);
    let token = CancelToken::new();
    let (sender, pipeline) = Pipeline::fed(ONE);
    let feeder = thread::spawn(move || _ = (0_u64..).try_for_each(|n| sender.send(n)).unwrap_err());
    let fed = pipeline.batch(1).in_flight(1).distribute(distribution).cancel_on(&token);
    let mut results = fed.results(&pool).unwrap();
    token.cancel();
    feeder.join().unwrap();
    assert!(matches!(results.next(), Some(Err(PipelineError::Cancelled { .. }))));
    drop(results);
    end_after_drop(&pool);
}

/// The only worker waits for the sender, so nothing else can run.
fn fed_by_a_blocking_sender_and_results_dropped_in_a_task(distribution: Distribution) {
    let pool = pool(1);
    let inner = Arc::clone(&pool);
    let task = pool.spawn(move || {
        let (sender, pipeline) = Pipeline::fed(ONE);
        let feed = move || _ = (0_u64..).try_for_each(|n| sender.send(n)).unwrap_err();
        let feeder = thread::spawn(feed);
        drop(pipeline.distribute(distribution).results(&inner).unwrap());
        feeder.join().unwrap();
    });
    task.join().unwrap();
    end_after_drop(&pool);
}

/// Batches without results make room for others.
/// The run waits for two feeds, each of which may be the next to have an item.
fn merged_feeds(distribution: Distribution) {
    let pool = pool(2);
    let (first, one) = Pipeline::fed(ONE);
    let (second, other) = Pipeline::fed(ONE);
    let feed = |sender: Sender<u64>, from: u64| {
        thread::spawn(move || (from..from + 2).try_for_each(|n| sender.send(n)).unwrap())
    };
    let feeders = [feed(first, 0), feed(second, 10)];
    let mut results = Vec::new();
    let merged = one.merge(other).batch(2).in_flight(2).distribute(distribution);
    merged.run(&pool, |n| results.push(n)).unwrap();
    results.sort_unstable();
    assert_eq!(results, [0, 1, 10, 11]);
    feeders.into_iter().for_each(|feeder| feeder.join().unwrap());
    end(&pool);
}

fn merged_and_read_ahead(distribution: Distribution) {
    let pool = pool(1);
    let mut results = Vec::new();
    let merged = Pipeline::new(0..2).merge(Pipeline::new(10..12)).flush_after(Duration::MAX);
    let merged = merged.batch(2).in_flight(1).distribute(distribution);
    merged.run(&pool, |n| results.push(n)).unwrap();
    results.sort_unstable();
    assert_eq!(results, [0, 1, 10, 11]);
    end(&pool);
}

/// The other source would go on for ever.
fn merged_and_read_ahead_and_one_fails(distribution: Distribution) {
    let pool = pool(1);
    let source =
        |bad| Pipeline::try_new((0_u64..).map(move |n| if n == bad { Err("no") } else { Ok(n) }));
    let merged = source(1).merge(source(u64::MAX)).flush_after(Duration::MAX);
    let merged = merged.batch(1).in_flight(1).distribute(distribution).ordered();
    let mut results = 0;
    let error = merged.run(&pool, |_| results += 1).unwrap_err();
    assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(results)));
    end(&pool);
}

/// What a stream has not yielded yet, whether it has ended, and whom it wakes.
#[derive(Default)]
struct Sent {
    left: u64,
    has_ended: bool,
    waker: Option<Waker>,
}

struct Stream(Arc<Mutex<Sent>>);

impl futures_core::Stream for Stream {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        let mut sent = self.0.lock().unwrap();
        match sent.left.checked_sub(1) {
            Some(left) => {
                sent.left = left;
                Poll::Ready(Some(()))
            }
            None if sent.has_ended => Poll::Ready(None),
            None => {
                sent.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Items come, or the stream ends, while it is polled, and while the run falls asleep.
fn from_a_stream(distribution: Distribution) {
    let pool = pool(2);
    let sent = Arc::new(Mutex::new(Sent::default()));
    let stream = Stream(Arc::clone(&sent));
    let sender = thread::spawn(move || {
        for turn in 0..4 {
            let mut sent = sent.lock().unwrap();
            if turn < 3 {
                sent.left += 1
            } else {
                sent.has_ended = true
            }
            let waker = sent.waker.take();
            drop(sent);
            waker.into_iter().for_each(Waker::wake);
        }
    });
    let pipeline = Pipeline::from_stream(stream).batch(2).in_flight(1).distribute(distribution);
    assert_eq!(pipeline.run(&pool, drop).unwrap().items, 3);
    sender.join().unwrap();
    end(&pool);
}

fn items_left_out(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let few = numbers(6, distribution).filter(|n| n % 3 == 2).flat_map(|n| [n, n + 10]);
    let report = few.ordered().run(&pool, |n| results.push(n)).unwrap();
    assert_eq!(results, [2, 12, 5, 15]);
    assert!(report.largest_in_flight <= 2, "{report:?}");
    end(&pool);
}

fn retry() -> Retry {
    Retry::times(2).backoff(Duration::from_millis(1))
}

fn retried_and_skipped(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let odd = |n: u64| if n % 2 == 1 { Ok(n) } else { Err("even") };
    let tried = numbers(4, distribution).try_map(odd).on_error(retry()).on_error(Skip);
    let report = tried.ordered().run(&pool, |n| results.push(n)).unwrap();
    assert_eq!((report.skipped, report.retried), (2, 4));
    assert_eq!(results, [1, 3]);
    end(&pool);
}

/// The run may be cancelled before, during or after a pause.
fn retried_and_cancelled(distribution: Distribution) {
    let pool = pool(2);
    let token = CancelToken::new();
    let canceller = thread::spawn({
        let token = token.clone();
        move || token.cancel()
    });
    let failing = numbers(2, distribution).cancel_on(&token);
    let failing = failing.try_map(|_| Err::<(), _>("planned")).on_error(retry()).on_error(Skip);
    match failing.run(&pool, drop) {
        Ok(report) => assert_eq!((report.skipped, report.retried), (2, 4)),
        Err(error) => assert!(matches!(error, PipelineError::Cancelled { .. }), "{error}"),
    }
    canceller.join().unwrap();
    end(&pool);
}

fn a_stage_that_fails(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let checked = numbers(5, distribution).try_map(|n| if n == 2 { Err("two") } else { Ok(n) });
    let error = checked.ordered().run(&pool, |n| results.push(n)).unwrap_err();
    assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(1)), Some(2)));
    assert_eq!(results, [0, 1]);
    end(&pool);
}

fn a_source_that_fails(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let source = [Ok(0), Ok(1), Ok(2), Err("dead")];
    let tried = Pipeline::try_new(source).batch(2).in_flight(2).distribute(distribution);
    let error = tried.ordered().run(&pool, |n| results.push(n)).unwrap_err();
    assert_eq!((error.stage(), error.batch()), (Some(Stage::Source), Some(1)));
    assert_eq!(results, [0, 1, 2]);
    end(&pool);
}

fn a_sink_that_fails(distribution: Distribution) {
    let pool = pool(2);
    let mut results = 0;
    let error = numbers(5, distribution).try_run(&pool, |_| {
        results += 1;
        if results < 2 { Ok(()) } else { Err("full") }
    });
    assert_eq!(error.unwrap_err().stage(), Some(Stage::Sink));
    end(&pool);
}

fn a_stage_that_cancels(distribution: Distribution) {
    let pool = pool(2);
    let token = CancelToken::new();
    let mut results = Vec::new();
    let cancelled = numbers(u64::MAX, distribution).cancel_on(&token).map(|n| {
        if n == 2 {
            token.cancel();
        }
        n
    });
    let error = cancelled.ordered().run(&pool, |n| results.push(n)).unwrap_err();
    assert!(matches!(error, PipelineError::Cancelled { .. }), "{error}");
    assert!(results.iter().copied().eq(0..results.len() as u64), "{results:?}");
    end(&pool);
}

/// An external thread cancels the parent of the token.
fn cancelled(distribution: Distribution) {
    let pool = pool(2);
    let parent = CancelToken::new();
    let token = parent.child();
    let canceller = thread::spawn(move || parent.cancel());
    let mut sum = 0;
    match numbers(4, distribution).cancel_on(&token).run(&pool, |n| sum += n) {
        Ok(_) => assert_eq!(sum, 6),
        Err(error) => assert!(matches!(error, PipelineError::Cancelled { .. }), "{error}"),
    }
    canceller.join().unwrap();
    end(&pool);
}

/// The results are dropped half-way. Each item holds a clone of an `Arc`; none is left when the pool has
/// stopped and the thread of the source has ended.
fn results_dropped(distribution: Distribution) {
    let pool = pool(2);
    let alive = Arc::new(());
    let each = Arc::clone(&alive);
    let items = numbers(u64::MAX, distribution).map(move |n| (n, Arc::clone(&each)));
    let mut results = items.ordered().results(&pool).unwrap();
    assert_eq!(results.next().unwrap().unwrap().0, 0);
    assert_eq!(results.next().unwrap().unwrap().0, 1);
    drop(results);
    end_after_drop(&pool);
    while Arc::strong_count(&alive) > 1 {
        thread::yield_now();
    }
}

fn results_dropped_at_once(distribution: Distribution) {
    let pool = pool(2);
    drop(numbers(3, distribution).results(&pool).unwrap());
    end_after_drop(&pool);
}

/// The stop waits for running tasks. The pipeline may have finished or not.
fn a_pool_that_stops(distribution: Distribution) {
    while_it_stops(distribution, |pool| pool.stop());
}

fn a_pool_that_stops_now(distribution: Distribution) {
    while_it_stops(distribution, |pool| pool.stop_now());
}

fn while_it_stops(distribution: Distribution, stop: fn(&Pool)) {
    let pool = pool(2);
    let stopper = thread::spawn({
        let pool = Arc::clone(&pool);
        move || stop(&pool)
    });
    let mut results = Vec::new();
    match numbers(4, distribution).ordered().run(&pool, |n| results.push(n)) {
        Ok(_) => assert_eq!(results.len(), 4),
        Err(error) => assert!(matches!(error, PipelineError::Stopped { .. }), "{error}"),
    }
    assert!(results.iter().copied().eq(0..results.len() as u64), "{results:?}");
    stopper.join().unwrap();
    stopped(&pool);
}

/// A task waits for a pipeline on its own pool, which has no other worker.
fn in_a_task_of_a_single_worker(distribution: Distribution) {
    let pool = pool(1);
    let inner = Arc::clone(&pool);
    let task = pool.spawn(move || {
        let mut results = Vec::new();
        numbers(3, distribution).ordered().run(&inner, |n| results.push(n)).unwrap();
        results
    });
    assert_eq!(task.join().unwrap(), [0, 1, 2]);
    end(&pool);
}

fn two_on_a_single_worker(distribution: Distribution) {
    let pool = pool(1);
    let sum = move |pool: &Pool| {
        let mut sum = 0;
        numbers(3, distribution).run(pool, |n| sum += n).unwrap();
        sum
    };
    let other = Arc::clone(&pool);
    let other = thread::spawn(move || sum(&other));
    assert_eq!((sum(&pool), other.join().unwrap()), (3, 3));
    end(&pool);
}

/// Each worker is in a stage that waits for a pipeline of its own.
fn in_each_other(distribution: Distribution) {
    let pool = pool(2);
    let mut total = 0;
    let outer = numbers(2, distribution).map(|_| {
        let mut sum = 0;
        numbers(3, distribution).run(&pool, |n| sum += n).unwrap();
        sum
    });
    outer.run(&pool, |sum| total += sum).unwrap();
    assert_eq!(total, 6);
    end(&pool);
}
