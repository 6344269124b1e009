//! Near tasks: none is lost or stranded, whatever the worker does that it is near.

use heist::{CancelToken, Strategy};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { behind_a_long_task from_two_threads parts_of_a_scope beside_a_resize beside_a_stop cancelled_beside_a_worker }

/// A task that is near a worker must run while that worker is busy with another one.
fn behind_a_long_task(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (tell, told) = shuttle::sync::mpsc::channel();
    let long = pool.task().near(0).spawn(move || told.recv().unwrap());
    let short = pool.task().near(0).spawn(move || tell.send(1).unwrap());
    assert_eq!(long.join().unwrap(), 1);
    short.join().unwrap();
    pool.stop();
    exact(&pool);
    let total = pool.stats().total;
    assert_eq!(total.near_tasks_kept + total.near_tasks_taken, 2);
}

/// Two threads push near both workers, and a task does as well.
fn from_two_threads(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let other = thread::spawn(move || {
        let tasks = [0, 1].map(|near| here.task().near(near).spawn(move || near));
        tasks.map(|task| task.join().unwrap())
    });
    let here = pool.clone();
    let outer = pool.task().near(1).spawn(move || {
        let task = here.task().near(0).spawn(|| 2);
        task.join().unwrap()
    });
    assert_eq!(outer.join().unwrap(), 2);
    assert_eq!(other.join().unwrap(), [0, 1]);
    pool.stop();
    exact(&pool);
}

/// A scope waits for parts near a worker that is busy, and near its own one.
fn parts_of_a_scope(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (tell, told) = shuttle::sync::mpsc::channel::<()>();
    let long = pool.task().near(1).spawn(move || _ = told.recv());
    let mut sums = [0; 3];
    pool.install(|| {
        heist::scope(|scope| {
            for (n, sum) in sums.iter_mut().enumerate() {
                scope.task().near(n).spawn_in(scope, move |_| *sum = n);
            }
        });
    });
    assert_eq!(sums, [0, 1, 2]);
    drop(tell);
    long.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// The worker retires while a task comes that is near it.
fn beside_a_resize(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let resizer = thread::spawn(move || {
        here.resize(1).unwrap();
        here.resize(2).unwrap();
    });
    let tasks = [1, 0].map(|near| pool.task().near(near).spawn(move || near));
    assert_eq!(tasks.map(|task| task.join().unwrap()), [1, 0]);
    resizer.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// A near task comes while the pool is stopped: it runs or is refused.
fn beside_a_stop(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let here = pool.clone();
    let spawner = thread::spawn(move || {
        let task = here.task().near(1).spawn(|| 1);
        if let Ok(one) = task.join() {
            assert_eq!(one, 1);
        }
    });
    pool.stop();
    spawner.join().unwrap();
    exact(&pool);
}

/// Tasks are cancelled while their worker comes to them.
fn cancelled_beside_a_worker(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let token = CancelToken::new();
    let tasks = [0, 0, 1].map(|near| pool.task().near(near).cancel_on(&token).spawn(|| 1));
    tasks[0].cancel();
    token.cancel();
    for task in tasks {
        if let Ok(one) = task.join() {
            assert_eq!(one, 1);
        }
    }
    pool.stop();
    exact(&pool);
}
