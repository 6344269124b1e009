//! The contract of failure: the first error or panic ends the run and names its place. An ordered run has
//! delivered all results before it. Nothing is lost or dropped twice, and the pool stays usable.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{io, thread};

use heist::Pool;
use heist::pipeline::{Pipeline, PipelineError, Report, Stage};

use crate::common::pipeline::{
    Door, Fault, How, OpenOnDrop, TrackedItem, Traffic, Way, assert_works, into_result,
    ordered_ways, tracked_items, ways,
};
use crate::common::{Kind, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    everywhere,
    at_the_first_and_the_last,
    lowest_of_many,
    lowest_fault_even_if_later,
    lowest_by_source_or_sink,
    map_panics,
    map_batch_panics,
    weigh_panics,
    reader_fails,
    empty_batch_of_a_failed_source,
    queued_batches_are_dropped,
    running_batches_finish,
    endless_source,
    payloads,
    again_and_again,
}

const ITEMS: usize = 60;
const BATCH: usize = 5;

const STAGES: [Stage; 4] = [Stage::Source, Stage::Step(1), Stage::Step(2), Stage::Sink];

fn check(faults: &[Fault], stage: Stage, item: usize) -> Result<(), String> {
    faults.iter().try_for_each(|fault| fault.check(stage, item))
}

/// Runs a pipeline with these faults. Returns its outcome and the delivered results.
fn run(way: Way, pool: &Pool, faults: &[Fault]) -> (Result<Report, PipelineError>, Vec<usize>) {
    let (ledger, items) = tracked_items(ITEMS);
    let tested = |item: TrackedItem, stage| check(faults, stage, item.0.number).map(|()| item);
    let source = items.into_iter().map(|item| tested(item, Stage::Source));
    let pipeline = Pipeline::try_new(source)
        .batch(BATCH)
        .try_map(|item| tested(item, Stage::Step(1)))
        .try_map(|item| tested(item, Stage::Step(2)))
        .map(into_result);
    let mut delivered = Vec::new();
    let sink = |result: Tracked| {
        let n = result.number - ITEMS;
        check(faults, Stage::Sink, n).map(|()| delivered.push(n))
    };
    let outcome = way.of(pipeline).try_run(pool, sink);
    ledger.assert_each_once();
    (outcome, delivered)
}

/// Returns how many results an ordered run delivers before the fault.
fn before(fault: Fault) -> usize {
    match fault.stage {
        Stage::Step(_) => fault.item / BATCH * BATCH,
        Stage::Source | Stage::Sink => fault.item,
    }
}

/// Runs a pipeline with one fault, and checks the error and the results.
fn fail(way: Way, pool: &Pool, fault: Fault) {
    let (outcome, delivered) = run(way, pool, &[fault]);
    let error = outcome.expect_err("a fault");
    fault.assert_told(&error, BATCH);
    if way.ordered {
        assert_eq!(delivered.len(), before(fault), "{way:?} {fault:?}");
    }
    assert!(!delivered.contains(&fault.item), "{way:?} {fault:?}");
    way.assert_some(delivered, ITEMS);
}

fn everywhere(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, stage) in ways().flat_map(|way| STAGES.map(|stage| (way, stage))) {
            for how in [How::Error, How::Panic] {
                fail(way, &pool, Fault { stage, how, item: 33 });
            }
            assert_works(&pool);
        }
    }
}

fn at_the_first_and_the_last(kind: Kind) {
    let pool = kind.pool(2);
    for (way, stage) in ways().flat_map(|way| STAGES.map(|stage| (way, stage))) {
        for item in [0, BATCH - 1, BATCH, ITEMS - 1] {
            fail(way, &pool, Fault { stage, how: How::Error, item });
        }
    }
}

/// Of several faults, the run reports the first one in order, not in time.
fn lowest_of_many(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| way.ordered) {
            for how in [How::Error, How::Panic] {
                let at = |item, stage| Fault { stage, how, item };
                let faults = [
                    at(56, Stage::Step(1)),
                    at(42, Stage::Step(2)),
                    at(28, Stage::Step(2)),
                    at(21, Stage::Step(1)),
                    at(35, Stage::Step(1)),
                ];
                let (outcome, delivered) = run(way, &pool, &faults);
                faults[3].assert_told(&outcome.expect_err("a fault"), BATCH);
                assert_eq!(delivered.len(), 20, "{way:?}");
                way.assert_some(delivered, ITEMS);
            }
        }
    }
}

/// The second batch does not fail before the fourth has.
fn lowest_fault_even_if_later(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let failed = AtomicBool::new(false);
            let mut delivered = Vec::new();
            let pipeline = Pipeline::new(0..ITEMS).batch(BATCH).try_map(|n| match n / BATCH {
                1 => {
                    eventually("the fourth batch fails", || failed.load(Ordering::Acquire));
                    // By then the failure has usually been recorded.
                    thread::yield_now();
                    Err("planned: the second")
                }
                3 => {
                    failed.store(true, Ordering::Release);
                    Err("planned: the fourth")
                }
                _ => Ok(n),
            });
            let error = way.of(pipeline).run(&pool, |n| delivered.push(n)).expect_err("a fault");
            assert_eq!(
                error.to_string(),
                "stage 1 failed at item 5 (batch 1): planned: the second"
            );
            way.assert_all(delivered, &(0..BATCH).collect::<Vec<_>>());
        }
    }
}

/// Faults of the source, the stages and the sink have one common order.
fn lowest_by_source_or_sink(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| way.ordered) {
            for (stages, told) in [
                ([Stage::Source, Stage::Step(1), Stage::Sink], 2),
                ([Stage::Step(2), Stage::Source, Stage::Step(1)], 2),
                ([Stage::Sink, Stage::Step(1), Stage::Step(2)], 2),
                ([Stage::Sink, Stage::Step(1), Stage::Source], 2),
            ] {
                let items = [48, 37, 22];
                let how = How::Error;
                let faults = [0, 1, 2].map(|n| Fault { stage: stages[n], how, item: items[n] });
                let (outcome, delivered) = run(way, &pool, &faults);
                let fault: Fault = faults[told];
                fault.assert_told(&outcome.expect_err("a fault"), BATCH);
                assert_eq!(delivered.len(), before(fault), "{way:?} {faults:?}");
            }
        }
    }
}

fn map_panics(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = tracked_items(ITEMS);
        let mut delivered = Vec::new();
        let pipeline = Pipeline::new(items).batch(BATCH).map(into_result).map(|result| {
            assert!(result.number != ITEMS + 33, "planned");
            result.number - ITEMS
        });
        let error = way.of(pipeline).run(&pool, |n| delivered.push(n)).expect_err("a panic");
        assert_eq!(error.to_string(), "stage 2 panicked at item 33 (batch 6): planned");
        if way.ordered {
            assert_eq!(delivered.len(), 30, "{way:?}");
        }
        way.assert_some(delivered, ITEMS);
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

fn map_batch_panics(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = tracked_items(ITEMS);
        let mut delivered = 0;
        let pipeline = Pipeline::new(items).batch(BATCH).map_batch(|batch| {
            // The batch is partly consumed.
            let first = batch.remove(0);
            assert!(batch[0].0.number != 31, "planned");
            batch.push(first);
        });
        let error = way.of(pipeline).run(&pool, |()| delivered += 1).expect_err("a panic");
        assert_eq!(error.to_string(), "stage 1 panicked in batch 6: planned");
        assert!(delivered == 6 || !way.ordered, "{way:?}");
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// A panic while weighing counts as a fault of the source: items weighed before are delivered.
fn weigh_panics(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (ledger, items) = tracked_items(ITEMS);
        let mut delivered = Vec::new();
        let weigh = |item: &TrackedItem| {
            assert!(item.0.number != 33, "planned");
            1
        };
        let pipeline = Pipeline::new(items).batch(BATCH).weigh(weigh, 1000).map(into_result);
        let error = way
            .of(pipeline)
            .run(&pool, |result| delivered.push(result.number - ITEMS))
            .expect_err("a panic");
        assert_eq!(error.to_string(), "the source panicked at item 33 (batch 6): planned");
        if way.ordered {
            assert_eq!(delivered.len(), 33, "{way:?}");
        }
        way.assert_some(delivered, ITEMS);
        ledger.assert_each_once();
        assert_works(&pool);
    }
}

/// A reader that fails after some lines.
struct Torn<'t>(&'t [u8]);

impl io::Read for Torn<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::new(io::ErrorKind::ConnectionReset, "planned")),
            bytes => Ok(bytes),
        }
    }
}

fn reader_fails(kind: Kind) {
    let text: String = (0..33).map(|n| format!("{n}\n")).collect();
    let pool = kind.pool(2);
    for way in ways() {
        let reader = io::BufReader::with_capacity(16, Torn(text.as_bytes()));
        let mut delivered = Vec::new();
        let pipeline = Pipeline::lines(reader).batch(BATCH).try_map(|line| line.parse());
        let error = way.of(pipeline).run(&pool, |n| delivered.push(n)).expect_err("an error");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Source), Some(6)), "{way:?}");
        assert_eq!(error.item(), Some(33));
        let PipelineError::Failed { source, .. } = &error else { panic!("{error:?}") };
        let kind = source.downcast_ref::<io::Error>().map(io::Error::kind);
        assert_eq!(kind, Some(io::ErrorKind::ConnectionReset), "{way:?}");
        if way.ordered {
            assert_eq!(delivered.len(), 33, "{way:?}");
        }
        way.assert_some(delivered, 33);
    }
}

/// A source that fails at the beginning of a batch is reported with the number of that empty batch,
/// which is not delivered.
fn empty_batch_of_a_failed_source(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let mut batches = 0;
        let source = (0..30).map(Ok).chain([Err("planned")]);
        let pipeline = Pipeline::try_new(source).batch(10).map_batch(|batch| batch.len());
        let sink = |length| {
            assert_eq!(length, 10);
            batches += 1;
        };
        let error = way.of(pipeline).run(&pool, sink).expect_err("an error");
        assert_eq!(error.to_string(), "the source failed at item 30 (batch 3): planned");
        assert!(batches == 3 || !way.ordered, "{way:?}");
    }
}

/// Batches that have not started when a fault happens never start. With one worker this is
/// deterministic.
fn queued_batches_are_dropped(kind: Kind) {
    let pool = kind.pool(1);
    for way in ways().filter(|way| way.has_producer()) {
        let (ledger, items) = tracked_items(ITEMS);
        let (traffic, begun) = (Traffic::default(), AtomicUsize::new(0));
        let items = items.into_iter().inspect(|_| traffic.take(1));
        let pipeline = Pipeline::new(items).batch(1).in_flight(20).try_map(|item: TrackedItem| {
            begun.fetch_add(1, Ordering::Relaxed);
            eventually("everything is full", || traffic.taken() == 20);
            if item.0.number == 0 { Err("planned") } else { Ok(item) }
        });
        let error = way.of(pipeline).run(&pool, drop).expect_err("a fault");
        assert_eq!(error.batch(), Some(0), "{way:?}");
        assert_eq!((begun.into_inner(), traffic.taken()), (1, 20), "{way:?}");
        ledger.assert_each_once();
    }
}

/// Items that have started when a fault happens are not interrupted: the run waits for them.
fn running_batches_finish(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| way.steals) {
            let (ledger, items) = tracked_items(ITEMS);
            let (door, ended) = (Door::default(), AtomicBool::new(false));
            let pipeline = Pipeline::new(items).batch(BATCH).try_map(|item: TrackedItem| {
                match item.0.number {
                    // The batch has more items, which are still processed if results come in order.
                    1 => {
                        door.pass();
                        ended.store(!way.ordered, Ordering::Release);
                    }
                    4 => ended.store(true, Ordering::Release),
                    // All that is known here is that the first batch is running.
                    5 => {
                        door.wait_for(1);
                        return Err("planned");
                    }
                    _ => {}
                }
                Ok(item)
            });
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _opens = OpenOnDrop(&door);
                    door.wait_for(1);
                });
                let error = way.of(pipeline).run(&pool, drop).expect_err("a fault");
                assert_eq!(error.batch(), Some(1), "{way:?}");
            });
            assert!(ended.into_inner(), "{way:?}");
            ledger.assert_each_once();
        }
    }
}

fn endless_source(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let pipeline = Pipeline::new(0_u64..).map(|n| {
                assert!(n != 1000, "planned");
                n
            });
            let error = way.of(pipeline).run(&pool, drop).expect_err("a panic");
            assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(1)), Some(15)), "{way:?}");
            let pipeline = Pipeline::new(0_u64..).batch(10);
            let error = way.of(pipeline).run(&pool, |_| panic!("planned")).expect_err("a panic");
            assert_eq!(error.stage(), Some(Stage::Sink), "{way:?}");
        }
    }
}

/// The payload of a panic is passed on unchanged.
fn payloads(kind: Kind) {
    let pool = kind.pool(2);
    for stage in STAGES {
        let here = |now: Stage| {
            if now == stage {
                std::panic::panic_any(7_usize);
            }
        };
        let source = (0..3).inspect(|_| here(Stage::Source));
        let pipeline = Pipeline::new(source).map(|n| {
            here(Stage::Step(1));
            n
        });
        let pipeline = pipeline.map(|_| here(Stage::Step(2)));
        match pipeline.run(&pool, |()| here(Stage::Sink)) {
            Err(PipelineError::Panicked { stage: told, panic, .. }) => {
                assert_eq!(told, stage);
                assert_eq!(panic.into_payload().downcast_ref(), Some(&7_usize));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// No failure affects a later run.
fn again_and_again(kind: Kind) {
    for workers in [1, 2, 8] {
        let pool = kind.pool(workers);
        for (round, way) in ways().cycle().take(200).enumerate() {
            let fault = Fault {
                stage: STAGES[round % 4],
                how: [How::Error, How::Panic][round / 4 % 2],
                item: round * 7 % ITEMS,
            };
            fail(way, &pool, fault);
        }
        assert_works(&pool);
    }
}
