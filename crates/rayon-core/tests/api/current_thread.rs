//! The contract of `use_current_thread`. A thread stays in its pool for good, so each test uses a thread of
//! its own.

use std::sync::mpsc;
use std::thread;

use rayon_core::{ThreadPool, ThreadPoolBuilder, Yield};

use crate::common::{panic_of, with_pool};

fn with_this_thread(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build().expect("a pool")
}

/// Runs `f` on a thread of no pool. A panic is propagated.
fn on_a_fresh_thread(f: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(f).join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    });
}

#[test]
fn the_current_thread_has_index_zero() {
    for threads in [1, 3] {
        on_a_fresh_thread(move || {
            let pool = with_this_thread(threads);
            assert_eq!(pool.current_num_threads(), threads);
            assert_eq!(pool.current_thread_index(), Some(0));
            assert_eq!(rayon_core::current_num_threads(), threads);
            let this = thread::current().id();
            assert_eq!(pool.install(|| thread::current().id()), this);
            assert_eq!(
                pool.broadcast(|_| thread::current().id() == this)
                    .iter()
                    .filter(|&&here| here)
                    .count(),
                1
            );
        });
    }
}

#[test]
fn a_pool_of_one_thread_works() {
    on_a_fresh_thread(|| {
        let pool = with_this_thread(1);
        assert_eq!(rayon_core::join_context(|a| a.migrated(), |b| b.migrated()), (false, false));
        let mut answer = 0;
        rayon_core::scope(|scope| scope.spawn(|_| answer = 42));
        assert_eq!(answer, 42);
        let (tell, told) = mpsc::channel();
        pool.spawn(move || tell.send(1).unwrap());
        assert!(told.try_recv().is_err(), "nobody runs it");
        assert_eq!(rayon_core::current_thread_has_pending_tasks(), Some(true));
        assert_eq!(rayon_core::yield_now(), Some(Yield::Executed));
        assert_eq!(told.try_recv(), Ok(1));
        assert_eq!(panic_of(|| rayon_core::join(|| panic!("a"), || ())), "a");
    });
}

/// Other threads run the tasks that it spawns, although it never waits.
#[test]
fn others_take_part() {
    on_a_fresh_thread(|| {
        let pool = with_this_thread(2);
        let (tell, told) = mpsc::channel();
        pool.spawn(move || tell.send(rayon_core::current_thread_index()).unwrap());
        assert_eq!(told.recv(), Ok(Some(1)));
    });
}

#[test]
fn no_handler_is_called_for_it() {
    on_a_fresh_thread(|| {
        let (tell, told) = mpsc::channel();
        let (ended, mut named) = (tell.clone(), Vec::new());
        let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread();
        let builder = builder.start_handler(move |index| tell.send(index).unwrap());
        let builder = builder.exit_handler(move |index| ended.send(10 + index).unwrap());
        let spawn = |thread: rayon_core::ThreadBuilder| {
            named.push(thread.index());
            thread::spawn(|| thread.run());
            Ok(())
        };
        let pool = builder.spawn_handler(spawn).build().expect("a pool");
        assert_eq!(named, [1]);
        assert_eq!(told.recv(), Ok(1));
        drop(pool);
        assert_eq!(told.recv(), Ok(11), "the others end without it");
    });
}

#[test]
fn once_only() {
    on_a_fresh_thread(|| {
        let _pool = with_this_thread(1);
        let error = ThreadPoolBuilder::new()
            .num_threads(2)
            .use_current_thread()
            .build()
            .expect_err("already");
        assert_eq!(error.to_string(), "The current thread is already part of another thread pool.");
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(
            format!("{error:?}"),
            "ThreadPoolBuildError { kind: CurrentThreadAlreadyInPool }"
        );
    });
    with_pool(1, |pool| {
        pool.install(|| {
            let builder = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
            assert!(builder.build().is_err());
        });
    });
}

/// A thread of a pool of heist cannot join another pool either.
#[test]
fn not_on_a_thread_of_heist() {
    let pool = heist::Pool::builder().workers(1).build().expect("a pool");
    let refused = pool
        .install(|| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().is_err());
    assert!(refused);
    pool.stop();
}

/// After a failed build, the thread belongs to no pool.
#[test]
fn a_build_that_fails() {
    on_a_fresh_thread(|| {
        let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread();
        builder.spawn_handler(|_| Err(std::io::Error::other("no"))).build().expect_err("refused");
        assert_eq!(rayon_core::current_thread_index(), None);
        let pool = with_this_thread(2);
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
    });
}

/// After the pool is gone, the thread can still fork, and runs both halves itself.
#[test]
fn after_the_drop() {
    on_a_fresh_thread(|| {
        drop(with_this_thread(2));
        assert_eq!(rayon_core::current_thread_index(), Some(0));
        assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
        let mut answer = 0;
        rayon_core::scope(|scope| scope.spawn(|_| answer = 42));
        assert_eq!(answer, 42);
    });
}

/// A thread of another pool installs on the pool.
#[test]
fn installs_elsewhere() {
    on_a_fresh_thread(|| {
        let ours = with_this_thread(1);
        with_pool(1, |theirs| {
            let back = theirs
                .install(|| (rayon_core::current_num_threads(), theirs.current_thread_index()));
            assert_eq!(back, (1, Some(0)));
            // While this thread waits, it runs the tasks that the other pool sends.
            assert_eq!(theirs.install(|| ours.install(rayon_core::current_thread_index)), Some(0));
        });
    });
}
