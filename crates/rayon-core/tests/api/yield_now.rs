//! The contract of yielding: it runs one pending task, if there is any.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rayon_core::{
    Yield, current_thread_has_pending_tasks, join, spawn, spawn_fifo, yield_local, yield_now,
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
            std::thread::scope(|scope| {
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
                        std::thread::yield_now();
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
