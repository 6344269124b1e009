//! The contract of `flush_after`: a batch that is not full is sent on when its oldest item is old enough, and not before that.
//! Everything else is as without it.

use std::io;
use std::num::NonZero;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{Feed, Pipeline, Sender, Stage};

use crate::common::pipeline::{
    Door, OpenOnDrop, Traffic, assert_cancelled, assert_works, ordered_ways, ways,
};
use crate::common::{Kind, Ledger, Tracked, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    alone_from_a_sender,
    alone_from_an_iterator,
    alone_from_a_reader,
    full_batches_of_a_sender,
    full_batches_of_an_iterator,
    room_for_less_than_a_batch,
    weighed,
    as_an_iterator,
    failing_source,
    panicking_source,
    failing_stage,
    cancelled,
    cancelled_while_the_source_blocks,
    bounded,
    never_run,
}

/// So long that no test waits for it.
const NEVER: Duration = Duration::MAX;
const SOON: Duration = Duration::from_millis(1);
/// What takes longer has gone wrong.
const LONG: Duration = Duration::from_secs(15);

fn fed<T>(capacity: usize) -> (Sender<T>, Pipeline<Feed<T>>) {
    Pipeline::fed(NonZero::new(capacity).expect("some room"))
}

/// Sends each item when the one before has been delivered. Nothing else is sent meanwhile.
fn one_by_one(send: impl Fn(usize), delivered: &Receiver<usize>) {
    for n in 0..5 {
        send(n);
        assert_eq!(delivered.recv_timeout(LONG), Ok(n), "an item is held back");
    }
}

fn alone_from_a_sender(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(100);
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    one_by_one(|n| sender.send(n).expect("a run"), &delivered);
                });
                let pipeline = way.of(pipeline.flush_after(SOON));
                pipeline.run(&pool, |n| deliver.send(n).expect("the test waits")).expect("an end");
            });
        }
    }
}

fn alone_from_an_iterator(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (send, source) = mpsc::channel();
            let (deliver, delivered) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || one_by_one(|n| send.send(n).expect("a run"), &delivered));
                let pipeline = way.of(Pipeline::new(source).flush_after(SOON).map(|n| n));
                pipeline.run(&pool, |n| deliver.send(n).expect("the test waits")).expect("an end");
            });
        }
    }
}

/// A reader that blocks until there is a line.
struct Slow(Receiver<String>);

impl io::Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Ok(line) = self.0.recv() else { return Ok(0) };
        buffer[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

fn alone_from_a_reader(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let (send, lines) = mpsc::channel();
        let (deliver, delivered) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                one_by_one(|n| send.send(format!("{n}\n")).expect("a run"), &delivered);
            });
            let lines = Pipeline::lines(Slow(lines)).flush_after(SOON);
            let numbers = way.of(lines.try_map(|line| line.parse()));
            numbers.run(&pool, |n| deliver.send(n).expect("the test waits")).expect("an end");
        });
    }
}

/// Runs a pipeline whose batches have 4 items and never become old. The last one has 3.
macro_rules! assert_batches {
    ($way:expr, $pool:expr, $pipeline:expr) => {{
        let mut sizes = Vec::new();
        let pipeline = $way.of($pipeline.batch(4).flush_after(NEVER).map_batch(|all| all.len()));
        let report = pipeline.run($pool, |size| sizes.push(size)).expect("an end");
        let mut expected = vec![4; 20];
        expected.push(3);
        if !$way.ordered {
            sizes.sort_unstable_by(|a, b| b.cmp(a));
        }
        assert_eq!(sizes, expected, "{:?}", $way);
        assert_eq!((report.items, report.batches), (83, 21), "{:?}", $way);
    }};
}

fn full_batches_of_a_sender(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, capacity) in ways().flat_map(|way| [4, 5, 100].map(|room| (way, room))) {
            let (sender, pipeline) = fed(capacity);
            thread::scope(|scope| {
                scope.spawn(move || (0..83).try_for_each(|n| sender.send(n)));
                assert_batches!(way, &pool, pipeline);
            });
        }
    }
}

fn full_batches_of_an_iterator(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            assert_batches!(way, &pool, Pipeline::new(0..83));
            let source = (0..83).map(Ok::<_, io::Error>);
            assert_batches!(way, &pool, Pipeline::try_new(source));
        }
    }
}

/// A batch can never be full. So it is sent on when the feed is.
fn room_for_less_than_a_batch(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (sender, pipeline) = fed(3);
            let mut results = Vec::new();
            thread::scope(|scope| {
                for name in 0..4 {
                    let sender = sender.clone();
                    scope.spawn(move || (0..25).try_for_each(|n| sender.send(25 * name + n)));
                }
                drop(sender);
                let pipeline = way.of(pipeline.flush_after(NEVER).batch(10).in_flight(2));
                pipeline.run(&pool, |n| results.push(n)).expect("an end");
            });
            results.sort_unstable();
            assert!(results.into_iter().eq(0..100), "{way:?}");
        }
    }
}

fn weighed(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let expected: Vec<_> = (0..200).collect();
            let weigh = |n: &usize| n % 7;
            let (sender, pipeline) = fed(20);
            let (first, second) =
                (pipeline.flush_after(SOON).weigh(weigh, 10), Pipeline::new(0..200));
            thread::scope(|scope| {
                scope.spawn(move || (0..200).try_for_each(|n| sender.send(n)));
                let mut results = Vec::new();
                let report = way.of(first).batch(5).run(&pool, |n| results.push(n));
                assert!(report.expect("an end").largest_weight <= 10, "{way:?}");
                way.assert_all(results, &expected);
            });
            let mut results = Vec::new();
            let second = way.of(second.weigh(weigh, 10).flush_after(NEVER)).batch(5);
            let report = second.run(&pool, |n| results.push(n)).expect("an end");
            assert!(report.largest_weight <= 10, "{way:?}");
            way.assert_all(results, &expected);
        }
    }
}

fn as_an_iterator(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (send, source) = mpsc::channel();
            let mut results =
                way.of(Pipeline::new(source).flush_after(SOON)).results(&pool).expect("a run");
            for n in 0..5 {
                send.send(n).expect("a run");
                assert_eq!(results.next().expect("a result").expect("no error"), n);
            }
            drop(results);
            // The reader ends with the first item that it cannot pass on.
            eventually("the source is dropped", || send.send(5).is_err());
        }
    }
}

fn failing_source(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let ledger = Ledger::new(30);
            let items = (0..30).map(|n| ledger.item(n)).collect::<Vec<_>>().into_iter();
            let source = items.map(|item| if item.number < 17 { Ok(item) } else { Err("planned") });
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::try_new(source).batch(5).flush_after(NEVER));
            let error = pipeline.run(&pool, |item| results.push(item.number)).expect_err("17");
            assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(17)), "{way:?}");
            assert!(results.into_iter().eq(0..17), "{way:?}");
            ledger.assert_each_once();
        }
    }
}

fn panicking_source(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let source = (0..30).inspect(|n| assert!(*n < 17, "planned"));
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::new(source).batch(5).flush_after(NEVER));
            let error = pipeline.run(&pool, |n| results.push(n)).expect_err("17");
            assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(17)), "{way:?}");
            assert!(error.to_string().contains("planned"), "{error}");
            assert!(results.into_iter().eq(0..17), "{way:?}");
            assert_works(&pool);
        }
    }
}

fn failing_stage(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ordered_ways() {
            let ledger = Ledger::new(100);
            let items = (0..100).map(|n| ledger.item(n)).collect::<Vec<_>>();
            let fail = |item: Tracked| match item.number {
                43 => Err("planned"),
                _ => Ok(item),
            };
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::new(items).batch(4).flush_after(SOON).try_map(fail));
            let error = pipeline.run(&pool, |item| results.push(item.number)).expect_err("43");
            assert_eq!(error.item(), Some(43), "{way:?}");
            // The batches before the failed one are delivered. How large they are depends on the time.
            let count = results.len();
            assert!(count <= 43 && results.into_iter().eq(0..count), "{way:?}");
            ledger.assert_each_once();
        }
    }
}

/// A batch that is not full, and never becomes old, does not keep a cancelled run from ending.
fn cancelled(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (ledger, token) = (Ledger::new(3), CancelToken::new());
            let (sender, pipeline) = fed(100);
            (0..3).for_each(|n| sender.send(ledger.item(n)).expect("room"));
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(SOON);
                    token.cancel();
                });
                let pipeline = way.of(pipeline.flush_after(NEVER).cancel_on(&token));
                assert_cancelled(pipeline.run(&pool, |_| panic!("no batch is full")));
            });
            ledger.assert_each_once();
            sender.send(ledger.item(0)).expect_err("no run");
        }
    }
}

fn cancelled_while_the_source_blocks(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let (door, token, ledger) = (Door::default(), CancelToken::new(), Ledger::new(10));
            let items = (0..10).map(|n| ledger.item(n)).collect::<Vec<_>>();
            let source = items.into_iter().inspect(|item| {
                if item.number == 6 {
                    door.pass();
                }
            });
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _opens = OpenOnDrop(&door);
                    door.wait_for(1);
                    token.cancel();
                });
                let pipeline = Pipeline::new(source).batch(4).flush_after(NEVER).cancel_on(&token);
                assert_cancelled(way.of(pipeline).run(&pool, drop));
            });
            ledger.assert_each_once();
        }
    }
}

/// One batch and one item may be read ahead.
fn bounded(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let traffic = Traffic::default();
            let source = (0..200).inspect(|_| traffic.take(1));
            let pipeline = way.of(Pipeline::new(source).batch(5).in_flight(3).flush_after(SOON));
            pipeline.run(&pool, |_| traffic.deliver(1)).expect("an end");
            assert!(traffic.most() <= 3 * 5 + 5 + 1, "{way:?}: {}", traffic.most());
            assert_eq!((traffic.taken(), traffic.delivered()), (200, 200), "{way:?}");
        }
    }
}

/// A pipeline that is dropped without a run drops its source, and starts no thread.
fn never_run(kind: Kind) {
    let ledger = Ledger::new(3);
    let items = (0..3).map(|n| ledger.item(n)).collect::<Vec<_>>();
    drop(Pipeline::new(items).flush_after(SOON).ordered());
    ledger.assert_each_once();
    Pipeline::new(0..3).flush_after(SOON).batch(0).run(&kind.pool(1), drop).expect_err("no batch");
}
