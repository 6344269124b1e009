//! The contract of `Pool::current` and of handles to a pool.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use heist::{JoinError, Pool};

use crate::common::{
    Kind, ThreadGroup, WORKERS, assert_balanced, assert_counts, for_every_strategy,
};

for_every_strategy! {
    none_outside,
    the_innermost_pool,
    in_hooks,
    spawns,
    installs,
    outlives_the_pool,
    within_its_own_pool,
    handles_as_keys,
}

fn none_outside(kind: Kind) {
    let pool = kind.pool(1);
    assert!(Pool::current().is_none());
    assert_eq!(pool.install(Pool::current), Some(pool.handle()));
    assert!(Pool::current().is_none());
}

fn the_innermost_pool(kind: Kind) {
    let (outer, inner) = (kind.pool(1), kind.pool(2));
    outer.install(|| {
        assert_eq!(inner.install(Pool::current), Some(inner.handle()));
        assert_eq!(Pool::current(), Some(outer.handle()));
    });
    assert_ne!(outer.handle(), inner.handle());
}

/// A thread belongs to its pool from the first hook to the last.
fn in_hooks(kind: Kind) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let [start, stop] = [(); 2].map(|()| {
        let seen = Arc::clone(&seen);
        move |_| {
            let workers = Pool::current().map(|pool| pool.workers());
            seen.lock().expect("no panic").push(workers);
        }
    });
    let pool = kind.builder(2).on_thread_start(start).on_thread_stop(stop).build().expect("a pool");
    pool.stop();
    assert_eq!(*seen.lock().expect("no panic"), [Some(2); 4]);
}

fn spawns(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let handle = pool.handle();
        assert_eq!(handle.workers(), workers);
        let tasks: Vec<_> = (0..100).map(|n| handle.spawn(move || n)).collect();
        let inside = handle.spawn(|| {
            let here = Pool::current().expect("a thread of a pool");
            let tasks: Vec<_> = (0..100).map(|n| here.spawn(move || n)).collect();
            tasks.into_iter().map(|task| task.join().expect("a result")).sum::<i32>()
        });
        assert_eq!(inside.join().expect("a result"), 4950);
        assert!(tasks.into_iter().map(|task| task.join().expect("a result")).eq(0..100));
        assert_counts(&pool, 201, 0, 0);
        assert_eq!(handle.stats(), pool.stats());
    }
}

fn installs(kind: Kind) {
    let (pool, other) = (kind.pool(2), kind.pool(1));
    let handle = pool.handle();
    let mut count = 0;
    handle.install(|| {
        count += 1;
        // On a thread of the pool the closure is just called.
        handle.install(|| count += 1);
    });
    other.install(|| handle.install(|| count += 1));
    assert_eq!(count, 3);
    assert_counts(&pool, 2, 0, 0);
}

/// A handle does not keep the threads of its pool.
fn outlives_the_pool(kind: Kind) {
    for workers in WORKERS {
        let threads = ThreadGroup::new();
        let pool = kind.builder_in(&threads, workers).build().expect("a pool");
        let handle = pool.handle();
        let task = handle.spawn(|| 1);
        drop(pool);
        threads.assert_gone();
        assert_eq!(task.join().expect("a result"), 1);
        let late = handle.clone().spawn(|| 2).join();
        assert!(matches!(late, Err(JoinError::Stopped)), "{late:?}");
        assert_eq!(handle.stats().threads, 0);
        assert_balanced(&handle.stats());
    }
}

/// The last owners of a pool's memory are a task of the pool and what it spawns.
fn within_its_own_pool(kind: Kind) {
    for _ in 0..20 {
        let pool = kind.pool(2);
        let handle = pool.handle();
        let task = pool.spawn(move || {
            let here = handle.clone();
            drop(handle);
            here.spawn(move || drop(Pool::current())).join().expect("a result");
            here
        });
        drop(pool);
        drop(task.join().expect("a result"));
    }
}

fn handles_as_keys(kind: Kind) {
    let pools = [(); 3].map(|()| kind.pool(1));
    let handles: HashSet<_> = pools.iter().chain(&pools).map(Pool::handle).collect();
    assert_eq!(handles.len(), 3);
    assert!(pools.iter().all(|pool| handles.contains(&pool.handle())));
}
