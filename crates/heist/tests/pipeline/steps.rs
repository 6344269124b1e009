//! The contract of stages: each has the results that the iterator of the same name has, at any place of a chain. What
//! a stage leaves out or leaves over is dropped once. An error names the stage and the item, and goes where the policy
//! says.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heist::pipeline::{
    Dead, DeadLetter, Distribution, Pipeline, PipelineError, Retry, Skip, Stage, Stop,
};
use heist::{CancelToken, Pool};

use crate::common::pipeline::{assert_cancelled, assert_works, ordered_ways, ways};
use crate::common::{Kind, Ledger, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    like_iterators,
    batches_anywhere,
    values_of_workers,
    nothing_is_left,
    errors_of_each,
    panics_of_each,
    an_endless_item,
    policies,
    policies_in_a_row,
    a_pause_ends_with_the_run,
    a_failure_ends_a_pause,
    no_call_after_the_run,
    pauses,
    policies_at_run_time,
    items_of_a_sink,
    values_after_a_panic,
    values_of_a_run_that_fails,
    panics_beside_the_function,
}

const ITEMS: usize = 100;

fn like_iterators(kind: Kind) {
    let expected: Vec<_> = (0..ITEMS)
        .filter(|n| n % 3 != 0)
        .filter_map(|n| (n % 5 != 0).then_some(n * 2))
        .flat_map(|n| [n; 3].into_iter().take(n % 4))
        .map(|n| n + 1)
        .collect();
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let seen = AtomicUsize::new(0);
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..ITEMS)
                .batch(7)
                .filter(|n| n % 3 != 0)
                .filter_map(|n| (n % 5 != 0).then_some(n * 2))
                .flat_map(|n| [n; 3].into_iter().take(n % 4))
                .inspect(|_| _ = seen.fetch_add(1, Ordering::Relaxed))
                .map(|n| n + 1);
            let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            assert_eq!(seen.into_inner(), expected.len());
            assert_eq!((report.items, report.results), (ITEMS as u64, expected.len() as u64));
            way.assert_all(results, &expected);

            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..ITEMS)
                .batch(7)
                .try_filter(|n| Ok::<_, String>(n % 3 != 0))
                .try_filter_map(|n| Ok::<_, String>((n % 5 != 0).then_some(n * 2)))
                .try_flat_map(|n| Ok::<_, String>([n; 3].into_iter().take(n % 4)))
                .try_inspect(|_| Ok::<_, String>(()))
                .try_map(|n| Ok::<_, String>(n + 1));
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &expected);
        }
    }
}

/// A stage for batches gets what the stages before it have made of a batch of the source, which may be nothing.
fn batches_anywhere(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut lengths = Vec::new();
        let pipeline = Pipeline::new(0..30)
            .batch(10)
            .filter(|n| *n < 15)
            .map_batch(std::mem::take)
            .try_map_batch(|batches| batches.pop().ok_or("one for each batch"))
            .map(|batch| batch.len());
        way.of(pipeline).run(&pool, |length| lengths.push(length)).expect("an end");
        if !way.ordered {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
        }
        assert_eq!(lengths, [10, 5, 0], "{way:?}");
    }
}

/// Each worker has a value of its own, which it makes once. All values are dropped at the end.
fn values_of_workers(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (made, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
            struct Value<'c>(&'c AtomicUsize, usize);
            impl Drop for Value<'_> {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Ordering::Relaxed);
                    // Nothing comes of a panic here.
                    assert!(self.1 == usize::MAX, "planned");
                }
            }
            let init = || {
                made.fetch_add(1, Ordering::Relaxed);
                Value(&dropped, 0)
            };
            let count = |value: &mut Value, n: usize| {
                value.1 += 1;
                (n, value.1)
            };
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..ITEMS).batch(3).map_init(init, count).try_map_init(
                Vec::new,
                |seen, (n, counted)| {
                    seen.push(n);
                    if seen.len() == counted { Ok(n) } else { Err("another worker's value") }
                },
            );
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..ITEMS).collect::<Vec<_>>());
            let made = made.into_inner();
            assert!((1..=workers).contains(&made), "{made}");
            assert_eq!(dropped.into_inner(), made);
        }
    }
}

/// What a filter leaves out and what a function leaves in a batch or an iterator is dropped once.
fn nothing_is_left(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let ledger = Ledger::new(ITEMS);
        let items: Vec<_> = (0..ITEMS).map(|n| ledger.item(n)).collect();
        let pipeline = Pipeline::new(items)
            .batch(6)
            .filter(|item: &Tracked| item.number % 4 != 1)
            .map(|item| [item])
            .flat_map(|items| items)
            .map_batch(|batch| batch.pop())
            .filter_map(|item| item);
        let mut results = 0;
        way.of(pipeline).run(&pool, |_| results += 1).expect("an end");
        assert_eq!(results, ITEMS.div_ceil(6));
        ledger.assert_each_once();
    }
}

fn errors_of_each(kind: Kind) {
    let pool = kind.pool(2);
    let bad = |n: usize| if n == 33 { Err("planned") } else { Ok(()) };
    for way in ordered_ways() {
        let new = || way.of(Pipeline::new(0..ITEMS).batch(10)).inspect(|_| ());
        let outcomes = [
            new().try_map(|n| bad(n).map(|()| n)).map(drop).run(&pool, drop),
            new().try_filter(|n| bad(*n).map(|()| true)).map(drop).run(&pool, drop),
            new().try_filter_map(|n| bad(n).map(|()| Some(()))).run(&pool, drop),
            new().try_flat_map(|n| bad(n).map(|()| [(), ()])).run(&pool, drop),
            new().try_inspect(|n| bad(*n)).map(drop).run(&pool, drop),
            new().try_map_init(|| (), |(), n| bad(n)).run(&pool, drop),
            new().try_map_batch(|all| all.drain(..).try_for_each(bad)).run(&pool, drop),
        ];
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.expect_err("a fault");
            let item = (at < 6).then_some(33);
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(2)), Some(3)), "{at}");
            assert_eq!(error.item(), item, "{at}");
            let each = if at == 3 { 2 } else { 1 };
            let results = if at == 6 { 3 } else { 30 * each };
            assert_eq!(error.report().expect("a report").results, results, "{at}");
        }
    }
}

fn panics_of_each(kind: Kind) {
    let pool = kind.pool(2);
    let good = |n: usize| {
        assert!(n != 33, "planned");
        true
    };
    for way in ways() {
        let ledger = Ledger::new(6 * ITEMS);
        let of = |round: usize| {
            let items: Vec<_> = (0..ITEMS).map(|n| ledger.item(round * ITEMS + n)).collect();
            way.of(Pipeline::new(items).batch(10))
        };
        let is_good = |item: &Tracked| good(item.number % ITEMS);
        let inspect = |item: &Tracked| _ = is_good(item);
        let numbers = way.of(Pipeline::new(0..ITEMS).batch(10));
        let outcomes = [
            of(0).filter(is_good).map(drop).run(&pool, drop),
            of(1).filter_map(|item| Some(is_good(&item))).run(&pool, drop),
            of(2).flat_map(|item| Some(is_good(&item))).run(&pool, drop),
            of(3).inspect(inspect).map(drop).run(&pool, drop),
            of(4).map_init(|| (), |(), item| is_good(&item)).run(&pool, drop),
            of(5).flat_map(|item| [item].into_iter().inspect(inspect)).map(drop).run(&pool, drop),
            numbers.map_batch(|all| all.drain(..).all(good)).run(&pool, drop),
        ];
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.expect_err("a panic");
            assert!(matches!(error, PipelineError::Panicked { .. }), "{error}");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(1)), Some(3)), "{at}");
            assert_eq!(error.item(), (at < 6).then_some(33), "{at}");
        }
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// An item with results without end is given up when the run is cancelled; so is a source whose items are all left out.
fn an_endless_item(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let pipeline = Pipeline::new(0..1_u64).batch(1).flat_map(|_| 0_u64..).filter(|n| {
            if *n == 1000 {
                token.cancel();
            }
            false
        });
        assert_cancelled(way.of(pipeline).cancel_on(&token).run(&pool, drop));
        let token = CancelToken::new();
        let pipeline = Pipeline::new(0_u64..).batch(1000).filter(|n| {
            if *n == 1500 {
                token.cancel();
            }
            false
        });
        assert_cancelled(way.of(pipeline).cancel_on(&token).run(&pool, drop));
    }
}

fn policies(kind: Kind) {
    let odd = |n: usize| if n % 2 == 1 { Err(n) } else { Ok(n) };
    let text = move |n| odd(n).map_err(|n| n.to_string());
    let even: Vec<_> = (0..ITEMS).step_by(2).collect();
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let of = || way.of(Pipeline::new(0..ITEMS).batch(7)).filter(|n| *n != 1);
            let mut results = Vec::new();
            let report = of().try_map(text).on_error(Skip).run(&pool, |n| results.push(n)).unwrap();
            assert_eq!((report.skipped, report.retried), (49, 0));
            way.assert_all(results, &even);

            let letters = Mutex::new(Vec::new());
            let note = |dead: Dead<usize, String>| {
                assert_eq!((dead.error, dead.stage), (dead.item.to_string(), Stage::Step(2)));
                assert_eq!(dead.batch, dead.item as u64 / 7);
                letters.lock().unwrap().push((dead.item, dead.index));
            };
            let mut results = Vec::new();
            let letter = of().try_map(text).on_error(DeadLetter(note));
            let report = letter.run(&pool, |n| results.push(n)).unwrap();
            assert_eq!(report.skipped, 49);
            way.assert_all(results, &even);
            let mut letters = letters.into_inner().unwrap();
            letters.sort_unstable();
            assert!(letters.into_iter().eq((3..ITEMS).step_by(2).map(|n| (n, Some(n as u64)))));

            let error = of().try_map(text).on_error(Stop).run(&pool, drop).expect_err("an error");
            assert_eq!(error.stage(), Some(Stage::Step(2)));
            assert_eq!(error.item().map(|n| n % 2), Some(1));
        }
    }
}

fn policies_in_a_row(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        // The item `n` fails `n % 4` times.
        let calls: Vec<_> = (0..ITEMS).map(|_| AtomicUsize::new(0)).collect();
        let fails = |n: usize| {
            let call = calls[n].fetch_add(1, Ordering::Relaxed);
            if call < n % 4 { Err("planned") } else { Ok(n) }
        };
        let retry = Retry::times(2).backoff(Duration::from_nanos(1));
        let letters = AtomicUsize::new(0);
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..ITEMS).batch(9).try_map(fails).on_error(retry).on_error(
            DeadLetter(|dead: Dead<usize, &str>| {
                assert_eq!(dead.item % 4, 3);
                letters.fetch_add(1, Ordering::Relaxed);
            }),
        );
        let report = way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        way.assert_all(results, &(0..ITEMS).filter(|n| n % 4 != 3).collect::<Vec<_>>());
        assert_eq!((report.skipped, report.retried), (25, 25 * (1 + 2 + 2)));
        assert_eq!(letters.into_inner(), 25);
        let all_calls: usize = calls.into_iter().map(AtomicUsize::into_inner).sum();
        assert_eq!(all_calls, 25 * (1 + 2 + 3 + 3));
    }
}

const FOREVER: Retry = Retry::times(u32::MAX).backoff(Duration::MAX);

/// The run is cancelled while each worker pauses for longer than the test may last.
fn a_pause_ends_with_the_run(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (token, tried) = (CancelToken::new(), AtomicUsize::new(0));
        let fail = |_| {
            tried.fetch_add(1, Ordering::Release);
            Err::<(), _>("planned")
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                eventually("an attempt", || tried.load(Ordering::Acquire) > 0);
                token.cancel();
            });
            let pipeline = Pipeline::new(0..4).batch(1).try_map(fail).on_error(FOREVER);
            assert_cancelled(way.of(pipeline).cancel_on(&token).run(&pool, drop));
        });
    }
}

/// An earlier batch fails while a later one pauses.
fn a_failure_ends_a_pause(kind: Kind) {
    let pool: Pool = kind.pool(2);
    for way in ordered_ways() {
        let tried = AtomicUsize::new(0);
        let check = |n: usize| match n {
            0 => {
                eventually("a pause", || tried.load(Ordering::Acquire) > 0);
                panic!("planned")
            }
            _ => {
                tried.fetch_add(1, Ordering::Release);
                Err::<(), _>("planned")
            }
        };
        let pipeline = Pipeline::new(0..2).batch(1).try_map(check).on_error(FOREVER);
        let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
        assert_eq!(error.item(), Some(0));
    }
}

/// An item whose repetition is pending when the run is cancelled is not processed again, and is not one that has failed.
fn no_call_after_the_run(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let token = CancelToken::new();
        let calls = [0, 1].map(|_| AtomicUsize::new(0));
        let fail = |n: usize| {
            calls[n].fetch_add(1, Ordering::Release);
            Err::<(), _>("planned")
        };
        let letter = |dead: Dead<usize, &str>| panic!("{dead:?}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let called = || calls.iter().any(|calls| calls.load(Ordering::Acquire) > 0);
                eventually("an attempt", called);
                token.cancel();
            });
            let pipeline = Pipeline::new(0..2).batch(1).cancel_on(&token).try_map(fail);
            let pipeline = way.of(pipeline.on_error(FOREVER).on_error(DeadLetter(letter)));
            let error = pipeline.run(&pool, drop).expect_err("a cancellation");
            let report = error.report().expect("a report");
            assert_eq!((report.skipped, report.retried), (0, 0), "{way:?}");
            assert_cancelled(Err::<(), _>(error));
        });
        let calls = calls.map(AtomicUsize::into_inner);
        assert!(calls.iter().all(|calls| *calls <= 1), "{way:?}: {calls:?}");
    }
}

/// The pauses double up to the longest one. They are no work.
fn pauses(kind: Kind) {
    let pool = kind.pool(1);
    let unit = Duration::from_millis(20);
    let twice = Retry::times(2).backoff(unit);
    let short = Retry::times(4).backoff(unit).max_backoff(unit / 2);
    for (retry, units, retried) in [(twice, 3, 2), (short, 2, 4)] {
        let begun = Instant::now();
        let pipeline = Pipeline::new(0..1).try_map(|_| Err::<(), _>("planned"));
        let report = pipeline.on_error(retry).on_error(Skip).run(&pool, drop).expect("an end");
        assert!(begun.elapsed() >= unit * units);
        assert_eq!((report.skipped, report.retried), (1, retried));
        let busy = report.per_worker[0].busy;
        assert!(report.elapsed - busy >= unit * units, "{report}");
        let shown = format!("1 items skipped, {retried} calls repeated");
        assert!(report.to_string().contains(&shown), "{report}");
    }
}

fn policies_at_run_time(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let run = |skip: Option<Skip>, retry: Option<Retry>| {
            let calls = AtomicUsize::new(0);
            let fail = |n: usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                if n == 0 { Err("planned") } else { Ok(n) }
            };
            let pipeline = Pipeline::new(0..1).try_map(fail).on_error(retry).on_error(skip);
            (way.of(pipeline).run(&pool, drop), calls.into_inner())
        };
        let (stopped, calls) = run(None, None);
        assert_eq!((stopped.expect_err("a fault").item(), calls), (Some(0), 1), "{way:?}");
        let (skipped, calls) = run(Some(Skip), Some(Retry::times(2)));
        assert_eq!((skipped.expect("an end").skipped, calls), (1, 3), "{way:?}");
    }
}

/// The sink's item has an index as long as there is one result for each item.
fn items_of_a_sink(kind: Kind) {
    let pool = kind.pool(2);
    for way in ordered_ways() {
        let of = || way.of(Pipeline::new(0..ITEMS).batch(7));
        let sink = |n: usize| if n == 33 { Err("planned") } else { Ok(()) };
        let try_ok = |n: usize| Ok::<_, String>(n);
        let with = vec![
            of().map(|n| n).try_run(&pool, sink),
            of().try_map(try_ok).on_error(Stop).try_run(&pool, sink),
            of().try_map(try_ok).on_error(Retry::times(1)).try_run(&pool, sink),
            of().try_map(try_ok).on_error(Some(Retry::times(1))).try_run(&pool, sink),
        ];
        let without = vec![
            of().filter(|_| true).try_run(&pool, sink),
            of().flat_map(|n| [n]).try_run(&pool, sink),
            of().try_map(try_ok).on_error(Skip).try_run(&pool, sink),
            of().try_map(try_ok).on_error(Some(Skip)).try_run(&pool, sink),
            of().try_map(try_ok).on_error(DeadLetter(drop)).try_run(&pool, sink),
            of().try_filter(|_| Ok::<_, String>(true)).on_error(Stop).try_run(&pool, sink),
        ];
        for (outcomes, item) in [(with, Some(33)), (without, None)] {
            for error in outcomes.into_iter().map(|outcome| outcome.expect_err("a fault")) {
                assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), item), "{way:?}");
                assert_eq!(error.report().expect("a report").results, 33, "{way:?}");
            }
        }
        // The index is that of the item in the source.
        let dead = |dead: Dead<usize, String>| {
            assert_eq!(
                (dead.index, dead.batch),
                (Some(dead.item as u64 / 10), dead.item as u64 / 70)
            );
        };
        let fail = |n: usize| if n % 3 == 0 { Err(n.to_string()) } else { Ok(n) };
        let expand = |n: usize| (0..n % 4).map(move |k| 10 * n + k);
        let letters = of().flat_map(expand).try_map(fail).on_error(DeadLetter(dead));
        assert!(letters.run(&pool, drop).expect("an end").skipped > 0);
    }
}

/// After a panic, the worker makes a new value: the last batch fails while the batch before it is queued.
fn values_after_a_panic(kind: Kind) {
    let pool = kind.pool(2);
    for _ in 0..10 {
        let begun = AtomicUsize::new(0);
        let stage = |used: &mut bool, n: usize| {
            begun.fetch_add(1 << (8 * n), Ordering::AcqRel);
            assert!(!*used, "a value after a panic");
            match n {
                0 => eventually("the other worker takes it", || {
                    begun.load(Ordering::Acquire) >> 16 & 1 == 1
                }),
                3 => {
                    *used = true;
                    panic!("planned");
                }
                _ => {}
            }
            n
        };
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..4).batch(1).distribute(Distribution::RoundRobin);
        let pipeline = pipeline.ordered().map_init(|| false, stage);
        let error = pipeline.run(&pool, |n| results.push(n)).expect_err("a panic");
        assert_eq!((error.item(), results.as_slice()), (Some(3), &[0, 1, 2][..]));
    }
}

/// All values of workers are dropped when the run has returned, however it ends.
fn values_of_a_run_that_fails(kind: Kind) {
    struct Value<'c>(&'c AtomicUsize);
    impl Drop for Value<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let pool = kind.pool(2);
    for (way, how) in ways().flat_map(|way| (0..4).map(move |how| (way, how))) {
        let (made, dropped, token) = (AtomicUsize::new(0), AtomicUsize::new(0), CancelToken::new());
        let init = || {
            made.fetch_add(1, Ordering::Relaxed);
            Value(&dropped)
        };
        let stage = |_: &mut Value, n: usize| match (how, n) {
            (0, 33) => Err("planned"),
            (1, 33) => panic!("planned"),
            (2, 33) => {
                token.cancel();
                Ok(())
            }
            _ => Ok(()),
        };
        let pipeline = Pipeline::new(0..ITEMS).batch(5).cancel_on(&token).try_map_init(init, stage);
        let sink = |()| if how == 3 { Err("planned") } else { Ok(()) };
        way.of(pipeline).try_run(&pool, sink).expect_err("an error");
        let made = made.into_inner();
        assert!(made > 0 && made == dropped.into_inner(), "{way:?} {how}: {made}");
    }
}

/// Panics of the user's code that is not the function of a stage: each names the stage and the item.
fn panics_beside_the_function(kind: Kind) {
    #[derive(Debug)]
    struct Clones(usize);
    impl Clone for Clones {
        fn clone(&self) -> Self {
            assert!(self.0 != 33, "planned");
            Self(self.0)
        }
    }
    struct Last(bool);
    impl Iterator for Last {
        type Item = ();
        fn next(&mut self) -> Option<()> {
            None
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            assert!(!self.0, "planned");
        }
    }
    let pool = kind.pool(2);
    for way in ways() {
        let of = || way.of(Pipeline::new(0..ITEMS).batch(10)).map(|n| n);
        let fail = |n: usize| if n == 33 { Err("planned") } else { Ok(()) };
        let fail_clones = |_: Clones| Err::<(), _>("never called for 33");
        let outcomes = [
            of().try_map(fail).on_error(DeadLetter(|_| panic!("planned"))).run(&pool, drop),
            of().map(Clones)
                .try_map(fail_clones)
                .on_error(Retry::times(1))
                .on_error(Skip)
                .run(&pool, drop),
            of().map(Clones).try_map(fail_clones).on_error(DeadLetter(drop)).run(&pool, drop),
            of().flat_map(|n| Last(n == 33)).run(&pool, drop),
        ];
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.expect_err("a panic");
            let stage = if matches!(at, 1 | 2) { 3 } else { 2 };
            assert_eq!((error.stage(), error.item()), (Some(Stage::Step(stage)), Some(33)), "{at}");
            assert!(error.to_string().ends_with("planned"), "{way:?} {at}: {error}");
        }
        let init = || -> usize { panic!("planned") };
        let error = of().map_init(init, |_, n| n).run(&pool, drop).expect_err("a panic");
        assert_eq!(error.stage(), Some(Stage::Step(2)), "{way:?}");
        assert_eq!(error.item().map(|item| item % 10), Some(0), "{way:?}");
        assert_works(&pool);
    }
}
