//! The programs, compiled once for each revision: a generic program would not be compiled alike.
//!
//! Only names that all compared revisions have may be used here.

use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::board::{Board, Lap};
use harness::random::numbers;

use super::heist::pipeline::{Distribution, Pipeline};
use super::heist::{Pool, join, parallel, scope};
use crate::cases::{Case, Program};

const FIB: u64 = 36;
const FIB_RESULT: u64 = 14_930_352;
/// The number of calls with an argument above 1: one less than the Fibonacci number that follows.
const FIB_JOINS: u64 = 24_157_816;

const SCOPE_TASKS: u64 = 100_000;
const TASKS: u64 = 1_000_000;

/// Tasks that are joined: a number that batches of two and of ten divide.
const JOINED: u64 = 100_000;
/// Tasks of a tree in which every task joins its children.
const TREE: u64 = 4_095;

/// Numbers in a batch of the pipeline.
const BATCH: usize = 64;

/// The most batches that a pipeline has begun and not yet delivered.
const IN_FLIGHT: usize = 4_096;

/// Runs once, verifies the result, and returns the nanoseconds of an operation.
pub(crate) type Run = Box<dyn FnMut() -> f64>;

/// Builds a pool and prepares the input of a case.
pub(crate) fn prepare(case: Case) -> Run {
    // Tasks refer to the pool, so it lives until the process ends.
    let pool: &'static Pool =
        Box::leak(Box::new(Pool::builder().workers(case.workers).build().expect("a small pool")));
    match case.program {
        Program::Fib => Box::new(move || {
            let (found, time) = timed(|| pool.install(|| fib(black_box(FIB))));
            assert_eq!(found, FIB_RESULT, "wrong result");
            per(time, FIB_JOINS)
        }),
        Program::Scope => Box::new(move || spawned(SCOPE_TASKS, || in_scope(pool))),
        Program::SpawnInside => Box::new(move || spawned(TASKS, || inside(pool))),
        Program::SpawnOutside => Box::new(move || spawned(TASKS, || outside(pool))),
        Program::SpawnBatch => Box::new(move || spawned(TASKS, || batch(pool))),
        Program::SpawnTree => Box::new(move || spawned(TASKS, || tree(pool))),
        Program::SpawnJoin => {
            Box::new(move || spawned(JOINED, || pool.install(|| join_each(pool))))
        }
        Program::BatchJoin { size } => {
            Box::new(move || spawned(JOINED, || pool.install(|| join_batches(pool, size))))
        }
        Program::SpawnJoinTree => {
            Box::new(move || spawned(TREE, || pool.install(|| join_tree(pool, 0))))
        }
        Program::BatchJoinTree => {
            Box::new(move || spawned(TREE, || pool.install(|| join_batch_tree(pool, 0))))
        }
        Program::Answer { calls } => Box::new(move || answers(pool, calls)),
        Program::ReduceOutside { items, calls } => {
            let (items, expected) = summands(items);
            Box::new(move || sums(&items, expected, calls))
        }
        Program::ReduceInside { items, calls } => {
            let (items, expected) = summands(items);
            Box::new(move || pool.install(|| sums(&items, expected, calls)))
        }
        Program::Sort { items } => sort(items),
        Program::Pipeline { batches } => pipeline(pool, batches),
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let found = work();
    (found, start.elapsed())
}

fn per(time: Duration, operations: u64) -> f64 {
    time.as_secs_f64() * 1e9 / operations as f64
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(move || fib(n - 1), move || fib(n - 2));
    a + b
}

/// Measures from the first task until the last has run, and verifies that each ran once.
fn spawned(tasks: u64, spawn: impl FnOnce()) -> f64 {
    let lap = Lap::begin();
    spawn();
    per(lap.wait("heist", tasks).time, tasks)
}

fn in_scope(pool: &Pool) {
    pool.install(|| {
        scope(|scope| {
            for index in 0..SCOPE_TASKS {
                scope.spawn(move |_| Board::get().tick(index));
            }
        });
    });
}

fn inside(pool: &'static Pool) {
    drop(pool.spawn(move || {
        for index in 1..TASKS {
            drop(pool.spawn(move || Board::get().tick(index)));
        }
        Board::get().tick(0);
    }));
}

fn outside(pool: &Pool) {
    for index in 0..TASKS {
        drop(pool.spawn(move || Board::get().tick(index)));
    }
}

fn batch(pool: &Pool) {
    drop(pool.spawn_batch((0..TASKS).map(|index| move || Board::get().tick(index))));
}

fn tree(pool: &'static Pool) {
    drop(pool.spawn(move || grow(pool, 0)));
}

/// The children of a task are numbered as in a binary heap, so that every number has one parent.
fn grow(pool: &'static Pool, index: u64) {
    for child in [2 * index + 1, 2 * index + 2] {
        if child < TASKS {
            drop(pool.spawn(move || grow(pool, child)));
        }
    }
    Board::get().tick(index);
}

fn join_each(pool: &Pool) {
    for index in 0..JOINED {
        pool.spawn(move || Board::get().tick(index)).join().expect("no panic");
    }
}

fn join_batches(pool: &Pool, size: u64) {
    for first in (0..JOINED).step_by(size as usize) {
        let tasks = (first..first + size).map(|index| move || Board::get().tick(index));
        pool.spawn_batch(tasks).join().expect("no panic");
    }
}

/// Returns the children of a task of the tree, numbered as in a binary heap.
fn children(index: u64) -> impl Iterator<Item = u64> {
    (2 * index + 1..=2 * index + 2).filter(|child| *child < TREE)
}

fn join_tree(pool: &'static Pool, index: u64) {
    let spawn = |child| pool.spawn(move || join_tree(pool, child));
    let handles: Vec<_> = children(index).map(spawn).collect();
    handles.into_iter().for_each(|handle| handle.join().expect("no panic"));
    Board::get().tick(index);
}

fn join_batch_tree(pool: &'static Pool, index: u64) {
    if 2 * index + 1 < TREE {
        let tasks = children(index).map(|child| move || join_batch_tree(pool, child));
        pool.spawn_batch(tasks).join().expect("no panic");
    }
    Board::get().tick(index);
}

/// Returns the nanoseconds that an answer of the idle pool takes, without the pauses.
fn answers(pool: &Pool, calls: u32) -> f64 {
    let mut total = Duration::ZERO;
    for number in 0..calls {
        std::thread::sleep(Duration::from_millis(1));
        let (found, time) = timed(|| pool.spawn(move || number + 1).join().expect("no panic"));
        assert_eq!(found, number + 1, "wrong result");
        total += time;
    }
    per(total, calls.into())
}

/// Returns numbers whose sum does not overflow, and their sum.
fn summands(count: usize) -> (Vec<u64>, u64) {
    let items: Vec<u64> = numbers(count).map(|number| number >> 32).collect();
    let sum = items.iter().sum();
    (items, sum)
}

fn sums(items: &[u64], expected: u64, calls: u32) -> f64 {
    let calls_all = || {
        for _ in 0..calls {
            let sum =
                parallel::reduce(black_box(items), || 0, |sum, item| sum + item, |a, b| a + b);
            assert_eq!(sum, expected, "wrong result");
        }
    };
    per(timed(calls_all).1, calls.into())
}

fn sort(count: usize) -> Run {
    let unsorted: Vec<u64> = numbers(count).collect();
    let mut expected = unsorted.clone();
    expected.sort_unstable();
    let mut items = unsorted.clone();
    Box::new(move || {
        items.copy_from_slice(&unsorted);
        let ((), time) = timed(|| parallel::sort_unstable(&mut items));
        assert!(items == expected, "wrong result");
        per(time, 1)
    })
}

fn pipeline(pool: &'static Pool, batches: u64) -> Run {
    let items = move || 0..black_box(batches) * BATCH as u64;
    let all: Vec<u64> = items().collect();
    let sum = |sum: u64, result: u64| sum.wrapping_add(result | 1);
    let expected = all.chunks(BATCH).map(hash).fold(0, sum);
    Box::new(move || {
        let mut found = 0;
        let run = || {
            Pipeline::new(items())
                .batch(BATCH)
                .map_batch(|batch| hash(batch))
                .distribute(Distribution::Pull)
                .in_flight(IN_FLIGHT)
                .run(pool, |result| found = sum(found, result))
        };
        let (report, time) = timed(run);
        assert_eq!(report.expect("no stage fails").batches, batches, "wrong result");
        assert_eq!(found, expected, "wrong result");
        per(time, batches)
    })
}

/// Takes about 2.2 ns a number on the machine of the records. Each number depends on the one before, so that no
/// compiler finds a shorter way.
#[inline(never)]
fn hash(batch: &[u64]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    batch.iter().fold(0, |hash: u64, number| {
        let hash = (hash ^ number).wrapping_mul(ODD);
        (hash ^ (hash >> 32)).wrapping_mul(ODD)
    })
}
