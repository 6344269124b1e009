//! Threads of no pool that take part in the global pool. In processes of their own, so that the pool has nothing else to do,
//! and can be stopped.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;

use heist::{Pool, parallel};
use heist_testkit::test_path;

use crate::common::{in_child, panic_message, watched};

/// Runs a test with several numbers of workers of the global pool.
fn with_workers(path: &'static str, test: fn()) {
    watched(path, || {
        for workers in ["1", "2", "4", "12"] {
            in_child(workers, &[("HEIST_WORKERS", Some(workers))], test);
        }
    });
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// A join whose halves wait for each other.
fn meet() {
    let barrier = Barrier::new(2);
    heist::join(|| barrier.wait(), || barrier.wait());
}

#[test]
fn what_is_called_runs_here() {
    with_workers(test_path!("what_is_called_runs_here"), || {
        let here = thread::current().id();
        for _ in 0..100 {
            let (left, ()) = heist::join(|| thread::current().id(), || ());
            assert_eq!(left, here);
            assert_eq!(heist::scope(|_| thread::current().id()), here);
        }
        let elsewhere = Pool::global().install(|| thread::current().id());
        assert_ne!(elsewhere, here);
    });
}

#[test]
fn both_halves_run_at_once() {
    with_workers(test_path!("both_halves_run_at_once"), || {
        for _ in 0..100 {
            meet();
            heist::scope(|scope| {
                let (tell, told) = mpsc::channel();
                scope.spawn(move |_| tell.send(()).unwrap());
                told.recv().unwrap();
            });
        }
    });
}

#[test]
fn results_are_right() {
    with_workers(test_path!("results_are_right"), || {
        for _ in 0..20 {
            assert_eq!(fib(15), 610);
            let sum = AtomicUsize::new(0);
            heist::scope(|scope| {
                for n in 0..100 {
                    let sum = &sum;
                    scope.spawn(move |scope| {
                        sum.fetch_add(n, SeqCst);
                        scope.spawn(move |_| _ = sum.fetch_add(1, SeqCst));
                    });
                }
            });
            assert_eq!(sum.into_inner(), 5_050);
            let total = parallel::reduce(0..300_000_u64, || 0, |a, b| a + b, |a, b| a + b);
            assert_eq!(total, 44_999_850_000);
        }
        let stats = Pool::global().stats();
        let total = stats.total;
        assert_eq!(
            stats.peak_threads,
            Pool::global().workers(),
            "guests are not the pool's threads"
        );
        assert_eq!(total.tasks_submitted, total.tasks_completed, "{total:?}");
    });
}

/// What is spawned in a visit may outlive it, and a visit can wait for tasks of its pool and of another one.
#[test]
fn tasks_of_a_visit() {
    with_workers(test_path!("tasks_of_a_visit"), || {
        let other = Pool::builder().workers(1).build().expect("a pool");
        for n in 0..50 {
            let (handle, far) = heist::join(
                || heist::spawn(move || n + 1),
                || heist::spawn(move || n + 2).join().unwrap() + other.install(|| fib(5)) as i32,
            );
            assert_eq!(far, n + 7);
            assert_eq!(handle.join().unwrap(), n + 1);
        }
    });
}

#[test]
fn panics_end_a_visit() {
    with_workers(test_path!("panics_end_a_visit"), || {
        for n in 0..50 {
            let first = || heist::join(|| panic!("first {n}"), || fib(5));
            let second = || heist::join(|| fib(5), || panic!("second {n}"));
            let part = || heist::scope(|scope| scope.spawn(move |_| panic!("part {n}")));
            assert_eq!(panic_message(&*catch_unwind(first).unwrap_err()), format!("first {n}"));
            assert_eq!(panic_message(&*catch_unwind(second).unwrap_err()), format!("second {n}"));
            assert_eq!(panic_message(&*catch_unwind(part).unwrap_err()), format!("part {n}"));
            assert_eq!(fib(10), 55);
        }
    });
}

/// There are more threads than places for guests, and threads come and go.
#[test]
fn many_guests() {
    with_workers(test_path!("many_guests"), || {
        for _ in 0..3 {
            thread::scope(|scope| {
                for _ in 0..80 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            assert_eq!(fib(12), 144);
                        }
                    });
                }
            });
        }
    });
}

/// A destructor of a thread-local forks, before or after the thread has given up its place.
#[test]
fn visits_at_the_end_of_a_thread() {
    struct Forks;
    impl Drop for Forks {
        fn drop(&mut self) {
            assert_eq!(fib(10), 55);
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<Forks>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Forks>> = const { RefCell::new(None) };
    }
    with_workers(test_path!("visits_at_the_end_of_a_thread"), || {
        for _ in 0..40 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    EARLY.with(|own| *own.borrow_mut() = Some(Forks));
                    assert_eq!(fib(10), 55);
                    LATE.with(|own| *own.borrow_mut() = Some(Forks));
                });
            });
        }
    });
}

/// The global pool is stopped while threads fork. Each join runs both halves, or is refused before it runs one.
#[test]
fn a_stop_under_guests() {
    with_workers(test_path!("a_stop_under_guests"), || {
        let start = Barrier::new(4);
        thread::scope(|scope| {
            let visitors = [0, 1, 2].map(|_| {
                scope.spawn(|| {
                    start.wait();
                    loop {
                        let ran = AtomicUsize::new(0);
                        let add = || _ = ran.fetch_add(1, SeqCst);
                        let join = || _ = heist::join(add, add);
                        if let Err(panic) = catch_unwind(AssertUnwindSafe(join)) {
                            assert!(panic_message(&*panic).contains("the pool has stopped"));
                            break assert_eq!(ran.into_inner(), 0);
                        }
                        assert_eq!(ran.into_inner(), 2);
                    }
                })
            });
            start.wait();
            Pool::global().stop();
            visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        });
        let total = Pool::global().stats().total;
        let ended = total.tasks_completed + total.cancellations;
        assert_eq!(total.tasks_submitted, ended, "{total:?}");
        // Loops do not need the pool.
        assert_eq!(parallel::map(0..4_u32, |n| n + 1), [1, 2, 3, 4]);
    });
}
