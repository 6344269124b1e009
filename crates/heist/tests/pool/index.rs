//! The contract of `worker_index`: the number of the worker that the calling thread is.

use std::sync::{Arc, Barrier, Mutex, mpsc};

use crate::common::{Kind, WORKERS, for_every_strategy, held_task};

for_every_strategy! {
    each_worker_has_its_own,
    none_outside,
    none_in_hooks,
    none_without_a_core,
    that_of_the_innermost_pool,
}

/// As many tasks as there are workers run at the same time, each on a worker of its own.
fn each_worker_has_its_own(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let all_run = Arc::new(Barrier::new(workers));
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                let all_run = Arc::clone(&all_run);
                pool.spawn(move || {
                    all_run.wait();
                    heist::worker_index()
                })
            })
            .collect();
        let mut indices: Vec<_> =
            tasks.into_iter().map(|task| task.join().expect("a result")).collect();
        indices.sort_unstable();
        assert!(indices.into_iter().eq((0..workers).map(Some)));
    }
}

fn none_outside(kind: Kind) {
    let pool = kind.pool(1);
    assert_eq!(heist::worker_index(), None);
    assert_eq!(pool.install(heist::worker_index), Some(0));
    assert_eq!(heist::worker_index(), None);
}

fn none_in_hooks(kind: Kind) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let [start, stop] = [(); 2].map(|()| {
        let seen = Arc::clone(&seen);
        move |_| seen.lock().expect("no panic").push(heist::worker_index())
    });
    let pool = kind.builder(2).on_thread_start(start).on_thread_stop(stop).build().expect("a pool");
    pool.stop();
    assert_eq!(*seen.lock().expect("no panic"), [None; 4]);
}

/// A task waits, and goes on while another task has the only core.
fn none_without_a_core(kind: Kind) {
    let (pool, other) = (kind.pool(1), kind.pool(1));
    let (held, awaited) = held_task(&other);
    let (tell, told) = mpsc::channel();
    let (let_go, held_up) = mpsc::channel::<()>();
    let task = pool.spawn(move || {
        let before = heist::worker_index();
        heist::spawn(move || {
            tell.send(heist::worker_index()).expect("a test that listens");
            drop(held);
            // It has the core until the other task has looked.
            let _ = held_up.recv();
        });
        awaited.join().expect("a result");
        let after = heist::worker_index();
        drop(let_go);
        (before, after)
    });
    assert_eq!(told.recv().expect("a task that runs"), Some(0));
    assert_eq!(task.join().expect("a result"), (Some(0), None));
}

/// A task of one pool waits for another pool, of whose two workers one is busy.
fn that_of_the_innermost_pool(kind: Kind) {
    let (outer, inner) = (kind.pool(1), kind.pool(2));
    let (tell, told) = mpsc::channel();
    let (let_go, held_up) = mpsc::channel::<()>();
    let busy = inner.spawn(move || {
        tell.send(heist::worker_index()).expect("a test that listens");
        let _ = held_up.recv();
    });
    let taken = told.recv().expect("a task that runs").expect("a number");
    assert_eq!(outer.install(|| inner.install(heist::worker_index)), Some(1 - taken));
    drop(let_go);
    busy.join().expect("a result");
}
