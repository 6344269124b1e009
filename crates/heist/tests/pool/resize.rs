//! The contract of `Pool::resize`: the pool uses as many workers as it is told to, and nothing is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use heist::pipeline::Pipeline;
use heist::{BuildError, Pool, ResizeError};

use crate::common::{
    Gate, Kind, assert_balanced, assert_counts, eventually, for_every_strategy, held_task,
};

for_every_strategy! {
    starts_with_fewer,
    fewer_run_at_a_time,
    grows_at_once,
    what_a_retired_worker_had_queued,
    a_task_resizes_its_pool,
    waits_in_a_small_pool,
    waits_without_more_threads,
    a_retired_worker_instead_of_a_task_on_top,
    broadcasts,
    up_and_down_under_load,
    stop_while_small,
    stop_now_while_small,
    races_with_a_stop,
    loops_and_scopes,
    a_scope_whose_part_ends_on_a_retired_worker,
    pipelines_beside_resizes,
}

/// Waits until the pool has retired all workers that it does not use. None of them may be kept busy.
fn settle(pool: &Pool) {
    let unused: Vec<_> = (pool.workers()..pool.max_workers()).collect();
    eventually("workers retire", || {
        let text = pool.dump().to_string();
        let list = text.split("retired workers: [").nth(1).and_then(|rest| rest.split(']').next());
        let mut retired: Vec<usize> =
            list.into_iter().flat_map(|list| list.split(", ")).flat_map(str::parse).collect();
        retired.sort_unstable();
        retired == unused
    });
}

/// Returns how many tasks ran at the same time at most.
fn most_at_a_time(pool: &Pool) -> usize {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks = (0..200).map(|_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        pool.spawn(move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
        })
    });
    tasks.collect::<Vec<_>>().into_iter().for_each(|task| task.join().unwrap());
    most.load(Ordering::SeqCst)
}

/// Checks that so many tasks run at the same time.
fn run_together(pool: &Pool, workers: usize) {
    let all = Arc::new(Barrier::new(workers));
    let wait = |_| {
        let all = Arc::clone(&all);
        pool.spawn(move || _ = all.wait())
    };
    (0..workers).map(wait).collect::<Vec<_>>().into_iter().for_each(|task| task.join().unwrap());
}

fn end(pool: &Pool) {
    pool.stop();
    assert_balanced(&pool.stats());
    assert_eq!(pool.stats().threads, 0);
}

fn starts_with_fewer(kind: Kind) {
    let pool = kind.builder(2).max_workers(5).build().unwrap();
    assert_eq!((pool.workers(), pool.max_workers()), (2, 5));
    settle(&pool);
    assert!(most_at_a_time(&pool) <= 2);
    pool.resize(5).unwrap();
    run_together(&pool, 5);
}

fn fewer_run_at_a_time(kind: Kind) {
    let pool = kind.pool(4);
    for workers in [1, 3, 2, 1] {
        pool.resize(workers).unwrap();
        assert_eq!(pool.workers(), workers);
        settle(&pool);
        assert!(most_at_a_time(&pool) <= workers);
    }
    end(&pool);
}

fn grows_at_once(kind: Kind) {
    let pool = kind.pool(4);
    for _ in 0..20 {
        pool.resize(1).unwrap();
        let (release, held) = held_task(&pool);
        let all = Arc::new(Barrier::new(3));
        let others = [(); 3].map(|()| {
            let all = Arc::clone(&all);
            pool.spawn(move || _ = all.wait())
        });
        // Whether a worker sleeps, runs or has retired, these have to run beside the one that is held.
        pool.resize(4).unwrap();
        others.into_iter().for_each(|task| task.join().unwrap());
        drop(release);
        held.join().unwrap();
    }
}

fn what_a_retired_worker_had_queued(kind: Kind) {
    let pool = Arc::new(kind.pool(3));
    let done = Arc::new(AtomicUsize::new(0));
    let (all, resized) = (Arc::new(Barrier::new(4)), Arc::new(Barrier::new(4)));
    for _ in 0..3 {
        let (here, done) = (Arc::clone(&pool), Arc::clone(&done));
        let (all, resized) = (Arc::clone(&all), Arc::clone(&resized));
        pool.spawn(move || {
            // Each of them has a worker, which is to retire when this ends, or not.
            all.wait();
            resized.wait();
            for _ in 0..100 {
                let done = Arc::clone(&done);
                here.spawn(move || _ = done.fetch_add(1, Ordering::Relaxed));
            }
        });
    }
    all.wait();
    pool.resize(1).unwrap();
    resized.wait();
    settle(&pool);
    eventually("everything is done", || done.load(Ordering::Relaxed) == 300);
}

fn a_task_resizes_its_pool(kind: Kind) {
    let pool = kind.pool(3);
    let handle = pool.handle();
    for round in 0..50 {
        let handle = handle.clone();
        pool.spawn(move || handle.resize(1 + round % 3)).join().unwrap().unwrap();
        assert_eq!(pool.workers(), 1 + round % 3);
        assert_eq!(pool.install(|| heist::join(|| 1, || 2)), (1, 2));
    }
}

fn chain(pool: &Arc<Pool>, depth: usize) -> usize {
    let here = Arc::clone(pool);
    pool.spawn(move || if depth == 0 { 1 } else { 1 + chain(&here, depth - 1) }).join().unwrap()
}

/// Tasks that wait go on, whatever is retired meanwhile.
fn waits_in_a_small_pool(kind: Kind) {
    let pool = Arc::new(kind.pool(4));
    let (release, held) = held_task(&pool);
    let waiting: Vec<_> = {
        let held = Arc::new(std::sync::Mutex::new(Some(held)));
        (0..4)
            .map(|_| {
                let (here, held) = (Arc::clone(&pool), Arc::clone(&held));
                pool.spawn(move || {
                    let held = held.lock().unwrap().take();
                    if let Some(held) = held {
                        held.join().unwrap();
                    }
                    chain(&here, 20)
                })
            })
            .collect()
    };
    pool.resize(1).unwrap();
    drop(release);
    waiting.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), 21));
    assert_eq!(chain(&pool, 50), 51);
}

/// The last worker that does not wait is not retired.
fn waits_without_more_threads(kind: Kind) {
    for _ in 0..20 {
        let pool = Arc::new(kind.builder(3).max_threads(3).build().unwrap());
        let waiting: Vec<_> = (0..6)
            .map(|_| {
                let here = Arc::clone(&pool);
                pool.spawn(move || chain(&here, 5))
            })
            .collect();
        pool.resize(1).unwrap();
        waiting.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), 6));
        pool.resize(3).unwrap();
        assert_eq!(chain(&pool, 5), 6);
    }
}

/// Where a task that waits cannot have another thread, that of a retired worker runs what is queued.
fn a_retired_worker_instead_of_a_task_on_top(kind: Kind) {
    let pool = Arc::new(kind.builder(2).max_threads(2).build().unwrap());
    for _ in 0..5 {
        pool.resize(1).unwrap();
        settle(&pool);
        let here = Arc::clone(&pool);
        let waits = move || {
            let queued = here.spawn(|| thread::current().id());
            assert_ne!(heist::block_on(queued).unwrap(), thread::current().id());
        };
        pool.spawn(waits).join().unwrap();
        pool.resize(2).unwrap();
    }
}

fn broadcasts(kind: Kind) {
    let pool = kind.pool(4);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_usize.. {
                pool.resize(1 + round % 4).unwrap();
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..200 {
            let numbers = pool.broadcast(|worker| {
                assert_eq!(heist::worker_index(), Some(worker));
                worker
            });
            assert!((1..=4).contains(&numbers.len()));
            assert!(numbers.iter().copied().eq(0..numbers.len()));
            pool.install(|| assert!((1..=4).contains(&pool.broadcast(|_| ()).len())));
        }
        ends.store(true, Ordering::Relaxed);
    });
    end(&pool);
}

fn tree(depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let (a, b) = heist::join(|| tree(depth - 1), || heist::spawn(move || tree(depth - 1)).join());
    a + b.unwrap()
}

fn up_and_down_under_load(kind: Kind) {
    let pool = kind.pool(6);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut size = 1;
            while !ends.load(Ordering::Relaxed) {
                size = size * 5 % 7;
                pool.resize(size).unwrap();
                thread::yield_now();
            }
        });
        for _ in 0..20 {
            assert_eq!(pool.install(|| tree(8)), 256);
            let batch = pool.spawn_batch((0..100).map(|n| move || n));
            assert_eq!(batch.join().unwrap().len(), 100);
        }
        ends.store(true, Ordering::Relaxed);
    });
    end(&pool);
}

fn stop_while_small(kind: Kind) {
    for _ in 0..20 {
        let pool = kind.builder(1).max_workers(4).build().unwrap();
        let tasks: Vec<_> = (0..50).map(|n| pool.spawn(move || n)).collect();
        pool.stop();
        assert_counts(&pool, 50, 0, 0);
        assert!(tasks.into_iter().all(|task| task.join().is_ok()));
        assert_eq!(pool.stats().threads, 0);
        pool.resize(2).unwrap();
    }
}

fn stop_now_while_small(kind: Kind) {
    let pool = kind.pool(3);
    pool.resize(1).unwrap();
    settle(&pool);
    let gate = Gate::close(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let ran = Arc::clone(&ran);
        drop(pool.spawn(move || ran.fetch_add(1, Ordering::SeqCst)));
    }
    gate.stop_now(&pool);
    end(&pool);
    assert_eq!(ran.load(Ordering::SeqCst), 0, "the only worker was busy");
}

fn races_with_a_stop(kind: Kind) {
    for round in 0..50 {
        let pool = kind.pool(3);
        thread::scope(|scope| {
            scope.spawn(|| (0..20).for_each(|n| pool.resize(1 + (n + round) % 3).unwrap()));
            scope.spawn(|| (0..20).for_each(|_| drop(pool.spawn(|| ()))));
            pool.stop();
        });
        end(&pool);
    }
}

fn loops_and_scopes(kind: Kind) {
    let pool = kind.pool(4);
    for workers in [1, 4, 2] {
        pool.resize(workers).unwrap();
        let sum: u64 = pool.install(|| {
            heist::parallel::reduce(0..10_000_u64, || 0, |sum, n| sum + n, |a, b| a + b)
        });
        assert_eq!(sum, 49_995_000);
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
            }
        });
        assert_eq!(count.into_inner(), 100);
    }
}

/// What a retired worker owes to a scope is returned, so that the scope ends.
fn a_scope_whose_part_ends_on_a_retired_worker(kind: Kind) {
    let pool = kind.pool(2);
    for _ in 0..20 {
        pool.resize(1).unwrap();
        settle(&pool);
        let (has_begun, may_end) = (AtomicBool::new(false), AtomicBool::new(false));
        pool.scope(|scope| {
            assert_eq!(heist::worker_index(), Some(0));
            pool.resize(2).unwrap();
            scope.spawn(|_| {
                has_begun.store(true, Ordering::SeqCst);
                while !may_end.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            });
            // The other worker takes the part.
            while !has_begun.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            pool.resize(1).unwrap();
            may_end.store(true, Ordering::SeqCst);
        });
    }
    end(&pool);
}

fn pipelines_beside_resizes(kind: Kind) {
    let pool = kind.pool(6);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_usize.. {
                pool.resize(1 + round % 6).unwrap();
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..200 {
            let mut sum = 0;
            let run = Pipeline::new(0..200_usize).batch(4).map(|n| n + 1).run(&pool, |n| sum += n);
            run.unwrap();
            assert_eq!(sum, 20_100);
        }
        ends.store(true, Ordering::Relaxed);
    });
    end(&pool);
}

#[test]
fn sizes_that_cannot_be() {
    let pool = Pool::builder().workers(2).max_workers(3).build().unwrap();
    assert_eq!(pool.resize(0), Err(ResizeError::ZeroWorkers));
    let above = ResizeError::AboveMaximum { asked: 4, max_workers: 3 };
    assert_eq!(pool.resize(4), Err(above));
    assert_eq!(pool.handle().resize(4), Err(above));
    assert!(above.to_string().contains("max_workers(4)"), "{above}");
    assert_eq!(pool.workers(), 2, "nothing has changed");
    let fewer = Pool::builder().workers(3).max_workers(2).build().unwrap_err();
    assert!(matches!(fewer, BuildError::TooFewMaxWorkers { max_workers: 2, workers: 3 }));
    let threads = Pool::builder().workers(1).max_workers(8).max_threads(4).build().unwrap_err();
    assert!(matches!(threads, BuildError::TooFewThreads { max_threads: 4, workers: 8 }));
}
