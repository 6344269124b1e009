//! The contract of `progress`: a function is shown what was delivered, at a bounded rate, and once more at the end.

use std::num::NonZero;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{Pipeline, Progress};

use crate::common::pipeline::{assert_cancelled, assert_works, ways};
use crate::common::{Kind, WORKERS, for_every_strategy};

for_every_strategy! {
    counts,
    without_a_total,
    nothing_at_all,
    while_it_waits,
    at_a_bounded_rate,
    failing,
    cancelled,
    panicking_function,
    several_functions,
    as_an_iterator,
    iterator_dropped_early,
}

/// What a function has been shown.
type Log = Arc<Mutex<Vec<Progress>>>;

/// Returns a function that keeps what it is shown.
fn logger() -> (Log, impl FnMut(&Progress) + Send + 'static) {
    let log = Log::default();
    let kept = Arc::clone(&log);
    (log, move |progress: &Progress| kept.lock().expect("no panic").push(*progress))
}

/// Panics unless the log is that of one run. Returns what was shown last.
fn check(log: &Log) -> Progress {
    let log = log.lock().expect("no panic");
    let counts = |progress: &Progress| (progress.items, progress.results, progress.elapsed);
    for pair in log.windows(2) {
        let ((items, results, elapsed), next) = (counts(&pair[0]), counts(&pair[1]));
        assert!(items <= next.0 && results <= next.1 && elapsed <= next.2, "{pair:?}");
        assert!(!pair[0].is_over && !pair[0].failed, "{pair:?}");
        assert_eq!(pair[0].total, pair[1].total);
        assert!(pair[1].is_over || next.2 - elapsed >= Duration::from_millis(100), "{pair:?}");
    }
    let last = *log.last().expect("a call at the end");
    assert!(last.is_over, "{last:?}");
    assert_eq!(last.remaining(), Some(Duration::ZERO));
    last
}

fn counts(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (log, function) = logger();
            let pipeline = Pipeline::new(0..100).batch(7).flat_map(|n| vec![n; n % 3]);
            way.of(pipeline.progress(function)).run(&pool, |_| ()).expect("an end");
            let last = check(&log);
            assert_eq!((last.items, last.total, last.results), (100, Some(100), 99), "{way:?}");
            assert!(!last.failed);
        }
    }
}

/// The upper bound may be too high, or none.
fn without_a_total(kind: Kind) {
    let pool = kind.pool(2);
    let (log, function) = logger();
    let even = (0..100).filter(|n| n % 2 == 0);
    Pipeline::new(even).progress(function).run(&pool, |_| ()).expect("an end");
    assert_eq!((check(&log).items, check(&log).total), (50, Some(100)));

    let (log, function) = logger();
    Pipeline::lines("a\nb\n".as_bytes()).progress(function).run(&pool, |_| ()).expect("an end");
    assert_eq!((check(&log).items, check(&log).total), (2, None));

    let (log, function) = logger();
    let source = Pipeline::new(0..9).flush_after(Duration::MAX).weigh(|_| 1, 5);
    source.progress(function).run(&pool, |_| ()).expect("an end");
    assert_eq!((check(&log).items, check(&log).total), (9, Some(9)));
}

fn nothing_at_all(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (log, function) = logger();
        way.of(Pipeline::new(0..0).progress(function)).run(&pool, |_| ()).expect("an end");
        let last = check(&log);
        assert_eq!((last.items, last.total, last.rate()), (0, Some(0), 0.0));
    }
}

/// The function is called while nothing happens.
fn while_it_waits(kind: Kind) {
    let pool = kind.pool(2);
    for on_a_worker in [false, true] {
        let (sender, pipeline) = Pipeline::<heist::pipeline::Feed<u32>>::fed(NonZero::<usize>::MIN);
        let (call, called) = mpsc::channel();
        let function = move |_: &Progress| _ = call.send(());
        thread::scope(|scope| {
            scope.spawn(move || {
                (0..3).for_each(|_| called.recv().expect("a call"));
                drop(sender);
            });
            let run = || pipeline.progress(function).run(&pool, |_| ()).expect("an end");
            if on_a_worker { pool.install(run) } else { run() }
        });
    }
}

/// The time between two calls is what the function is shown.
fn at_a_bounded_rate(kind: Kind) {
    let pool = kind.pool(2);
    let (log, function) = logger();
    let slow = Pipeline::new(0..300).batch(1).map(|_| thread::sleep(Duration::from_millis(1)));
    slow.progress(function).run(&pool, |()| ()).expect("an end");
    assert_eq!(check(&log).items, 300);
}

fn failing(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (log, function) = logger();
            let fail = |n| if n == 70 { Err("planned") } else { Ok(n) };
            let pipeline = Pipeline::new(0..100).batch(5).try_map(fail).progress(function);
            let mut results = 0;
            way.of(pipeline).run(&pool, |_| results += 1).expect_err("70");
            let last = check(&log);
            assert!(last.failed && last.items <= 95 && last.results <= results, "{last:?}");
            if way.ordered {
                assert_eq!(last.items, 70, "{way:?}");
            }
        }
    }
}

fn cancelled(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (token, (log, function)) = (CancelToken::new(), logger());
        let pipeline = Pipeline::new(0_u64..).cancel_on(&token).progress(function);
        let cancel = |n| {
            if n == 300 {
                token.cancel();
            }
        };
        assert_cancelled(way.of(pipeline).run(&pool, cancel));
        let last = check(&log);
        assert!(last.failed && last.total.is_none(), "{last:?}");
    }
}

fn panicking_function(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut results = 0;
        let pipeline = Pipeline::new(0..100).progress(|_| panic!("planned"));
        way.of(pipeline).run(&pool, |_| results += 1).expect("an end");
        assert_eq!(results, 100);
        assert_works(&pool);
    }
}

fn several_functions(kind: Kind) {
    let pool = kind.pool(2);
    let ((first, one), (second, two)) = (logger(), logger());
    Pipeline::new(0..100)
        .progress(one)
        .map(|n| n)
        .progress(two)
        .run(&pool, |_| ())
        .expect("an end");
    assert_eq!((check(&first).items, check(&second).items), (100, 100));
}

fn as_an_iterator(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (log, function) = logger();
        let results = way.of(Pipeline::new(0..100).progress(function)).results(&pool);
        assert_eq!(results.expect("a run").count(), 100);
        let last = check(&log);
        assert_eq!((last.items, last.failed), (100, false), "{way:?}");
    }
}

fn iterator_dropped_early(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (log, function) = logger();
        let mut results =
            way.of(Pipeline::new(0..).batch(1).progress(function)).results(&pool).expect("a run");
        assert_eq!(results.by_ref().take(10).count(), 10);
        drop(results);
        let last = check(&log);
        assert!(last.failed && last.items == 10, "{way:?}: {last:?}");
    }
}
