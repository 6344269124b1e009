//! The contract of `Pool::broadcast`: each worker calls the closure once, whatever else the pool does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;

use heist::Pool;

use crate::common::{
    Kind, WORKERS, assert_balanced, assert_counts, for_every_strategy, held_task, panic_message,
};

for_every_strategy! {
    results,
    all_at_the_same_time,
    inside,
    inside_by_all_at_once,
    from_many_threads,
    while_a_task_waits,
    with_no_more_threads,
    within_a_broadcast,
    after_a_flow_of_own_tasks,
    panics,
    in_hooks,
    after_a_stop,
    beside_a_stop,
}

/// Checks that the caller is the worker with that number, and returns the number.
fn index(worker: usize) -> usize {
    assert_eq!(heist::worker_index(), Some(worker));
    worker
}

fn is_complete(pool: &Pool, numbers: Vec<usize>) -> bool {
    numbers.into_iter().eq(0..pool.workers())
}

fn results(kind: Kind) {
    for workers in WORKERS.into_iter().chain([20]) {
        let pool = kind.pool(workers);
        let text = String::from("borrowed");
        for _ in 0..20 {
            let lengths = pool.broadcast(|worker| index(worker) + text.len());
            assert!(lengths.into_iter().eq(8..8 + workers));
        }
        assert_counts(&pool, 20 * workers as u64, 0, 0);
    }
}

/// No worker calls the closure twice, even if another one does not come.
fn all_at_the_same_time(kind: Kind) {
    for workers in WORKERS {
        let (pool, all) = (kind.pool(workers), Barrier::new(workers));
        for _ in 0..20 {
            let leaders = pool.broadcast(|worker| (index(worker), all.wait().is_leader()).1);
            assert_eq!(leaders.into_iter().filter(|&leader| leader).count(), 1);
        }
    }
}

fn inside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            assert!(pool.install(|| is_complete(&pool, pool.broadcast(index))));
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn inside_by_all_at_once(kind: Kind) {
    for workers in WORKERS {
        all_broadcast(&kind.pool(workers), 20);
    }
}

/// All workers broadcast at the same time, so many times. Then the pool is stopped.
fn all_broadcast(pool: &Pool, times: usize) {
    let all = Barrier::new(pool.workers());
    for _ in 0..times {
        let inner = pool.broadcast(|_| {
            all.wait();
            is_complete(pool, pool.broadcast(|worker| worker))
        });
        assert!(inner.into_iter().all(|complete| complete));
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

fn from_many_threads(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for n in 0..50 {
                        let handle =
                            pool.spawn(move || heist::spawn(move || n).join().expect("a result"));
                        assert!(is_complete(&pool, pool.broadcast(index)));
                        assert_eq!(handle.join().expect("a result"), n);
                    }
                });
            }
        });
        assert_counts(&pool, 4 * 50 * (2 + workers as u64), 0, 0);
    }
}

/// All workers wait in tasks, for something that ends when the broadcast has. They hand their cores over.
fn while_a_task_waits(kind: Kind) {
    for workers in WORKERS {
        let (pool, other) = (kind.pool(workers), kind.pool(1));
        let (held, task) = held_task(&other);
        let task = Arc::new(Mutex::new(Some(task)));
        let (enter, entered) = mpsc::channel();
        let waiting: Vec<_> = (0..workers)
            .map(|_| {
                let (enter, task, other) = (enter.clone(), Arc::clone(&task), other.handle());
                pool.spawn(move || {
                    let task = task.lock().expect("no panic").take();
                    enter.send(()).expect("a test that listens");
                    match task {
                        Some(task) => task.join().expect("a result"),
                        None => other.install(|| ()),
                    }
                })
            })
            .collect();
        waiting.iter().for_each(|_| entered.recv().expect("a task that runs"));
        assert!(is_complete(&pool, pool.broadcast(index)));
        drop(held);
        waiting.into_iter().for_each(|task| task.join().expect("a result"));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// The pool may have no thread beyond its workers, all of which wait for the others.
fn with_no_more_threads(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.builder(workers).max_threads(workers).build().expect("a pool");
        all_broadcast(&pool, 5);
    }
}

fn within_a_broadcast(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let inner = pool.broadcast(|_| {
            let (a, b) = heist::join(|| heist::spawn(|| 1), || pool.broadcast(|worker| worker));
            a.join().expect("a result") == 1 && is_complete(&pool, b)
        });
        assert_eq!(inner, vec![true; workers]);
    }
}

/// Every worker has tasks of its own all the time.
fn after_a_flow_of_own_tasks(kind: Kind) {
    fn go_on(over: &Arc<AtomicUsize>) {
        if over.load(Ordering::Relaxed) == 0 {
            let over = Arc::clone(over);
            heist::spawn(move || go_on(&over));
        }
    }
    for workers in WORKERS {
        let (pool, over) = (kind.pool(workers), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2 * workers {
            let over = Arc::clone(&over);
            pool.spawn(move || go_on(&over));
        }
        assert!(is_complete(&pool, pool.broadcast(index)));
        over.store(1, Ordering::Relaxed);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn panics(kind: Kind) {
    for workers in WORKERS {
        let (pool, calls) = (kind.pool(workers), AtomicUsize::new(0));
        for inside in [false, true] {
            let broadcast = || {
                pool.broadcast(|worker| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    assert!(worker > 0, "on the first worker");
                })
            };
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                if inside { pool.install(broadcast) } else { broadcast() }
            }));
            let payload = panicked.expect_err("a panic");
            assert_eq!(panic_message(&*payload), "on the first worker");
        }
        assert_eq!(calls.into_inner(), 2 * workers);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// A thread is no worker in its hooks.
fn in_hooks(kind: Kind) {
    let (send, receive) = mpsc::channel();
    let here: Arc<OnceLock<Pool>> = Arc::default();
    let of_hook = Arc::downgrade(&here);
    let builder = kind.builder(1).on_thread_stop(move |_| {
        let here = of_hook.upgrade().expect("the test waits for this hook");
        let pool = here.get().expect("set before the stop");
        let broadcast = catch_unwind(AssertUnwindSafe(|| pool.broadcast(|worker| worker)));
        send.send(broadcast.is_err()).expect("a test that listens");
    });
    assert!(here.set(builder.build().expect("a pool")).is_ok());
    here.get().expect("just set").stop();
    assert!(receive.recv().expect("a hook that has run"));
}

fn after_a_stop(kind: Kind) {
    let pool = kind.pool(2);
    pool.stop();
    let panicked = catch_unwind(AssertUnwindSafe(|| pool.broadcast(|worker| worker)));
    assert!(panic_message(&*panicked.expect_err("a panic")).contains("has stopped"));
    assert_counts(&pool, 0, 0, 0);
}

/// A broadcast is complete, or refused as a whole or in part by a stop, and the counters say so.
fn beside_a_stop(kind: Kind) {
    for round in 0..40 {
        let workers = WORKERS[round % 3];
        let (pool, start, calls) = (kind.pool(workers), Barrier::new(2), AtomicUsize::new(0));
        let outcome = thread::scope(|threads| {
            let caller = threads.spawn(|| {
                start.wait();
                catch_unwind(AssertUnwindSafe(|| {
                    pool.broadcast(|worker| {
                        calls.fetch_add(1, Ordering::Relaxed);
                        worker
                    })
                }))
            });
            start.wait();
            if round % 2 == 0 {
                pool.stop()
            } else {
                pool.stop_now()
            }
            caller.join().expect("no panic")
        });
        match outcome {
            Ok(numbers) => assert!(is_complete(&pool, numbers)),
            Err(payload) => assert!(panic_message(&*payload).contains("has stopped")),
        }
        let stats = pool.stats();
        assert_balanced(&stats);
        assert_eq!(stats.total.tasks_completed, calls.into_inner() as u64);
    }
}
