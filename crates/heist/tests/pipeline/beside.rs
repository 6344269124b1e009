//! The contract of a pipeline beside other tasks of its pool: it ends although they go on for ever.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heist::Pool;
use heist::pipeline::{Distribution, Pipeline};

use crate::common::pipeline::ways;
use crate::common::{Kind, for_every_strategy};

for_every_strategy! {
    short_tasks_that_spawn_themselves_again,
    long_tasks_that_spawn_themselves_again,
    few_long_tasks_start_between_two_items,
}

/// More than the time that a pipeline keeps a worker at a time.
const LONG: Duration = Duration::from_micros(1_200);

/// Keeps the processor busy.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

/// Two tasks, each of which takes some time and spawns itself again, until this is dropped.
#[derive(Default)]
struct Treadmills {
    starts: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
}

impl Treadmills {
    fn start(pool: &Pool, each: Duration) -> Self {
        fn run(starts: Arc<AtomicUsize>, end: Arc<AtomicBool>, each: Duration) {
            starts.fetch_add(1, Ordering::SeqCst);
            work(each);
            if !end.load(Ordering::SeqCst) {
                heist::spawn(move || run(starts, end, each));
            }
        }
        let mills = Self::default();
        for _ in 0..2 {
            let (starts, end) = (Arc::clone(&mills.starts), Arc::clone(&mills.end));
            pool.spawn(move || run(starts, end, each));
        }
        mills
    }

    /// Returns how often they have started.
    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

impl Drop for Treadmills {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
    }
}

/// Runs pipelines of all kinds on two workers.
fn beside(kind: Kind, each: Duration) {
    const ITEMS: usize = 4;
    for way in ways() {
        let pool = kind.pool(2);
        let mills = Treadmills::start(&pool, each);
        let mut results = Vec::new();
        let pipeline = Pipeline::new(0..ITEMS).batch(1).map(|n| {
            work(LONG);
            n
        });
        way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
        drop(mills);
        way.assert_all(results, &(0..ITEMS).collect::<Vec<_>>());
    }
}

fn short_tasks_that_spawn_themselves_again(kind: Kind) {
    beside(kind, Duration::ZERO);
}

fn long_tasks_that_spawn_themselves_again(kind: Kind) {
    beside(kind, LONG);
}

/// A single worker decides alone what it runs next. It gives each item a turn of its own, because of its length, and a
/// turn comes after two tasks if these are long. Every other turn may go to a task, and a turn may be spent with
/// taking an item from the source.
fn few_long_tasks_start_between_two_items(kind: Kind) {
    const ITEMS: usize = 8;
    const MOST: usize = 16;
    let pool = kind.pool(1);
    let mills = Treadmills::start(&pool, LONG);
    let mut seen = Vec::new();
    let pipeline = Pipeline::new(0..ITEMS).batch(1).map(|_| {
        let starts = mills.starts();
        work(LONG);
        starts
    });
    let pipeline = pipeline.distribute(Distribution::Pull).ordered();
    pipeline.run(&pool, |starts| seen.push(starts)).expect("an end");
    drop(mills);
    assert_eq!(seen.len(), ITEMS);
    for pair in seen.windows(2) {
        assert!(pair[1] - pair[0] <= MOST, "starts before each item: {seen:?}");
    }
}
