//! The contract of the limit on threads: the pool never has more of them, and tasks that wait for each other still end
//! when there is no thread that could take over a core.
//!
//! Each task here waits only for what it has started itself, or for another pool. So nothing waits for a task beneath
//! it on the same stack.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use heist::{BuildError, JoinHandle, Pool};

use crate::common::{Gate, Kind, WORKERS, assert_balanced, for_every_strategy};

for_every_strategy! {
    fewer_threads_than_workers,
    far_more_threads_than_workers,
    handles,
    scopes,
    batches,
    handles_scopes_and_batches,
    tasks_run_while_all_workers_wait,
    more_tasks_wait_than_there_may_be_threads,
}

/// It is refused before any thread is started.
fn fewer_threads_than_workers(kind: Kind) {
    for workers in WORKERS {
        for most in 0..workers {
            let (builder, threads) = kind.counted_builder(workers);
            match builder.max_threads(most).build() {
                Err(error @ BuildError::TooFewThreads { max_threads, workers: asked }) => {
                    assert_eq!((max_threads, asked), (most, workers));
                    assert!(error.to_string().contains(&most.to_string()), "{error}");
                    assert!(error.to_string().contains(&workers.to_string()), "{error}");
                }
                other => panic!("{most} threads for {workers} workers: {other:?}"),
            }
            assert_eq!(threads.ever(), 0);
        }
    }
}

/// The pool still starts no more threads than it needs.
fn far_more_threads_than_workers(kind: Kind) {
    let pool = kind.builder(2).max_threads(usize::MAX).build().expect("a pool");
    assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    pool.stop();
    assert_eq!(pool.stats().peak_threads, 2);
}

/// Runs a program on pools that may have no more threads than workers, or one more.
fn limited(kind: Kind, program: impl Fn(&Arc<Pool>)) {
    for workers in WORKERS {
        for most in [workers, workers + 1] {
            let (builder, threads) = kind.counted_builder(workers);
            let pool = Arc::new(builder.max_threads(most).build().expect("a pool"));
            program(&pool);
            pool.stop();
            let stats = pool.stats();
            assert_balanced(&stats);
            let peak = stats.peak_threads;
            assert!((workers..=most).contains(&peak), "{peak} threads, at most {most} allowed");
            assert!(threads.most() <= most, "{} threads, at most {most} allowed", threads.most());
            if most == workers {
                assert_eq!(stats.total.hand_offs, 0, "there was no thread for a core");
            }
        }
    }
}

/// How a task waits for its two children.
#[derive(Clone, Copy, Debug)]
enum By {
    Handle,
    Scope,
    Batch,
    /// In one of these ways, depending on the depth.
    Turns,
}

/// Grows a tree of tasks, each of which waits for two others, and returns the number of its leaves.
fn grow(pool: &Arc<Pool>, by: By, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let child = || {
        let pool = Arc::clone(pool);
        move || grow(&pool, by, depth - 1)
    };
    match (by, depth % 3) {
        (By::Handle, _) | (By::Turns, 0) => {
            let children = [pool.spawn(child()), pool.spawn(child())];
            children.into_iter().map(|child| child.join().expect("a result")).sum()
        }
        (By::Scope, _) | (By::Turns, 1) => {
            let leaves = AtomicUsize::new(0);
            heist::scope(|scope| {
                for child in [child(), child()] {
                    let leaves = &leaves;
                    scope.spawn(move |_| _ = leaves.fetch_add(child(), Ordering::Relaxed));
                }
            });
            leaves.into_inner()
        }
        (By::Batch, _) | (By::Turns, _) => {
            pool.spawn_batch([child(), child()]).join().expect("results").into_iter().sum()
        }
    }
}

/// Starts a tree of tasks.
fn plant(pool: &Arc<Pool>, by: By, depth: usize) -> JoinHandle<usize> {
    let here = Arc::clone(pool);
    pool.spawn(move || grow(&here, by, depth))
}

/// Several trees at a time.
fn trees(kind: Kind, by: By) {
    const DEPTH: usize = 7;
    limited(kind, |pool| {
        let trees = [(); 4].map(|()| plant(pool, by, DEPTH));
        for tree in trees {
            assert_eq!(tree.join().expect("a result"), 1 << DEPTH, "{by:?}");
        }
    });
}

fn handles(kind: Kind) {
    trees(kind, By::Handle);
}

fn scopes(kind: Kind) {
    trees(kind, By::Scope);
}

fn batches(kind: Kind) {
    trees(kind, By::Batch);
}

fn handles_scopes_and_batches(kind: Kind) {
    trees(kind, By::Turns);
}

/// Starts tasks that wait until the gate of another pool is opened, and returns when all of them have started.
fn waiters(here: &Pool, there: &Pool, count: usize) -> Vec<JoinHandle<usize>> {
    let (enter, entered) = mpsc::channel();
    let waiters: Vec<_> = (0..count)
        .map(|n| {
            let (slow, enter) = (there.spawn(move || n), enter.clone());
            here.spawn(move || {
                enter.send(()).expect("a test that waits");
                slow.join().expect("a result")
            })
        })
        .collect();
    waiters.iter().for_each(|_| entered.recv().expect("a task that has started"));
    waiters
}

fn assert_results(waiters: Vec<JoinHandle<usize>>) {
    for (n, waiter) in waiters.into_iter().enumerate() {
        assert_eq!(waiter.join().expect("a result"), n);
    }
}

/// As many tasks as there are workers wait for another pool, until all other tasks have ended.
fn tasks_run_while_all_workers_wait(kind: Kind) {
    const DEPTH: usize = 5;
    limited(kind, |here| {
        let there = kind.pool(1);
        let gate = Gate::close(&there);
        let waiters = waiters(here, &there, here.workers());
        for by in [By::Handle, By::Scope, By::Batch, By::Turns] {
            assert_eq!(plant(here, by, DEPTH).join().expect("a result"), 1 << DEPTH, "{by:?}");
        }
        gate.open();
        assert_results(waiters);
    });
}

/// The tasks wait for another pool until all of them have started: some of them on top of others.
fn more_tasks_wait_than_there_may_be_threads(kind: Kind) {
    limited(kind, |here| {
        let there = kind.pool(1);
        let gate = Gate::close(&there);
        let waiters = waiters(here, &there, 4 * here.workers());
        gate.open();
        assert_results(waiters);
    });
}
