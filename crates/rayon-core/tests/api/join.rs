//! The contract of joins: both closures run to the end, and the first panic is propagated.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

use rayon_core::{FnContext, join, join_context};

use crate::common::{add, panic_of, with_pool};

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

#[test]
fn results() {
    for threads in [1, 2, 4] {
        assert_eq!(with_pool(threads, |pool| pool.install(|| fibonacci(18))), 2584);
    }
}

#[test]
fn borrows() {
    let mut numbers = [1, 2, 3, 4];
    with_pool(2, |pool| {
        let (left, right) = numbers.split_at_mut(2);
        pool.join(|| left.reverse(), || right.reverse());
    });
    assert_eq!(numbers, [2, 1, 4, 3]);
}

#[test]
fn not_migrated_on_one_thread() {
    with_pool(1, |pool| {
        let migrated = pool.install(|| join_context(|a| a.migrated(), |b| b.migrated()));
        assert_eq!(migrated, (false, false));
    });
}

#[test]
fn migrated_from_outside() {
    with_pool(1, |pool| {
        // `install` has moved the closure to this thread, which does not count as a migration of the
        // join.
        assert_eq!(
            pool.install(|| join_context(|a| a.migrated(), |b| b.migrated())),
            (false, false)
        );
    });
}

/// Two halves that wait for each other need two threads, so the second half has migrated.
#[test]
fn migrated_if_stolen() {
    with_pool(2, |pool| {
        let (meet, rendezvous) = (Barrier::new(2), |meet: &Barrier, context: FnContext| {
            meet.wait();
            (context.migrated(), rayon_core::current_thread_index())
        });
        let (a, b) =
            pool.install(|| join_context(|c| rendezvous(&meet, c), |c| rendezvous(&meet, c)));
        assert_eq!((a.0, b.0), (false, true));
        assert_ne!(a.1, b.1);
    });
}

#[test]
fn panic_of_the_first() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let done = AtomicBool::new(false);
            let text =
                panic_of(|| pool.join(|| panic!("first"), || done.store(true, Ordering::Relaxed)));
            assert_eq!(text, "first");
            assert!(done.into_inner(), "both run, whatever happens");
        });
    }
}

#[test]
fn panic_of_the_second() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let done = AtomicBool::new(false);
            let text =
                panic_of(|| pool.join(|| done.store(true, Ordering::Relaxed), || panic!("second")));
            assert_eq!(text, "second");
            assert!(done.into_inner());
        });
    }
}

#[test]
fn panic_of_both() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let text = panic_of(|| pool.join(|| panic!("first"), || panic!("second")));
            assert_eq!(text, "first");
        });
    }
}

/// The second half has panicked on another thread, long before the first one does.
#[test]
fn panic_of_both_the_second_before() {
    with_pool(2, |pool| {
        let (tell, told) = mpsc::channel::<()>();
        let text = panic_of(|| {
            pool.join(
                move || {
                    told.recv().expect_err("dropped by the panic");
                    panic!("first")
                },
                move || {
                    let _dropped = tell;
                    panic!("second")
                },
            )
        });
        assert_eq!(text, "first");
    });
}

#[test]
fn panic_deep_down() {
    fn dive(depth: usize, ended: &AtomicUsize) {
        if depth == 0 {
            panic!("at the bottom");
        }
        let count = || add(ended, 1);
        join(|| dive(depth - 1, ended), count);
    }
    for threads in [1, 3] {
        with_pool(threads, |pool| {
            let ended = AtomicUsize::new(0);
            assert_eq!(panic_of(|| pool.install(|| dive(100, &ended))), "at the bottom");
            assert_eq!(ended.into_inner(), 100);
            assert_eq!(pool.install(|| fibonacci(10)), 55, "the pool lives on");
        });
    }
}

/// The result of a half is dropped if the other half panics.
#[test]
fn results_are_dropped() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    with_pool(2, |pool| {
        let drops = AtomicUsize::new(0);
        panic_of(|| pool.join(|| Counted(&drops), || panic!("second")));
        panic_of(|| pool.join(|| panic!("first"), || Counted(&drops)));
        drop(pool.join(|| Counted(&drops), || Counted(&drops)));
        assert_eq!(drops.into_inner(), 4);
    });
}

#[test]
fn from_many_threads() {
    with_pool(2, |pool| {
        thread::scope(|scope| {
            for n in 10..16 {
                scope.spawn(move || assert_eq!(pool.join(|| fibonacci(n), || n).1, n));
            }
        });
    });
}
