//! The contract of sharing a pool: a pipeline runs inside a task, inside another pipeline and beside other
//! work of its pool, and starves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::pipeline::{Pipeline, Stage};
use heist::{CancelToken, JoinHandle, Pool};

use crate::common::pipeline::{
    CancelOnDrop, Fault, How, Way, assert_cancelled, assert_works, stealing_ways, ways,
};
use crate::common::{Kind, ThreadGroup, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    inside_a_task,
    inside_many_tasks,
    inside_a_join,
    inside_a_scope,
    on_another_pool,
    in_a_stage,
    in_a_stage_of_another_pool,
    in_a_source,
    in_a_sink,
    failure_inside,
    two_at_once,
    beside_spawns,
    spawns_from_everywhere,
    joins_in_stages,
    where_stages_run,
}

/// Returns the sum of some squares, computed by a pipeline.
fn squares(pool: &Pool, way: Way, items: u64) -> u64 {
    let mut sum = 0;
    let pipeline = Pipeline::new(0..items).batch(3).in_flight(4).map(|n| n * n);
    way.of(pipeline).run(pool, |n| sum += n).expect("an end");
    sum
}

fn inside_a_task(kind: Kind) {
    for workers in [1, 2] {
        let pool = Arc::new(kind.pool(workers));
        for way in ways() {
            let inner = Arc::clone(&pool);
            let task = pool.spawn(move || squares(&inner, way, 100));
            assert_eq!(task.join().expect("a result"), 328_350, "{way:?}");
            assert_eq!(pool.install(|| squares(&pool, way, 100)), 328_350, "{way:?}");
        }
    }
}

/// More pipelines than workers: each waiting task lets its worker run the others.
fn inside_many_tasks(kind: Kind) {
    for workers in [1, 2] {
        let pool = Arc::new(kind.pool(workers));
        let task = |way| {
            let inner = Arc::clone(&pool);
            pool.spawn(move || squares(&inner, way, 30))
        };
        let tasks: Vec<_> = ways().map(task).collect();
        for result in tasks.into_iter().map(JoinHandle::join) {
            assert_eq!(result.expect("a result"), 8555);
        }
    }
}

fn inside_a_join(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let both = || heist::join(|| squares(&pool, way, 100), || squares(&pool, way, 30));
            assert_eq!(pool.install(both), (328_350, 8555), "{way:?}");
        }
    }
}

fn inside_a_scope(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in stealing_ways() {
            let sum = AtomicUsize::new(0);
            pool.install(|| {
                heist::scope(|scope| {
                    for _ in 0..5 {
                        scope.spawn(|_| {
                            let part = squares(&pool, way, 30) as usize;
                            sum.fetch_add(part, Ordering::Relaxed);
                        });
                    }
                });
            });
            assert_eq!(sum.into_inner(), 5 * 8555, "{way:?}");
        }
    }
}

fn on_another_pool(kind: Kind) {
    let (pool, other) = (kind.pool(1), kind.pool(1));
    for way in ways() {
        assert_eq!(pool.install(|| squares(&other, way, 100)), 328_350, "{way:?}");
        let there_and_back = || other.install(|| squares(&pool, way, 100));
        assert_eq!(pool.install(there_and_back), 328_350, "{way:?}");
    }
}

/// Each worker of the outer pipeline waits for an inner pipeline on the same workers.
fn in_a_stage(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let mut sum = 0;
            let outer = Pipeline::new(0..8).batch(1).map(|_| squares(&pool, way, 30));
            way.of(outer).run(&pool, |part| sum += part).expect("an end");
            assert_eq!(sum, 8 * 8555, "{way:?}");
        }
    }
}

fn in_a_stage_of_another_pool(kind: Kind) {
    let (pool, other) = (kind.pool(2), kind.pool(1));
    for way in ways() {
        let mut sum = 0;
        let outer = Pipeline::new(0..8).batch(1).map(|_| squares(&other, way, 30));
        way.of(outer).run(&pool, |part| sum += part).expect("an end");
        assert_eq!(sum, 8 * 8555, "{way:?}");
    }
}

/// The items of one pipeline are the results of another on the same pool.
fn in_a_source(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let first = way.of(Pipeline::new(0..50_u64).batch(3).in_flight(2).map(|n| n * n));
            let first = first.results(&pool).expect("a start");
            let mut sum = 0;
            let second = Pipeline::try_new(first).batch(4).in_flight(2).map(|n| n + 1);
            way.of(second).run(&pool, |n| sum += n).expect("an end");
            assert_eq!(sum, 40_425 + 50, "{way:?}");
        }
    }
}

fn in_a_sink(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways() {
            let mut sum = 0;
            let outer = Pipeline::new(0..8).batch(1);
            way.of(outer).run(&pool, |_| sum += squares(&pool, way, 30)).expect("an end");
            assert_eq!(sum, 8 * 8555, "{way:?}");
        }
    }
}

/// A failure of the inner pipeline that a stage returns is a failure of the outer pipeline.
fn failure_inside(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| way.ordered) {
            let fault = Fault { stage: Stage::Step(1), how: How::Error, item: 17 };
            let outer = Pipeline::new(0..8).batch(1).try_map(|n| {
                let inner = Pipeline::new(0..20).batch(3).try_map(|item| {
                    if n == 5 { fault.check(Stage::Step(1), item) } else { Ok(()) }
                });
                way.of(inner).run(&pool, |()| ())
            });
            let error = way.of(outer).run(&pool, drop).expect_err("a fault");
            let text = "stage 1 failed at item 5 (batch 5): stage 1 failed at item 17 (batch 5): planned: 17";
            assert_eq!(error.to_string(), text, "{way:?}");
            assert_works(&pool);
        }
    }
}

/// Two runs from external threads: neither waits for the end of the other.
fn two_at_once(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            thread::scope(|scope| {
                let _cancels = CancelOnDrop(&token);
                let endless = scope.spawn(|| {
                    let pipeline = Pipeline::new(0_u64..).batch(3).in_flight(20).cancel_on(&token);
                    way.of(pipeline.map(|n| n + 1)).run(&pool, |_| ())
                });
                assert_eq!(squares(&pool, way, 100), 328_350, "{way:?}");
                token.cancel();
                assert_cancelled(endless.join().expect("no panic"));
            });
        }
    }
}

/// A pipeline that never runs out of work does not starve tasks from outside.
fn beside_spawns(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let token = CancelToken::new();
            let mut tasks: Option<Vec<JoinHandle<usize>>> = None;
            let sink = |n: usize| {
                if n == 200 {
                    tasks = Some((0..10).map(|n| pool.spawn(move || n)).collect());
                }
                if tasks.iter().flatten().any(|task| !task.is_finished()) {
                    return;
                }
                if tasks.is_some() {
                    token.cancel();
                }
            };
            let pipeline = Pipeline::new(0..).batch(2).in_flight(50).cancel_on(&token).map(|n| n);
            assert_cancelled(way.of(pipeline).run(&pool, sink));
            for (n, task) in tasks.expect("tasks").into_iter().enumerate() {
                assert_eq!(task.join().expect("a result"), n, "{way:?}");
            }
        }
    }
}

/// A source, a stage and a sink may spawn tasks on the pool and wait for them.
fn spawns_from_everywhere(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let one_more = |n: usize| pool.spawn(move || n + 1).join().expect("a result");
            let mut results = Vec::new();
            let pipeline = Pipeline::new((0..40).map(one_more)).batch(3).map(one_more);
            way.of(pipeline).run(&pool, |n| results.push(one_more(n))).expect("an end");
            way.assert_all(results, &(3..43).collect::<Vec<_>>());
        }
    }
}

/// Forks in a stage run on the pool.
fn joins_in_stages(kind: Kind) {
    fn sum(numbers: &[usize]) -> usize {
        match numbers {
            [] => 0,
            [one] => *one,
            _ => {
                let (left, right) = numbers.split_at(numbers.len() / 2);
                let (a, b) = heist::join(|| sum(left), || sum(right));
                a + b
            }
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways() {
            let mut results = Vec::new();
            let pipeline = Pipeline::new(0..960).batch(32).map_batch(|batch| sum(batch));
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            way.assert_all(results, &(0..30).map(|n| 1024 * n + 496).collect::<Vec<_>>());
        }
    }
}

/// Stages run on the pool, whichever thread starts the run, and no thread is left over.
fn where_stages_run(kind: Kind) {
    for way in ways() {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, 2).build().expect("a pool");
        let caller = thread::current().id();
        let mut here = 0;
        let pipeline = Pipeline::new(0..50).batch(3).map(|_| group.has_current());
        let sink = |on_the_pool: bool| {
            assert!(on_the_pool, "{way:?}");
            here += usize::from(thread::current().id() == caller);
        };
        way.of(pipeline).run(&pool, sink).expect("an end");
        assert_eq!(here, 50, "{way:?}");
        eventually("only the workers are left", || group.count() <= 2);
        drop(pool);
        group.assert_gone();
    }
}
