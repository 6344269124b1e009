//! Pools with a bound on queued tasks: spawners wait inside and outside, and beside a stop.

use std::sync::Arc;

use heist::{JoinError, Pool, Strategy};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::scenarios::{exact, scenarios};

scenarios! {
    a_task_spawns_more_than_the_bound
    spawners_inside_and_outside
    spawners_with_no_more_threads
    spawners_beside_a_stop
    spawners_beside_a_stop_now
    batches_beside_spawners
    tries_beside_spawners
}

fn bounded(strategy: Strategy, workers: usize, bound: usize) -> Arc<Pool> {
    let builder = Pool::builder().workers(workers).strategy(strategy).max_queued(bound);
    Arc::new(builder.build().expect("a small pool"))
}

fn a_task_spawns_more_than_the_bound(strategy: Strategy) {
    let pool = bounded(strategy, 1, 1);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    pool.spawn(move || {
        for _ in 0..3 {
            let count = Arc::clone(&count);
            heist::spawn(move || _ = count.fetch_add(1, SeqCst));
        }
    });
    pool.stop();
    assert_eq!(ran.load(SeqCst), 3);
    exact(&pool);
}

fn spawners_inside_and_outside(strategy: Strategy) {
    let pool = bounded(strategy, 2, 1);
    let task = pool.spawn(|| {
        let inner = [heist::spawn(|| 1), heist::spawn(|| 2)];
        inner.into_iter().map(|task| task.join().unwrap()).sum::<usize>()
    });
    let here = Arc::clone(&pool);
    let outside = thread::spawn(move || {
        (0..2).map(|n| here.spawn(move || n)).map(|task| task.join().unwrap()).sum::<usize>()
    });
    assert_eq!(task.join().unwrap(), 3);
    assert_eq!(outside.join().unwrap(), 1);
    pool.stop();
    exact(&pool);
}

/// Tasks run on top of spawners that wait.
fn spawners_with_no_more_threads(strategy: Strategy) {
    let builder = Pool::builder().workers(1).strategy(strategy).max_threads(1).max_queued(1);
    let pool = builder.build().expect("a small pool");
    let task = pool.spawn(|| {
        let inner = [(); 2].map(|()| {
            heist::spawn(|| {
                let leaves = [heist::spawn(|| 1), heist::spawn(|| 1)];
                leaves.into_iter().map(|leaf| leaf.join().unwrap()).sum::<usize>()
            })
        });
        inner.into_iter().map(|task| task.join().unwrap()).sum::<usize>()
    });
    assert_eq!(task.join().unwrap(), 4);
    pool.stop();
    exact(&pool);
}

/// A task spawns, which a stop waits for, and so does a thread outside, which it refuses.
fn spawners_beside_a_stop(strategy: Strategy) {
    let pool = bounded(strategy, 1, 1);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let task = pool.spawn(move || {
        for _ in 0..2 {
            let count = Arc::clone(&count);
            heist::spawn(move || _ = count.fetch_add(1, SeqCst));
        }
    });
    let here = Arc::clone(&pool);
    let outside = thread::spawn(move || {
        let tasks = [here.spawn(|| ()), here.spawn(|| ())];
        let ended = tasks.map(|task| task.join());
        assert!(ended.iter().all(|end| matches!(end, Ok(()) | Err(JoinError::Stopped))));
    });
    pool.stop();
    outside.join().unwrap();
    task.join().unwrap();
    assert_eq!(ran.load(SeqCst), 2);
    exact(&pool);
}

fn spawners_beside_a_stop_now(strategy: Strategy) {
    let pool = bounded(strategy, 1, 1);
    let task = pool.spawn(|| (0..2).for_each(|_| drop(heist::spawn(|| ()))));
    let here = Arc::clone(&pool);
    let outside = thread::spawn(move || (0..2).for_each(|_| drop(here.spawn(|| ()))));
    pool.stop_now();
    outside.join().unwrap();
    assert!(matches!(task.join(), Ok(()) | Err(JoinError::Cancelled)));
    exact(&pool);
}

fn batches_beside_spawners(strategy: Strategy) {
    let pool = bounded(strategy, 2, 1);
    let here = Arc::clone(&pool);
    let outside = thread::spawn(move || {
        let batch = here.spawn_batch([|| 1, || 2, || 3]);
        assert_eq!(here.spawn(|| 4).join().unwrap(), 4);
        batch.join().unwrap()
    });
    let here = Arc::clone(&pool);
    let task = pool.spawn(move || here.spawn_batch([|| 5, || 6]).join().unwrap());
    assert_eq!(outside.join().unwrap(), [1, 2, 3]);
    assert_eq!(task.join().unwrap(), [5, 6]);
    pool.stop();
    exact(&pool);
}

fn tries_beside_spawners(strategy: Strategy) {
    let pool = bounded(strategy, 1, 1);
    let here = Arc::clone(&pool);
    let tries = thread::spawn(move || {
        (0..3)
            .filter_map(|n| here.try_spawn(move || n).ok())
            .for_each(|task| _ = task.join().unwrap());
    });
    (0..3).for_each(|n| assert_eq!(pool.spawn(move || n).join().unwrap(), n));
    tries.join().unwrap();
    pool.stop();
    exact(&pool);
}
