//! Threads of no pool that take part in the global pool. In processes of their own, so that the pool has nothing else to do,
//! and can be stopped.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

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

/// A thread of no pool that is in a visit until it is told to leave.
struct Visitor {
    leave: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Visitor {
    /// Begins a visit, and waits until it has begun. After the visit, the thread calls `then`.
    fn begin(then: impl FnOnce() + Send + 'static) -> Self {
        let (leave, told) = mpsc::channel();
        let (tell, begun) = mpsc::channel();
        let thread = thread::spawn(move || {
            let stay = move || {
                tell.send(()).unwrap();
                told.recv().unwrap();
            };
            heist::join(stay, || ());
            then();
        });
        begun.recv().unwrap();
        Self { leave, thread }
    }

    /// Ends the visit and waits for the thread.
    fn end(self) {
        self.leave.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Lets workers fall asleep, as a rule. Nothing depends on it but what is tested.
fn calm() {
    thread::sleep(Duration::from_millis(5));
}

/// A worker forks while the other one must not be woken because of a guest. When the guest has left, its forks are shared
/// again.
#[test]
fn workers_fork_during_a_visit() {
    with_workers(test_path!("workers_fork_during_a_visit"), || {
        if Pool::global().workers() == 1 {
            return;
        }
        for _ in 0..10 {
            calm();
            let visitor = Visitor::begin(|| ());
            calm();
            heist::spawn(|| assert_eq!(fib(15), 610)).join().unwrap();
            calm();
            visitor.end();
            heist::spawn(meet).join().unwrap();
            heist::spawn(meet).join().unwrap();
        }
    });
}

/// Two guests leave one after the other, while a worker is busy. The first one that comes back gets help.
#[test]
fn guests_come_back() {
    with_workers(test_path!("guests_come_back"), || {
        for _ in 0..10 {
            let (free, busy) = mpsc::channel::<()>();
            let (tell, told) = mpsc::channel();
            let task = heist::spawn(move || {
                tell.send(()).unwrap();
                assert!(busy.recv().is_err());
            });
            told.recv().unwrap();
            // One worker is busy, and one more may sleep because of a guest.
            if Pool::global().workers() > 2 {
                let (go, gone) = mpsc::channel();
                let first = Visitor::begin(move || {
                    gone.recv().unwrap();
                    meet();
                });
                let second = Visitor::begin(meet);
                calm();
                first.leave.send(()).unwrap();
                calm();
                second.end();
                calm();
                go.send(()).unwrap();
                first.thread.join().unwrap();
            }
            drop(free);
            task.join().unwrap();
        }
    });
}

/// A visit on a small stack is left to the pool.
#[test]
fn visits_on_a_small_stack() {
    fn sum(n: u64) -> u64 {
        let frame = std::hint::black_box([n; 16]);
        if n == 0 { 0 } else { heist::join(|| sum(n - 1), || frame[7]).0 + frame[3] }
    }
    with_workers(test_path!("visits_on_a_small_stack"), || {
        let small = thread::Builder::new().stack_size(128 << 10);
        let result = small.spawn(|| sum(300)).expect("a thread").join().expect("no panic");
        assert_eq!(result, 45_150);
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
