//! The contract of yielding: it runs one pending task, if there is any.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use heist_testkit::test_path;
use heist_testkit::watchdog::watched;
use rayon_core::{
    Scope, ThreadPool, Yield, current_thread_has_pending_tasks, join, spawn, spawn_fifo,
    yield_local, yield_now,
};

use crate::common::{add, with_pool};

#[test]
fn one_by_one() {
    with_pool(1, |pool| {
        pool.install(|| {
            let count = Arc::new(AtomicUsize::new(0));
            for n in 0..3 {
                let count = Arc::clone(&count);
                let one_more = move || add(&count, 1);
                if n == 1 { spawn_fifo(one_more) } else { spawn(one_more) }
            }
            assert_eq!(current_thread_has_pending_tasks(), Some(true));
            let functions: [fn() -> Option<Yield>; 3] = [yield_now, yield_local, yield_now];
            for (n, yields) in functions.into_iter().enumerate() {
                assert_eq!(count.load(Ordering::Relaxed), n);
                assert_eq!(yields(), Some(Yield::Executed));
            }
            assert_eq!(count.load(Ordering::Relaxed), 3);
            assert_eq!(current_thread_has_pending_tasks(), Some(false));
            assert_eq!((yield_now(), yield_local()), (Some(Yield::Idle), Some(Yield::Idle)));
        });
    });
}

/// Tasks from other threads are not local.
#[test]
fn from_elsewhere() {
    with_pool(1, |pool| {
        pool.install(|| {
            let (tell, told) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| pool.spawn(move || tell.send(()).unwrap()));
            });
            assert_eq!(current_thread_has_pending_tasks(), Some(false));
            assert_eq!(yield_local(), Some(Yield::Idle));
            assert!(told.try_recv().is_err());
            assert_eq!(yield_now(), Some(Yield::Executed));
            assert_eq!(told.try_recv(), Ok(()));
        });
    });
}

#[test]
fn of_another_pool() {
    with_pool(1, |ours| {
        with_pool(1, |theirs| {
            ours.install(|| {
                assert_eq!(theirs.yield_now(), None);
                assert_eq!(theirs.yield_local(), None);
                assert_eq!(theirs.current_thread_has_pending_tasks(), None);
                assert_eq!(theirs.current_thread_index(), None);
                assert_eq!(ours.yield_now(), Some(Yield::Idle));
                assert_eq!(ours.yield_local(), Some(Yield::Idle));
            });
        });
    });
}

/// A first half that waits for the second by yielding succeeds, even on one thread.
#[test]
fn to_the_second_half_of_a_join() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let done = AtomicBool::new(false);
            let wait = || {
                let end = Instant::now() + Duration::from_secs(60);
                while !done.load(Ordering::Acquire) && Instant::now() < end {
                    if yield_now() == Some(Yield::Idle) {
                        thread::yield_now();
                    }
                }
                done.load(Ordering::Acquire)
            };
            let (seen, ()) = pool.install(|| join(wait, || done.store(true, Ordering::Release)));
            assert!(seen, "with {threads} threads");
        });
    }
}

#[test]
fn yield_local_runs_a_broadcast() {
    with_pool(1, |pool| {
        pool.install(|| {
            let (tell, told) = mpsc::channel();
            rayon_core::spawn_broadcast(move |_| tell.send(()).unwrap());
            assert_eq!(yield_local(), Some(Yield::Executed));
            assert_eq!(told.try_recv(), Ok(()));
        });
    });
}

/// Makes a test for each function of `contract`, under the watchdog.
macro_rules! watched_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            watched(test_path!(stringify!($name)), contract::$name);
        }
    )*};
}

watched_tests! {
    to_the_second_half_of_the_join_of_another_thread
    a_flow_from_outside_does_not_keep_second_halves_from_starting
}

/// In a pool of two threads: one of them waits, in the first half of a join, for the second half, which is still
/// private. The other one first runs `meanwhile`, which begins when the join has begun, and is told when the second half
/// has run.
fn second_half_runs(pool: &ThreadPool, meanwhile: impl FnOnce(&AtomicBool) + Send) {
    let [arrived, forked, done] = [const { AtomicBool::new(false) }; 3];
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            thread::yield_now();
        }
    };
    pool.scope(|scope| {
        scope.spawn(|_| {
            arrived.store(true, Ordering::Release);
            wait_for(&forked);
            meanwhile(&done);
        });
        // Not with a function of the pool: the task is for the other thread.
        wait_for(&arrived);
        // Nobody takes their second halves. After that, no thread is known to want one.
        (0..1_000).for_each(|_| _ = join(|| (), || ()));
        join(
            || {
                forked.store(true, Ordering::Release);
                wait_for(&done);
            },
            || done.store(true, Ordering::Release),
        );
    });
}

mod contract {
    use super::*;

    pub(super) fn to_the_second_half_of_the_join_of_another_thread() {
        with_pool(2, |pool| {
            second_half_runs(pool, |done| {
                while !done.load(Ordering::Acquire) {
                    yield_now();
                }
            });
        });
    }

    /// The other thread always finds a task from outside.
    pub(super) fn a_flow_from_outside_does_not_keep_second_halves_from_starting() {
        /// Comes again, from outside, before it ends.
        fn come_again<'scope>(scope: &Scope<'scope>, done: &'scope AtomicBool) {
            if !done.load(Ordering::Acquire) {
                let again = || scope.spawn(|scope| come_again(scope, done));
                thread::scope(|outside| _ = outside.spawn(again));
            }
        }
        with_pool(2, |pool| {
            let done = AtomicBool::new(false);
            pool.in_place_scope(|scope| {
                let done = &done;
                scope.spawn(move |scope| {
                    second_half_runs(pool, |_| come_again(scope, done));
                    done.store(true, Ordering::Release);
                });
            });
        });
    }
}
