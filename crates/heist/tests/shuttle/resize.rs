//! Pools that are resized: nothing is lost, whatever a worker does when it is to retire.

use heist::{Pool, Strategy};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { smaller_beside_spawns smaller_and_larger broadcast_beside_a_resize resize_beside_a_stop smaller_beside_waits }

/// Tasks come from outside and from a task while the pool is made smaller.
fn smaller_beside_spawns(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let resizer = thread::spawn(move || here.resize(1).unwrap());
    let here = pool.clone();
    let outer = pool.spawn(move || here.spawn(|| 1).join().unwrap() + 1);
    let other = pool.spawn(|| 3);
    assert_eq!((outer.join().unwrap(), other.join().unwrap()), (2, 3));
    resizer.join().unwrap();
    assert_eq!(pool.spawn(|| 4).join().unwrap(), 4);
    pool.stop();
    exact(&pool);
}

/// A pool that was made smaller grows beside a task that waits for two others at once.
fn smaller_and_larger(strategy: Strategy) {
    let pool = pool(strategy, 2);
    pool.resize(1).unwrap();
    let here = pool.clone();
    let resizer = thread::spawn(move || here.resize(2).unwrap());
    assert_eq!(pool.install(|| heist::join(|| 1, || 2)), (1, 2));
    resizer.join().unwrap();
    // Both workers must be there.
    let (tell, told) = shuttle::sync::mpsc::channel();
    let first = pool.spawn(move || told.recv().unwrap());
    let second = pool.spawn(move || tell.send(5).unwrap());
    assert_eq!(first.join().unwrap(), 5);
    second.join().unwrap();
    pool.stop();
    exact(&pool);
}

fn numbers(pool: &Pool) {
    let numbers = pool.broadcast(|worker| worker);
    assert!(matches!(&numbers[..], [0] | [0, 1]));
}

/// A worker that has retired, or is about to, calls the closure of a broadcast.
fn broadcast_beside_a_resize(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let resizer = thread::spawn(move || here.resize(1).unwrap());
    numbers(&pool);
    resizer.join().unwrap();
    pool.install(|| numbers(&pool));
    pool.stop();
    exact(&pool);
}

/// A stop makes retired workers go on, and a resize has no effect after it.
fn resize_beside_a_stop(strategy: Strategy) {
    let pool = pool(strategy, 2);
    drop(pool.spawn(|| ()));
    let here = pool.clone();
    let resizer = thread::spawn(move || {
        here.resize(1).unwrap();
        here.resize(2).unwrap();
        here.resize(1).unwrap();
    });
    pool.stop();
    resizer.join().unwrap();
    exact(&pool);
    assert_eq!(pool.stats().threads, 0);
}

/// Tasks wait while workers retire.
fn smaller_beside_waits(strategy: Strategy) {
    let builder = Pool::builder().workers(2).max_threads(2).strategy(strategy);
    let pool = std::sync::Arc::new(builder.build().unwrap());
    let tasks = [(); 2].map(|()| {
        let here = pool.clone();
        pool.spawn(move || here.spawn(|| 1).join().unwrap())
    });
    pool.resize(1).unwrap();
    tasks.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), 1));
    pool.stop();
    exact(&pool);
}
