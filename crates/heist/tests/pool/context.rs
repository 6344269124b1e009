//! The contract of `Builder::context`: a task runs in the context in which it was spawned, exactly once, whatever the hook
//! does.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::{Builder, JoinError, Pool};

use crate::common::{Kind, WORKERS, assert_counts, for_every_strategy, held_task, panic_message};

for_every_strategy! {
    a_task_runs_in_its_context,
    nothing_is_left_behind,
    each_closure_of_a_batch,
    install_and_what_is_beneath,
    a_task_of_a_task,
    with_a_bound,
    a_refused_task_is_not_restored,
    a_capture_that_panics,
    a_restore_that_panics,
    a_restore_that_runs_nothing,
}

thread_local! {
    static REQUEST: Cell<usize> = const { Cell::new(0) };
}

fn carrying(builder: Builder) -> Builder {
    builder.context(|| {
        let request = REQUEST.get();
        move |run: &mut dyn FnMut()| {
            let before = REQUEST.replace(request);
            run();
            REQUEST.set(before);
        }
    })
}

fn pool(kind: Kind, workers: usize) -> Pool {
    carrying(kind.builder(workers)).build().expect("a pool")
}

fn a_task_runs_in_its_context(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers);
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                REQUEST.set(n);
                match n % 3 {
                    0 => pool.spawn(|| REQUEST.get()),
                    1 => pool.try_spawn(|| REQUEST.get()).expect("no bound"),
                    _ => pool.handle().spawn(|| REQUEST.get()),
                }
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join().expect("a result"), n);
        }
        assert_counts(&pool, 200, 0, 0);
    }
}

/// What the hook does after the run is done after a panic as well.
fn nothing_is_left_behind(kind: Kind) {
    let pool = pool(kind, 2);
    REQUEST.set(9);
    for n in 0..50 {
        let task = pool.spawn(move || assert!(n % 2 == 0, "planned"));
        assert_eq!(task.join().is_ok(), n % 2 == 0);
    }
    assert_eq!(pool.broadcast(|_| REQUEST.get()), [0, 0]);
    assert_counts(&pool, 27, 25, 0);
}

fn each_closure_of_a_batch(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers);
        REQUEST.set(5);
        let batch = pool.spawn_batch((0..100).map(|n| move || REQUEST.get() + n));
        REQUEST.set(6);
        assert_eq!(batch.join().expect("results"), Vec::from_iter(5..105));
    }
}

fn install_and_what_is_beneath(kind: Kind) {
    let pool = pool(kind, 2);
    REQUEST.set(3);
    assert_eq!(pool.install(|| REQUEST.get()), 3);
    assert_eq!(pool.handle().install(|| REQUEST.get()), 3);
    assert_eq!(pool.join(|| REQUEST.get(), || ()).0, 3);
    assert_eq!(pool.scope(|_| REQUEST.get()), 3);
    let handle = pool.handle();
    let nested = pool.install(|| {
        REQUEST.set(4);
        let nested = handle.install(|| REQUEST.get());
        REQUEST.set(3);
        nested
    });
    assert_eq!(nested, 4);
    let failed = catch_unwind(AssertUnwindSafe(|| pool.install(|| panic!("planned"))));
    assert_eq!(panic_message(&*failed.expect_err("a panic")), "planned");
}

/// The inner tasks run on top of the outer one, or on other threads.
fn a_task_of_a_task(kind: Kind) {
    for workers in WORKERS {
        let pool = pool(kind, workers);
        REQUEST.set(8);
        let task = pool.spawn(|| {
            let own = heist::spawn(|| REQUEST.get());
            REQUEST.set(80);
            let other = heist::spawn(|| REQUEST.get());
            REQUEST.set(8);
            (own.join().expect("a result"), other.join().expect("a result"), REQUEST.get())
        });
        assert_eq!(task.join().expect("a result"), (8, 80, 8));
    }
}

fn with_a_bound(kind: Kind) {
    let pool = carrying(kind.builder(1).max_queued(1)).build().expect("a pool");
    thread::scope(|threads| {
        for n in 1..4 {
            let pool = &pool;
            threads.spawn(move || {
                REQUEST.set(n);
                for _ in 0..50 {
                    assert_eq!(pool.spawn(|| REQUEST.get()).join().expect("a result"), n);
                }
            });
        }
    });
    assert_counts(&pool, 150, 0, 0);
}

fn a_refused_task_is_not_restored(kind: Kind) {
    let restored = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&restored);
    let hook = move || {
        let count = Arc::clone(&count);
        move |run: &mut dyn FnMut()| {
            count.fetch_add(1, Ordering::Relaxed);
            run();
        }
    };
    let pool = kind.builder(1).context(hook).build().expect("a pool");
    let (open, held) = held_task(&pool);
    drop(open);
    held.join().expect("a result");
    pool.stop();
    assert!(matches!(pool.spawn(|| ()).join(), Err(JoinError::Stopped)));
    assert_eq!(restored.load(Ordering::Relaxed), 1);
}

/// The panic comes out of the spawn, and the pool is as before.
fn a_capture_that_panics(kind: Kind) {
    let hook = || {
        assert_ne!(REQUEST.get(), 13, "planned");
        |run: &mut dyn FnMut()| run()
    };
    let pool = kind.builder(1).max_queued(1).context(hook).build().expect("a pool");
    REQUEST.set(13);
    for _ in 0..3 {
        let spawned = catch_unwind(AssertUnwindSafe(|| pool.spawn(|| ())));
        assert!(panic_message(&*spawned.expect_err("a panic")).contains("planned"));
        let tried = catch_unwind(AssertUnwindSafe(|| pool.try_spawn(|| ())));
        assert!(panic_message(&*tried.expect_err("a panic")).contains("planned"));
        let batch = catch_unwind(AssertUnwindSafe(|| pool.spawn_batch([|| (), || ()])));
        assert!(panic_message(&*batch.expect_err("a panic")).contains("planned"));
        let installed = catch_unwind(AssertUnwindSafe(|| pool.install(|| ())));
        assert!(panic_message(&*installed.expect_err("a panic")).contains("planned"));
    }
    REQUEST.set(0);
    assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    assert_counts(&pool, 1, 0, 0);
}

/// The task runs all the same, and its handle returns the panic.
fn a_restore_that_panics(kind: Kind) {
    let hook = || {
        let before = REQUEST.get() == 1;
        move |run: &mut dyn FnMut()| {
            assert!(!before, "before");
            run();
            panic!("after");
        }
    };
    let pool = kind.builder(2).context(hook).build().expect("a pool");
    let ran = Arc::new(AtomicUsize::new(0));
    for (request, message) in [(1, "before"), (0, "after")] {
        REQUEST.set(request);
        let counted = Arc::clone(&ran);
        let task = pool.spawn(move || counted.fetch_add(1, Ordering::Relaxed));
        let Err(JoinError::Panicked(panic)) = task.join() else { panic!("no panic") };
        assert_eq!(panic.message(), message);
        let Err(JoinError::Panicked(panic)) = pool.spawn(|| panic!("of the task")).join() else {
            panic!("no panic")
        };
        assert_eq!(panic.message(), "of the task");
        let counted = Arc::clone(&ran);
        let one = move || _ = counted.fetch_add(1, Ordering::Relaxed);
        let Err(JoinError::Panicked(panic)) = pool.spawn_batch([one]).join() else {
            panic!("no panic")
        };
        assert_eq!(panic.message(), message);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 4);
    assert_counts(&pool, 0, 6, 0);
}

fn a_restore_that_runs_nothing(kind: Kind) {
    let pool = kind.builder(1).context(|| |_: &mut dyn FnMut()| ()).build().expect("a pool");
    assert_eq!(pool.spawn(|| 7).join().expect("a result"), 7);
    let pool = kind
        .builder(1)
        .context(|| {
            |run: &mut dyn FnMut()| {
                run();
                run();
            }
        })
        .build()
        .expect("a pool");
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    pool.spawn(move || _ = counted.fetch_add(1, Ordering::Relaxed)).join().expect("a result");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
