//! Broadcasts of whole pools.

use heist::{Pool, Strategy};
use shuttle::sync::mpsc;
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { broadcasts broadcasts_at_once broadcast_beside_waits broadcast_beside_a_stop }

fn call(pool: &Pool) {
    let numbers = pool.broadcast(|worker| {
        assert_eq!(heist::worker_index(), Some(worker));
        worker
    });
    assert!(numbers.into_iter().eq(0..pool.workers()));
}

/// From outside, beside tasks, and from a task.
fn broadcasts(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let task = pool.spawn(|| heist::join(|| 1, || 2));
    call(&pool);
    assert_eq!(task.join().unwrap(), (1, 2));
    pool.install(|| call(&pool));
    pool.stop();
    exact(&pool);
}

/// Two tasks and a thread outside broadcast at the same time.
fn broadcasts_at_once(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let tasks = [(); 2].map(|()| {
        let here = pool.clone();
        pool.spawn(move || call(&here))
    });
    call(&pool);
    tasks.into_iter().for_each(|task| task.join().unwrap());
    pool.stop();
    exact(&pool);
}

/// Tasks wait for something that comes after the broadcast.
fn broadcast_beside_waits(strategy: Strategy) {
    let (other, pool) = (pool(strategy, 1), pool(strategy, 2));
    let (end, ended) = mpsc::channel();
    let held = other.spawn(move || ended.recv().unwrap());
    let first = pool.spawn(move || held.join().unwrap());
    let second = pool.spawn(move || first.join().unwrap());
    call(&pool);
    end.send(()).unwrap();
    second.join().unwrap();
    pool.stop();
    exact(&pool);
    other.stop();
}

/// A task of the pool broadcasts while the pool is stopped, which waits for that.
fn broadcast_beside_a_stop(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let task = pool.spawn(move || call(&here));
    let stopped = pool.clone();
    let stop = thread::spawn(move || stopped.stop());
    pool.stop();
    stop.join().unwrap();
    task.join().unwrap();
    exact(&pool);
}
