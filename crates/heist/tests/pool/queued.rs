//! The contract of the bound on queued tasks: how many are admitted, who waits, in which order, and that nobody waits for
//! ever.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use heist::{BuildError, Full, JoinError, JoinHandle, Pool};

use crate::common::{
    Gate, Kind, WORKERS, assert_balanced, assert_counts, ended, eventually, for_every_strategy,
    held_task, panic_message,
};

for_every_strategy! {
    no_bound,
    a_bound_of_nothing,
    as_many_as_the_bound,
    a_full_pool_returns_the_closure,
    by_handle,
    never_more_than_the_bound,
    spawners_outside_wait_in_order,
    no_try_overtakes,
    a_task_spawns_more_than_the_bound,
    tasks_spawn_and_join,
    a_tree_with_few_threads,
    a_task_of_another_pool_waits,
    a_task_claimed_by_its_handle,
    a_batch_counts,
    a_batch_waits,
    an_iterator_that_spawns,
    parts_are_not_bounded,
    a_stop_wakes_spawners_outside,
    a_stop_waits_for_spawners_inside,
    stop_now_with_spawners,
    after_a_stop,
    hooks,
    destructors,
}

fn pool(kind: Kind, workers: usize, bound: usize) -> Arc<Pool> {
    Arc::new(kind.builder(workers).max_queued(bound).build().expect("a pool"))
}

/// Returns the line of a dump that tells the bound.
fn line(pool: &Pool) -> String {
    let mut found = String::new();
    eventually("no thread is in the way", || {
        let text = pool.dump().to_string();
        found = text.lines().find(|line| line.starts_with("max_queued")).expect(&text).to_owned();
        !found.contains("locked")
    });
    found
}

/// Returns when so many spawners wait.
fn wait_for_spawners(pool: &Pool, spawners: usize) {
    let end = format!(", {spawners} spawners wait");
    eventually("spawners wait", || line(pool).ends_with(&end));
}

fn no_bound(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let tasks: Vec<_> = (0..1000).map(|n| pool.try_spawn(move || n).expect("no bound")).collect();
    assert!(!pool.dump().to_string().contains("max_queued"));
    gate.open();
    assert_eq!(tasks.into_iter().map(|task| task.join().expect("a result")).sum::<u32>(), 499_500);
}

fn a_bound_of_nothing(kind: Kind) {
    let error = kind.builder(1).max_queued(0).build().expect_err("no bound");
    assert!(matches!(error, BuildError::ZeroQueued));
    assert!(error.to_string().contains("max_queued"), "{error}");
}

fn as_many_as_the_bound(kind: Kind) {
    for workers in WORKERS {
        for bound in [1, 2, 7, 300] {
            let pool = pool(kind, workers, bound);
            let gate = Gate::close(&pool);
            assert_eq!(line(&pool), format!("max_queued: {bound}; 0 queued, 0 spawners wait"));
            for queued in 0..bound {
                assert!(pool.try_spawn(|| ()).is_ok(), "{queued} of {bound}");
            }
            assert!(pool.try_spawn(|| ()).is_err());
            assert_eq!(
                line(&pool),
                format!("max_queued: {bound}; {bound} queued, 0 spawners wait")
            );
            let gates = gate.tasks();
            gate.open();
            assert_counts(&pool, gates + bound as u64, 0, 0);
            assert_eq!(line(&pool), format!("max_queued: {bound}; 0 queued, 0 spawners wait"));
        }
    }
}

fn a_full_pool_returns_the_closure(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let gate = Gate::close(&pool);
    let queued = pool.try_spawn(|| 1).expect("room");
    let owned = String::from("kept");
    let full = pool.try_spawn(move || owned).expect_err("full");
    assert_eq!(format!("{full:?}"), "Full(..)");
    assert!(full.to_string().contains("Pool::spawn"), "{full}");
    assert!((&full as &dyn Error).source().is_none());
    let Full(closure) = full;
    assert_eq!(closure(), "kept");
    gate.open();
    assert_eq!(queued.join().expect("a result"), 1);
}

fn by_handle(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let gate = Gate::close(&pool);
    let handle = pool.handle();
    let queued = handle.try_spawn(|| 1).expect("room");
    let Err(Full(again)) = handle.try_spawn(|| 2) else { panic!("not full") };
    thread::scope(|threads| {
        let waiting = threads.spawn(move || handle.spawn(again));
        wait_for_spawners(&pool, 1);
        gate.open();
        assert_eq!(waiting.join().expect("no panic").join().expect("a result"), 2);
    });
    assert_eq!(queued.join().expect("a result"), 1);
}

/// Several threads spawn, and each task looks how many were spawned and have not started.
fn never_more_than_the_bound(kind: Kind) {
    for workers in WORKERS {
        for bound in [1, 3] {
            let pool = pool(kind, workers, bound);
            let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            thread::scope(|threads| {
                for _ in 0..3 {
                    threads.spawn(|| {
                        for _ in 0..200 {
                            let here = Arc::clone(&counts);
                            pool.spawn(move || {
                                let spawned = here.0.load(Ordering::SeqCst);
                                let started = here.1.fetch_add(1, Ordering::SeqCst);
                                // A task does not count any more when it is about to count itself.
                                let queued = spawned.saturating_sub(started);
                                assert!(queued <= bound + workers, "{queued} tasks");
                            });
                            counts.0.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            });
            assert_counts(&pool, 600, 0, 0);
        }
    }
}

/// One worker runs the tasks in the order in which their spawners came.
fn spawners_outside_wait_in_order(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let gate = Gate::close(&pool);
    pool.spawn(|| ());
    let order = Arc::new(Mutex::new(Vec::new()));
    thread::scope(|threads| {
        for n in 0..10 {
            let (pool, order) = (&pool, Arc::clone(&order));
            threads.spawn(move || pool.spawn(move || order.lock().expect("no panic").push(n)));
            wait_for_spawners(pool, n + 1);
        }
        gate.open();
    });
    pool.stop();
    assert_eq!(*order.lock().expect("no panic"), Vec::from_iter(0..10));
}

/// While a spawner waits, no `try_spawn` succeeds.
fn no_try_overtakes(kind: Kind) {
    let pool = pool(kind, 2, 2);
    let gate = Gate::close(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    let task = || {
        let ran = Arc::clone(&ran);
        move || _ = ran.fetch_add(1, Ordering::Relaxed)
    };
    (0..2).for_each(|_| drop(pool.spawn(task())));
    thread::scope(|threads| {
        let (pool, task) = (&pool, &task);
        let spawners = 20;
        for _ in 0..spawners {
            threads.spawn(move || drop(pool.spawn(task())));
        }
        wait_for_spawners(pool, spawners);
        assert!(pool.try_spawn(task()).is_err());
        gate.open();
        eventually("there is room again", || pool.try_spawn(task()).is_ok());
        // All spawners that waited were admitted before, and at most two of their tasks had not started.
        assert!(ran.load(Ordering::Relaxed) >= spawners - 2);
    });
    assert_counts(pool.as_ref(), 2 + 2 + 20 + 1, 0, 0);
}

fn a_task_spawns_more_than_the_bound(kind: Kind) {
    for workers in WORKERS {
        for bound in [1, 2, 50] {
            let pool = pool(kind, workers, bound);
            let ran = Arc::new(AtomicUsize::new(0));
            let (here, counted) = (pool.handle(), Arc::clone(&ran));
            let task = pool.spawn(move || {
                for n in 0..500 {
                    let ran = Arc::clone(&counted);
                    let f = move || _ = ran.fetch_add(1, Ordering::Relaxed);
                    if n % 2 == 0 {
                        here.spawn(f)
                    } else {
                        heist::spawn(f)
                    };
                }
            });
            task.join().expect("a result");
            pool.stop();
            assert_eq!(ran.load(Ordering::Relaxed), 500);
            assert_counts(&pool, 501, 0, 0);
        }
    }
}

fn tasks_spawn_and_join(kind: Kind) {
    for workers in WORKERS {
        for bound in [1, 3] {
            let pool = pool(kind, workers, bound);
            let tasks: Vec<JoinHandle<u32>> = (0..20)
                .map(|n| {
                    pool.spawn(move || {
                        let inner: Vec<_> = (0..5).map(|m| heist::spawn(move || n + m)).collect();
                        inner.into_iter().map(|task| task.join().expect("a result")).sum()
                    })
                })
                .collect();
            let sum: u32 = tasks.into_iter().map(|task| task.join().expect("a result")).sum();
            assert_eq!(sum, (0..20).map(|n| 5 * n + 10).sum::<u32>());
            assert_counts(&pool, 120, 0, 0);
        }
    }
}

/// Many spawners wait at the same time, in a pool that may have no more threads than workers, or a few more.
fn a_tree_with_few_threads(kind: Kind) {
    fn grow(depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let children: Vec<_> = (0..4).map(|_| heist::spawn(move || grow(depth - 1))).collect();
        children.into_iter().map(|child| child.join().expect("a result")).sum()
    }
    for workers in WORKERS {
        for more in [0, 1, 5] {
            let builder = kind.builder(workers).max_threads(workers + more);
            let pool = builder.max_queued(1).build().expect("a pool");
            let trees = [pool.spawn(|| grow(3)), pool.spawn(|| grow(3))];
            assert!(trees.into_iter().all(|tree| tree.join().expect("a result") == 64));
            assert_counts(&pool, 2 * (1 + 4 + 16 + 64), 0, 0);
        }
    }
}

/// Its worker goes on with other tasks meanwhile.
fn a_task_of_another_pool_waits(kind: Kind) {
    let (full, other) = (pool(kind, 1, 1), kind.pool(1));
    let gate = Gate::close(&full);
    full.spawn(|| ());
    let to = full.handle();
    let waiting = other.spawn(move || to.spawn(|| 7).join().expect("a result"));
    wait_for_spawners(&full, 1);
    assert_eq!(other.spawn(|| 8).join().expect("a result"), 8);
    gate.open();
    assert_eq!(waiting.join().expect("a result"), 7);
}

/// It runs where it is awaited, and makes room.
fn a_task_claimed_by_its_handle(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let here = pool.handle();
    pool.install(move || {
        for n in 0..100 {
            let task = here.try_spawn(move || n).expect("room");
            assert!(here.try_spawn(|| ()).is_err());
            assert_eq!(task.join().expect("a result"), n);
        }
    });
    assert_eq!(line(&pool), "max_queued: 1; 0 queued, 0 spawners wait");
}

fn a_batch_counts(kind: Kind) {
    let pool = pool(kind, 2, 3);
    let gate = Gate::close(&pool);
    let none = pool.spawn_batch(std::iter::empty::<fn()>());
    assert!(none.is_finished());
    let batch = pool.spawn_batch((0..10).map(|n| move || n));
    assert_eq!(line(&pool), "max_queued: 3; 10 queued, 0 spawners wait");
    assert!(pool.try_spawn(|| ()).is_err());
    gate.open();
    assert_eq!(batch.join().expect("results"), Vec::from_iter(0..10));
    assert_eq!(line(&pool), "max_queued: 3; 0 queued, 0 spawners wait");
    pool.try_spawn(|| ()).expect("room").join().expect("a result");
    assert_counts(&pool, 13, 0, 0);
}

/// It waits for room for one task, and a panic of one closure makes room as well.
fn a_batch_waits(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let gate = Gate::close(&pool);
    pool.spawn(|| ());
    thread::scope(|threads| {
        let batch = threads.spawn(|| pool.spawn_batch((0..10).map(|n| move || assert_ne!(n, 5))));
        wait_for_spawners(&pool, 1);
        let after = threads.spawn(|| pool.spawn(|| 1));
        wait_for_spawners(&pool, 2);
        gate.open();
        assert!(batch.join().expect("no panic").join().is_err());
        assert_eq!(after.join().expect("no panic").join().expect("a result"), 1);
    });
    assert_counts(&pool, 12, 1, 0);
}

fn an_iterator_that_spawns(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let batch = pool.spawn_batch((0..10).map(|n| {
        let other = pool.spawn(move || n);
        move || n + other.join().expect("a result")
    }));
    assert_eq!(batch.join().expect("results"), Vec::from_iter((0..10).map(|n| 2 * n)));
}

fn parts_are_not_bounded(kind: Kind) {
    let pool = pool(kind, 2, 1);
    let parts = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|_| _ = parts.fetch_add(1, Ordering::Relaxed));
        }
    });
    assert_eq!(parts.load(Ordering::Relaxed), 100);
    assert_eq!(pool.join(|| 1, || 2), (1, 2));
    assert_eq!(pool.broadcast(|_| ()).len(), 2);
    let gate = Gate::close(&pool);
    pool.try_spawn(|| ()).expect("room");
    // It is not bounded, and so is queued at once.
    thread::scope(|threads| {
        let installed = threads.spawn(|| pool.install(|| 3));
        eventually("it is queued", || {
            let text = pool.dump().to_string();
            text.contains("injector 0: 2 tasks")
        });
        gate.open();
        assert_eq!(installed.join().expect("no panic"), 3);
    });
}

/// They are refused before the pool has ended.
fn a_stop_wakes_spawners_outside(kind: Kind) {
    let pool = pool(kind, 1, 1);
    let gate = Gate::close(&pool);
    let queued = pool.spawn(|| 1);
    thread::scope(|threads| {
        let spawners: Vec<_> = (0..3).map(|_| threads.spawn(|| pool.spawn(|| 2).join())).collect();
        let batch = threads.spawn(|| pool.spawn_batch([|| 3, || 4]).join());
        wait_for_spawners(&pool, 4);
        threads.spawn(|| pool.stop());
        for spawner in spawners {
            let refused = spawner.join().expect("no panic");
            assert!(matches!(refused, Err(JoinError::Stopped)), "{refused:?}");
        }
        assert!(matches!(batch.join().expect("no panic"), Err(JoinError::Stopped)));
        gate.open();
    });
    assert_eq!(queued.join().expect("a result"), 1);
    assert_counts(&pool, 2, 0, 0);
}

fn a_stop_waits_for_spawners_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers, 1);
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        pool.spawn(move || {
            for _ in 0..100 {
                let ran = Arc::clone(&counted);
                heist::spawn(move || _ = ran.fetch_add(1, Ordering::Relaxed));
            }
        });
        pool.stop();
        assert_eq!(ran.load(Ordering::Relaxed), 100);
        assert_counts(&pool, 101, 0, 0);
    }
}

fn stop_now_with_spawners(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers, 1);
        let (open, held) = held_task(&pool);
        for _ in 0..workers {
            pool.spawn(|| (0..50).for_each(|_| drop(heist::spawn(|| ()))));
        }
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| (0..50).for_each(|_| drop(pool.spawn(|| ()))));
            }
            threads.spawn(|| pool.stop_now());
            eventually("the pool refuses tasks", || {
                let probe = pool.try_spawn(|| ());
                probe.is_ok_and(|probe| matches!(probe.join(), Err(JoinError::Stopped)))
            });
            drop(open);
        });
        drop(held);
        assert_balanced(&pool.stats());
        assert_eq!(line(&pool), "max_queued: 1; 0 queued, 0 spawners wait");
    }
}

fn after_a_stop(kind: Kind) {
    let pool = pool(kind, 1, 1);
    pool.stop();
    for _ in 0..3 {
        assert!(matches!(pool.spawn(|| ()).join(), Err(JoinError::Stopped)));
        let tried = pool.try_spawn(|| ()).expect("it is refused, not full");
        assert!(matches!(tried.join(), Err(JoinError::Stopped)));
        let batch = pool.spawn_batch([|| (), || ()]);
        assert!(matches!(batch.join(), Err(JoinError::Stopped)));
    }
}

/// No hook waits for the thread that it runs on.
fn hooks(kind: Kind) {
    for workers in WORKERS {
        let ran = Arc::new(AtomicUsize::new(0));
        let spawn = |ran: &Arc<AtomicUsize>, count: usize| {
            for _ in 0..count {
                let ran = Arc::clone(ran);
                heist::spawn(move || _ = ran.fetch_add(1, Ordering::Relaxed));
            }
        };
        let (at_start, at_end, at_panic) = (Arc::clone(&ran), Arc::clone(&ran), Arc::clone(&ran));
        let (tell, told) = mpsc::channel();
        let pool = kind
            .builder(workers)
            .max_queued(1)
            .on_thread_start(move |number| {
                if number == 0 {
                    spawn(&at_start, 5);
                }
            })
            .on_thread_stop(move |_| spawn(&at_end, 5))
            .on_panic(move |_| {
                spawn(&at_panic, 5);
                tell.send(()).expect("a test that waits");
            })
            .build()
            .expect("a pool");
        drop(pool.spawn(|| panic!("planned")));
        told.recv().expect("the hook");
        pool.stop();
        let stats = pool.stats();
        assert_balanced(&stats);
        assert_eq!(stats.total.panics, 1);
        assert!(ran.load(Ordering::Relaxed) >= 10);
    }
}

/// Spawns when it is dropped.
struct SpawnsOnDrop(heist::PoolHandle, usize);

impl Drop for SpawnsOnDrop {
    fn drop(&mut self) {
        (0..self.1).for_each(|_| drop(self.0.spawn(|| ())));
    }
}

/// Destructors spawn: of what a closure has captured, of a result that nobody takes, in the middle of a panic, and of
/// closures that are cancelled.
fn destructors(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers, 1);
        let spawns = || SpawnsOnDrop(pool.handle(), 3);
        let (captured, result, unwound) = (spawns(), spawns(), spawns());
        pool.spawn(move || drop(captured)).join().expect("a result");
        drop(pool.spawn(move || result));
        let panicked = pool.spawn(move || {
            let _unwound = unwound;
            panic!("planned")
        });
        let Err(JoinError::Panicked(panic)) = panicked.join() else { panic!("no panic") };
        assert_eq!(panic_message(&*panic.into_payload()), "planned");
        // Otherwise a task could be left in the queue when the gate is closed.
        eventually("all tasks have ended", || ended(&pool.stats().total) == 3 + 9);
        let gate = Gate::close(&pool);
        let cancelled = spawns();
        let cancelled = pool.spawn(move || drop(cancelled));
        thread::scope(|threads| {
            threads.spawn(|| pool.stop_now());
            eventually("the pool refuses tasks", || {
                pool.try_spawn(|| ()).is_ok_and(|probe| probe.is_finished())
            });
            gate.open();
        });
        let cancelled = cancelled.join();
        assert!(matches!(cancelled, Err(JoinError::Cancelled) | Ok(())), "{cancelled:?}");
        assert_balanced(&pool.stats());
        assert_eq!(line(&pool), "max_queued: 1; 0 queued, 0 spawners wait");
    }
}
