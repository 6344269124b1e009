//! The contract of destructors that panic: a panic affects no other item, wherever it happens.

use std::error::Error;
use std::fmt;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use heist::CancelToken;
use heist::pipeline::{DeadLetter, Pipeline, PipelineError, Retry, Stage};
use heist_testkit::limits::disable_core_dumps;
use heist_testkit::process::in_child;

use crate::common::pipeline::{assert_cancelled, assert_works, ways};
use crate::common::{Kind, Ledger, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    in_a_stage,
    left_by_a_stage,
    in_the_sink,
    in_the_source,
    when_cancelled,
    in_a_feed,
    when_results_are_dropped,
    several_in_a_batch,
    several_in_flight,
    several_in_a_feed,
    several_in_dropped_results,
    several_functions,
    results_beside_what_is_left,
    items_under_the_users_code,
}

const ITEMS: usize = 60;

/// Items, one of which panics when it is dropped.
fn items(bomb: usize) -> (Ledger, Vec<Tracked>) {
    let ledger = Ledger::new(ITEMS);
    let item = |n| if n == bomb { ledger.bomb(n) } else { ledger.item(n) };
    let items = (0..ITEMS).map(item).collect();
    (ledger, items)
}

fn in_a_stage(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = items(33);
            let pipeline = Pipeline::new(items).batch(5).map(drop);
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(1)), Some(6)), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn left_by_a_stage(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, items) = items(33);
            let pipeline = Pipeline::new(items).batch(5).map_batch(|batch| batch.len());
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(1)), Some(6)), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn in_the_sink(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = items(33);
        let error = way.of(Pipeline::new(items).batch(5)).run(&pool, drop).expect_err("a panic");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Sink), Some(6)), "{way:?}");
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// A failure elsewhere drops the source with its remaining items.
fn in_the_source(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = items(59);
        let pipeline = Pipeline::new(items).batch(5).in_flight(2);
        let fail = |_| Err("planned");
        let error = way.of(pipeline).try_run(&pool, fail).expect_err("a fault");
        assert_eq!(error.stage(), Some(Stage::Sink), "{way:?}");
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// The item is in the source, in a queue or in an outbox.
fn when_cancelled(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, bomb) in ways().flat_map(|way| [1, 4, 11, 22, 59].map(|bomb| (way, bomb))) {
            let (ledger, items) = items(bomb);
            let token = CancelToken::new();
            let pipeline = Pipeline::new(items).batch(1).in_flight(20).cancel_on(&token);
            let sink = |item: Tracked| {
                token.cancel();
                drop(item.defuse());
            };
            assert_cancelled(way.of(pipeline).run(&pool, sink));
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

fn in_a_feed(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = items(59);
        let (sender, pipeline) = Pipeline::fed(NonZero::new(ITEMS).expect("a number"));
        items.into_iter().for_each(|item| sender.send(item).expect("room"));
        let token = CancelToken::new();
        let pipeline = pipeline.batch(1).in_flight(2).cancel_on(&token);
        assert_cancelled(way.of(pipeline).run(&pool, |item| {
            token.cancel();
            drop(item.defuse());
        }));
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

fn when_results_are_dropped(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, bomb) in ways().flat_map(|way| [0, 3, 9, 59].map(|bomb| (way, bomb))) {
            let (ledger, items) = items(bomb);
            let pipeline = Pipeline::new(items).batch(2).in_flight(5);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let first = results.next().expect("a result").expect("no error");
            drop(results);
            drop(first.defuse());
            eventually("everything is gone", || ledger.dropped() == ITEMS);
            ledger.assert_each_once();
            assert_works(&pool);
        }
    }
}

/// Runs the body in a process of its own: a panic of a destructor while another one is on its way ends the process.
fn alone(kind: Kind, body: impl FnOnce()) {
    in_child(&kind.strategy.to_string(), &[], || {
        disable_core_dumps();
        body();
    });
}

/// Bombs only, made when they are taken: the drop of a collection of several bombs would be a crash of its own.
struct Bombs {
    ledger: Ledger,
    made: AtomicUsize,
}

impl Bombs {
    fn new() -> Self {
        Self { ledger: Ledger::new(ITEMS), made: AtomicUsize::new(0) }
    }

    fn items(&self) -> impl Iterator<Item = Tracked> {
        (0..ITEMS).map(|n| {
            self.made.fetch_add(1, Ordering::AcqRel);
            self.ledger.bomb(n)
        })
    }

    fn assert_gone(&self) {
        let gone = || self.ledger.dropped() == self.made.load(Ordering::Acquire);
        eventually("what was taken is gone", gone);
    }
}

/// One panics in a stage or fails there; others are in the same batch, behind it or among its results.
fn several_in_a_batch(kind: Kind) {
    alone(kind, || {
        for (workers, way) in WORKERS.into_iter().flat_map(|n| ways().map(move |way| (n, way))) {
            let pool = kind.pool(workers);
            let bombs = Bombs::new();
            let pipeline = Pipeline::new(bombs.items()).batch(5).map(drop);
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!(error.stage(), Some(Stage::Step(1)), "{way:?}");
            bombs.assert_gone();

            let bombs = Bombs::new();
            let pipeline = Pipeline::new(bombs.items()).batch(5).map_batch(|batch| batch.len());
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!(error.stage(), Some(Stage::Step(1)), "{way:?}");
            bombs.assert_gone();

            let bombs = Bombs::new();
            let third = |item: Tracked| match item.number % 5 {
                2 => Err(format!("planned: {}", item.defuse().number)),
                _ => Ok(item),
            };
            let pipeline = Pipeline::new(bombs.items()).batch(5).try_map(third);
            let error = way.of(pipeline).run(&pool, |_| ()).expect_err("a fault");
            assert_eq!(error.stage(), Some(Stage::Step(1)), "{way:?}");
            bombs.assert_gone();
            assert_works(&pool);
        }
    });
}

/// They are in queues, in outboxes and with the consumer.
fn several_in_flight(kind: Kind) {
    alone(kind, || {
        for (workers, way) in WORKERS.into_iter().flat_map(|n| ways().map(move |way| (n, way))) {
            let pool = kind.pool(workers);
            for batch in [1, 5] {
                let (bombs, token) = (Bombs::new(), CancelToken::new());
                let pipeline = Pipeline::new(bombs.items()).batch(batch).in_flight(8);
                assert_cancelled(way.of(pipeline.cancel_on(&token)).run(&pool, |item| {
                    token.cancel();
                    drop(item.defuse());
                }));
                bombs.assert_gone();

                let bombs = Bombs::new();
                let pipeline = Pipeline::new(bombs.items()).batch(batch).in_flight(8);
                let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
                assert_eq!(error.stage(), Some(Stage::Sink), "{way:?}");
                bombs.assert_gone();
            }
            assert_works(&pool);
        }
    });
}

fn several_in_a_feed(kind: Kind) {
    alone(kind, || {
        let pool = kind.pool(2);
        for way in ways() {
            let (bombs, token) = (Bombs::new(), CancelToken::new());
            let (sender, pipeline) = Pipeline::fed(NonZero::new(ITEMS).expect("a number"));
            bombs.items().for_each(|item| sender.send(item).expect("room"));
            let pipeline = pipeline.batch(2).in_flight(2).cancel_on(&token);
            assert_cancelled(way.of(pipeline).run(&pool, |item: Tracked| {
                token.cancel();
                drop(item.defuse());
            }));
            bombs.assert_gone();
            assert_works(&pool);
        }
    });
}

fn several_in_dropped_results(kind: Kind) {
    alone(kind, || {
        for (workers, way) in WORKERS.into_iter().flat_map(|n| ways().map(move |way| (n, way))) {
            let pool = kind.pool(workers);
            let ledger = Arc::new(Ledger::new(ITEMS));
            let (made, source) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&ledger));
            let items = (0..ITEMS).map({
                let made = Arc::clone(&made);
                move |n| {
                    made.fetch_add(1, Ordering::AcqRel);
                    source.bomb(n)
                }
            });
            let pipeline = Pipeline::new(items).batch(4).in_flight(5);
            let mut results = way.of(pipeline).results(&pool).expect("a start");
            let first = results.next().expect("a result").expect("no error");
            drop(first.defuse());
            drop(results);
            eventually("the run is gone", || Arc::strong_count(&ledger) == 1);
            assert_eq!(ledger.dropped(), made.load(Ordering::Acquire), "{way:?}");
            assert_works(&pool);
        }
    });
}

/// The source, the weight function, both stages and the sink panic when they are dropped.
fn several_functions(kind: Kind) {
    alone(kind, || {
        for (workers, way) in WORKERS.into_iter().flat_map(|n| ways().map(move |way| (n, way))) {
            let pool = kind.pool(workers);
            let ledger = Ledger::new(6);
            let [source, weight, first, second, sink, error] =
                [0, 1, 2, 3, 4, 5].map(|n| ledger.bomb(n));
            let error = Arc::new(Mutex::new(Some(Fault(error))));
            let run = || {
                let pipeline = Pipeline::new((0..10).inspect(move |_| _ = &source))
                    .batch(2)
                    .weigh(move |_| number_of(&weight), 100)
                    .map(move |n| n + number_of(&first))
                    .map(move |n| n + number_of(&second));
                let sink = move |_| match (&sink, error.lock().expect("no panic").take()) {
                    (_, Some(error)) => Err(error),
                    (_, None) => Ok(()),
                };
                way.of(pipeline).try_run(&pool, sink).map(drop)
            };
            // The panic of the sink's destructor is passed on.
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{way:?}");
            ledger.assert_each_once();
            assert_works(&pool);
        }
    });
}

/// Returns the number of an item. A closure that calls it has all of the item, not only the number.
fn number_of(item: &Tracked) -> usize {
    item.number
}

/// An error whose destructor panics.
#[derive(Debug)]
struct Fault(#[expect(dead_code, reason = "it is dropped")] Tracked);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("planned")
    }
}

impl Error for Fault {}

/// A panic in the destructor of the sink reaches the caller, because the run is over.
#[test]
fn sink() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let pool = heist::Pool::builder().workers(2).build().expect("a pool");
    let bomb = Bomb;
    let run = || {
        let sink = move |_| _ = &bomb;
        Pipeline::new(0..10).run(&pool, sink).expect("an end");
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(Pipeline::new(0..10).run(&pool, drop).expect("an end").results, 10);
}

/// What a function for batches leaves panics; so does its result, if it is dropped because of that. Its error comes first.
fn results_beside_what_is_left(kind: Kind) {
    alone(kind, || {
        let pool = kind.pool(2);
        for way in ways() {
            let bombs = Bombs::new();
            let pop = |batch: &mut Vec<Tracked>| batch.pop();
            let error = way.of(Pipeline::new(bombs.items()).batch(5).map_batch(pop));
            let error = error.run(&pool, drop).expect_err("a panic");
            assert!(matches!(error, PipelineError::Panicked { stage: Stage::Step(1), .. }));
            bombs.assert_gone();

            let bombs = Bombs::new();
            let pop = |batch: &mut Vec<Tracked>| Ok::<_, String>(batch.pop());
            let error = way.of(Pipeline::new(bombs.items()).batch(5).try_map_batch(pop));
            let error = error.run(&pool, drop).expect_err("a panic");
            assert!(matches!(error, PipelineError::Panicked { stage: Stage::Step(1), .. }));
            bombs.assert_gone();

            let bombs = Bombs::new();
            let fail = |_: &mut Vec<Tracked>| Err::<(), _>("planned");
            let error = way.of(Pipeline::new(bombs.items()).batch(5).try_map_batch(fail));
            let error = error.run(&pool, drop).expect_err("an error");
            assert!(error.to_string().ends_with("planned"), "{way:?}: {error}");
            bombs.assert_gone();
            assert_works(&pool);
        }
    });
}

/// An item whose clones are bombs as well.
#[derive(Clone)]
struct Fuse {
    burns: bool,
}

impl Fuse {
    fn defuse(mut self) {
        self.burns = false;
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        assert!(!self.burns, "burned");
    }
}

/// The user's code panics or fails while the pipeline holds an item for it, whose destructor panics too.
fn items_under_the_users_code(kind: Kind) {
    alone(kind, || {
        let pool = kind.pool(2);
        let boom = |item: Fuse| -> Result<Fuse, String> {
            item.defuse();
            panic!("planned")
        };
        let fail = |item: Fuse| {
            item.defuse();
            Err::<Fuse, _>("planned")
        };
        for way in ways() {
            let of = || way.of(Pipeline::new((0..ITEMS).map(|_| Fuse { burns: true })).batch(5));
            let first = |_: &Fuse| -> bool { panic!("planned") };
            let ends = [
                of().filter(first).run(&pool, Fuse::defuse),
                of().inspect(|item| _ = first(item)).run(&pool, Fuse::defuse),
                of().try_filter(|item| Ok::<_, String>(first(item))).run(&pool, Fuse::defuse),
                of().try_inspect(|item| Ok::<_, String>(_ = first(item))).run(&pool, Fuse::defuse),
                of().try_filter(|_| Err("planned")).run(&pool, Fuse::defuse),
                of().try_inspect(|_| Err("planned")).run(&pool, Fuse::defuse),
                of().try_map(boom).on_error(Retry::times(1)).run(&pool, Fuse::defuse),
                of().try_map(boom).on_error(DeadLetter(drop)).run(&pool, Fuse::defuse),
                of().try_map(fail).on_error(Retry::times(1)).run(&pool, Fuse::defuse),
                of().map_init(|| panic!("planned"), |(), item| item).run(&pool, Fuse::defuse),
            ];
            for (at, end) in ends.into_iter().enumerate() {
                let error = end.expect_err("a fault");
                assert!(error.to_string().ends_with("planned"), "{way:?} {at}: {error}");
            }
            // The copy that was kept is dropped when the call has returned a result.
            let ends = [
                of().try_map(Ok::<_, String>).on_error(Retry::times(1)).run(&pool, Fuse::defuse),
                of().try_map(Ok::<_, String>).on_error(DeadLetter(drop)).run(&pool, Fuse::defuse),
            ];
            for end in ends {
                assert!(end.expect_err("a panic").to_string().ends_with("burned"), "{way:?}");
            }
            assert_works(&pool);
        }
    });
}
