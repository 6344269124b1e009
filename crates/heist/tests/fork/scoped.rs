//! The contract of parts with handles: their results, who gets their panics, what becomes of handles that are
//! dropped, kept or leaked, and that waiting for them adds no deadlock.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use heist::{JoinError, Scope, ScopedJoinHandle};

use crate::common::{
    Kind, Ledger, WORKERS, assert_balanced, assert_counts, for_every_strategy, panic_message,
};

for_every_strategy! {
    results,
    spawns_of_spawns,
    joined_by_another_part,
    joined_after_the_scope,
    joined_on_threads_of_no_pool,
    joined_on_another_pool,
    a_window_of_handles,
    results_of_dropped_handles,
    results_of_leaked_handles,
    a_joined_panic_is_handled,
    an_unjoined_panic_is_passed_on,
    the_first_unjoined_panic_is_passed_on,
    a_panic_joined_after_the_scope,
    results_that_panic_when_dropped,
    beneath_a_join,
    beneath_a_scope,
    beneath_a_wait_for_another_pool,
    tree,
    stopped_meanwhile,
}

/// Returns the message of the panic that a part was joined with.
fn message<T>(joined: Result<T, JoinError>) -> String {
    match joined {
        Err(JoinError::Panicked(panic)) => panic.message().to_owned(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a result"),
    }
}

fn results(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let words: Vec<String> = (0..100).map(|n| "x".repeat(n)).collect();
        let (lengths, large): (Vec<_>, Vec<_>) = pool.scope(|scope| {
            let handles: Vec<_> = words
                .iter()
                .map(|word| {
                    let bytes = [word.len() as u64; 40];
                    (scope.spawn_handle(|_| word.len()), scope.spawn_handle(move |_| bytes))
                })
                .collect();
            let join = |(a, b): (ScopedJoinHandle<'_, usize>, ScopedJoinHandle<'_, [u64; 40]>)| {
                (a.join().expect("a result"), b.join().expect("a result"))
            };
            handles.into_iter().map(join).unzip()
        });
        assert!(lengths.into_iter().eq(0..100));
        assert!(large.into_iter().eq((0..100).map(|n| [n; 40])));
        assert_counts(&pool, 201, 0, 0);
    }
}

/// A part with a handle spawns parts with and without handles.
fn spawns_of_spawns(kind: Kind) {
    for workers in WORKERS {
        let (pool, count) = (kind.pool(workers), AtomicUsize::new(0));
        let sum = pool.scope(|scope| {
            let count = &count;
            let outer = scope.spawn_handle(move |scope| {
                (0..10).for_each(|_| {
                    scope.spawn(move |scope| {
                        scope.spawn(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
                    });
                });
                let inner: Vec<_> = (0..10).map(|n| scope.spawn_handle(move |_| n)).collect();
                inner.into_iter().map(|handle| handle.join().expect("a result")).sum::<i32>()
            });
            outer.join().expect("a result")
        });
        assert_eq!((sum, count.into_inner()), (45, 10));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Each part waits for the one that was spawned before.
fn joined_by_another_part(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let last = pool.scope(|scope| {
            let mut last = scope.spawn_handle(|_| 0);
            for _ in 0..1000 {
                last = scope.spawn_handle(move |_| last.join().expect("a result") + 1);
            }
            last.join().expect("a result")
        });
        assert_eq!(last, 1000);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn joined_after_the_scope(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let text = String::from("borrowed");
        let handles = pool.scope(|scope| [(); 10].map(|()| scope.spawn_handle(|_| text.as_str())));
        assert!(handles.iter().all(ScopedJoinHandle::is_finished));
        pool.stop();
        assert!(handles.into_iter().all(|handle| handle.join().expect("a result") == "borrowed"));
    }
}

/// The scope waits for the threads, and so one worker is blocked.
fn joined_on_threads_of_no_pool(kind: Kind) {
    for workers in [2, 4] {
        let pool = kind.pool(workers);
        let sum: usize = pool.scope(|scope| {
            thread::scope(|threads| {
                let sum = |n: usize| {
                    let handles: Vec<_> =
                        (0..100).map(|m| scope.spawn_handle(move |_| n + m)).collect();
                    handles
                        .into_iter()
                        .map(|handle| handle.join().expect("a result"))
                        .sum::<usize>()
                };
                let all: Vec<_> = (0..4).map(|n| threads.spawn(move || sum(n))).collect();
                all.into_iter().map(|thread| thread.join().expect("no panic")).sum()
            })
        });
        assert_eq!(sum, 4 * 4950 + 600);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn joined_on_another_pool(kind: Kind) {
    for workers in WORKERS {
        let (pool, other) = (kind.pool(workers), kind.pool(1));
        let sum: i32 = pool.scope(|scope| {
            let handles: Vec<_> = (0..100).map(|n| scope.spawn_handle(move |_| n)).collect();
            other.install(|| {
                handles.into_iter().map(|handle| handle.join().expect("a result")).sum()
            })
        });
        assert_eq!(sum, 4950);
    }
}

/// The handle that is joined is never that of the newest part.
fn a_window_of_handles(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.scope(|scope| {
            let mut window = std::collections::VecDeque::new();
            for n in 0..10_000 {
                window.push_back(scope.spawn_handle(move |_| n));
                if n >= 5 {
                    let oldest = window.pop_front().expect("a handle").join();
                    assert_eq!(oldest.expect("a result"), n - 5);
                }
            }
        });
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// The scope does not return before the results are dropped. They may borrow what outlives the scope.
fn results_of_dropped_handles(kind: Kind) {
    struct Looks<'a>(&'a AtomicUsize);
    impl Drop for Looks<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            let drops = AtomicUsize::new(0);
            pool.scope(|scope| {
                let drops = &drops;
                for n in 0..100 {
                    let handle = scope.spawn_handle(move |_| Looks(drops));
                    if n % 2 == 0 {
                        thread::yield_now();
                    }
                    drop(handle);
                }
            });
            assert_eq!(drops.into_inner(), 100);
        }
    }
}

/// A leaked handle leaks its result. Everything else is as if it had been dropped.
fn results_of_leaked_handles(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            for _ in 0..100 {
                mem::forget(scope.spawn_handle(|_| count.fetch_add(1, Ordering::Relaxed)));
            }
        });
        assert_eq!(count.into_inner(), 100);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| mem::forget(scope.spawn_handle(|_| panic!("leaked"))));
        }));
        assert_eq!(panic_message(&*panicked.expect_err("a panic")), "leaked");
    }
}

fn a_joined_panic_is_handled(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let messages = pool.scope(|scope| {
            let handles = [1, 2, 3].map(|n| scope.spawn_handle(move |_| panic!("number {n}")));
            handles.map(|handle| message::<()>(handle.join()))
        });
        assert_eq!(messages, ["number 1", "number 2", "number 3"]);
        assert_counts(&pool, 1, 3, 0);
    }
}

fn an_unjoined_panic_is_passed_on(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let returned = Ledger::new(2);
        for kept in [true, false] {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    let handle = scope.spawn_handle(|_| panic!("not joined"));
                    (returned.item(usize::from(kept)), kept.then_some(handle))
                })
            }));
            let payload = panicked.map(|_| ()).expect_err("a panic");
            assert_eq!(panic_message(&*payload), "not joined");
        }
        returned.assert_each_once();
    }
}

/// Panics that were joined do not count, and those of parts without handles do.
fn the_first_unjoined_panic_is_passed_on(kind: Kind) {
    let pool = kind.pool(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            let joined = scope.spawn_handle(|_| panic!("joined"));
            assert_eq!(message::<()>(joined.join()), "joined");
            let later = scope.spawn_handle(|scope| {
                // It has run before the others.
                scope.spawn(|_| panic!("second"));
                panic!("first")
            });
            drop::<ScopedJoinHandle<'_, ()>>(later);
        });
    }));
    assert_eq!(panic_message(&*panicked.expect_err("a panic")), "first");
    assert_counts(&pool, 0, 4, 0);
}

/// The scope has panicked with the panic of the part, and the handle still has the message.
fn a_panic_joined_after_the_scope(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let kept = Mutex::new(Vec::new());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                for n in 0..2 {
                    let handle = scope.spawn_handle(move |_| panic!("number {n}"));
                    kept.lock().expect("no panic").push(handle);
                }
            });
        }));
        let passed_on = panic_message(&*panicked.expect_err("a panic")).to_owned();
        assert!(passed_on.starts_with("number "), "{passed_on}");
        let kept = kept.into_inner().expect("no panic").into_iter();
        assert!(kept.map(|handle| message::<()>(handle.join())).eq(["number 0", "number 1"]));
    }
}

fn results_that_panic_when_dropped(kind: Kind) {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.scope(|scope| (0..10).for_each(|_| drop(scope.spawn_handle(|_| Panics))));
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    }
}

/// What a part with a handle needs in order to wait.
struct Ends {
    /// Notifies the first half of its fork that the second one runs.
    start: mpsc::Sender<()>,
    started: mpsc::Receiver<()>,
    /// Notifies the scope of the same.
    begin: mpsc::Sender<()>,
    /// Ends the wait.
    held: mpsc::Receiver<()>,
}

/// A part with a handle waits, for its own fork or for another pool, and all other workers are blocked. The only part
/// that is left waits for the handle. Any thread but that of the first part may run it.
fn beneath(kind: Kind, workers: usize, fork: impl FnOnce(Ends) + Send) {
    let pool = kind.pool(workers);
    let (start, started) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let (let_go, held) = mpsc::channel();
    let (arrive, arrived) = mpsc::channel();
    let result = pool.scope(move |scope| {
        let first = scope.spawn_handle(move |_| {
            fork(Ends { start, started, begin, held });
            7
        });
        begun.recv().expect("a part that runs");
        let last = scope.spawn_handle(move |_| {
            arrive.send(()).expect("a scope that listens");
            first.join().expect("a result")
        });
        arrived.recv().expect("a part that runs");
        let_go.send(()).expect("a fork that waits");
        last.join().expect("a result")
    });
    assert_eq!(result, 7);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn beneath_a_join(kind: Kind) {
    beneath(kind, 3, |Ends { start, started, begin, held }| {
        heist::join(
            move || started.recv().expect("a start"),
            move || {
                start.send(()).expect("a fork that listens");
                begin.send(()).expect("a scope that listens");
                held.recv().expect("an end");
            },
        );
    });
}

fn beneath_a_scope(kind: Kind) {
    beneath(kind, 3, |Ends { start, started, begin, held }| {
        heist::scope(move |scope| {
            scope.spawn(move |_| {
                start.send(()).expect("a fork that listens");
                begin.send(()).expect("a scope that listens");
                held.recv().expect("an end");
            });
            started.recv().expect("a start");
        });
    });
}

fn beneath_a_wait_for_another_pool(kind: Kind) {
    let other = kind.pool(1);
    beneath(kind, 2, |Ends { begin, held, .. }| {
        other.install(move || {
            begin.send(()).expect("a scope that listens");
            held.recv().expect("an end");
        });
    });
}

fn tree(kind: Kind) {
    fn fib<'scope>(scope: &Scope<'scope>, n: u32) -> u64 {
        if n < 2 {
            return n.into();
        }
        let first = scope.spawn_handle(move |scope| fib(scope, n - 1));
        let second = heist::scope(|inner| {
            let handle = inner.spawn_handle(move |inner| fib(inner, n - 2));
            inner.spawn(|_| ());
            handle.join().expect("a result")
        });
        first.join().expect("a result") + second
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.scope(|scope| fib(scope, 14)), 377);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// A stop, of whatever kind, waits for the parts of a scope that has begun, and these are not cancelled.
fn stopped_meanwhile(kind: Kind) {
    for now in [false, true] {
        let pool = kind.pool(2);
        let (begin, begun) = mpsc::channel();
        let (held, opened) = mpsc::channel::<()>();
        thread::scope(|threads| {
            let scope = threads.spawn(|| {
                pool.scope(move |scope| {
                    begin.send(()).expect("a test that listens");
                    // The stop is not over before this scope has ended.
                    let _ = opened.recv();
                    let handles: Vec<_> =
                        (0..100).map(|n| scope.spawn_handle(move |_| n)).collect();
                    handles.into_iter().map(|handle| handle.join().expect("a result")).sum::<i32>()
                })
            });
            begun.recv().expect("a scope that begins");
            let stop = threads.spawn(|| if now { pool.stop_now() } else { pool.stop() });
            while !pool.spawn(|| ()).is_finished() {
                thread::yield_now();
            }
            drop(held);
            assert_eq!(scope.join().expect("no panic"), 4950);
            stop.join().expect("no panic");
        });
        assert_balanced(&pool.stats());
    }
}
