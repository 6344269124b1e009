//! The contract with the environment: the default number of workers, the global pool, and a system that
//! refuses threads.

use std::num::NonZero;
use std::panic::catch_unwind;
use std::thread;

use heist::{BuildError, Pool, Strategy};
use heist_testkit::test_path;

use crate::common::{in_child, panic_message, watched};

const VARIABLE: &str = "HEIST_WORKERS";

#[test]
fn defaults() {
    watched(test_path!("defaults"), || {
        in_child("none", &[(VARIABLE, None)], || {
            let pool = Pool::builder().build().expect("a pool");
            let parallelism = thread::available_parallelism().map_or(1, NonZero::get);
            assert_eq!(pool.workers(), parallelism);
            assert_eq!(pool.strategy(), Strategy::WorkStealing);
            let name = pool.spawn(|| thread::current().name().map(str::to_owned));
            let name = name.join().expect("a result").expect("a name");
            assert!(name.starts_with("heist-"), "{name}");
        });
    });
}

#[test]
fn good_numbers() {
    watched(test_path!("good_numbers"), || {
        for (value, workers) in [("1", 1), ("3", 3), ("007", 7)] {
            in_child(value, &[(VARIABLE, Some(value))], || {
                assert_eq!(Pool::builder().build().expect("a pool").workers(), workers);
                assert_eq!(Pool::global().workers(), workers);
                let explicit = Pool::builder().workers(2).build().expect("a pool");
                assert_eq!(explicit.workers(), 2);
            });
        }
    });
}

const BAD: [&str; 8] =
    ["three", "0", "-1", "1.5", "2x", "0x10", "18446744073709551615", "99999999999999999999999"];

/// An invalid value is an error, not a guess. An explicit number of workers works all the same.
#[test]
fn bad_numbers() {
    watched(test_path!("bad_numbers"), || {
        for value in BAD {
            in_child(value, &[(VARIABLE, Some(value))], || {
                let error = Pool::builder().build().expect_err("not a number of workers");
                let message = error.to_string();
                assert!(message.contains(value), "{message}");
                match error {
                    BuildError::Environment { value: told } => {
                        assert_eq!(told, value);
                        assert!(message.contains(VARIABLE), "{message}");
                    }
                    BuildError::TooManyWorkers { .. } => assert_eq!(value, BAD[6]),
                    other => panic!("{other:?}"),
                }
                let explicit = Pool::builder().workers(2).build().expect("a pool");
                assert_eq!(explicit.workers(), 2);
            });
        }
    });
}

/// `Pool::global` cannot return an error, so it panics with a message that says what to do.
#[test]
fn bad_number_for_global() {
    watched(test_path!("bad_number_for_global"), || {
        in_child("three", &[(VARIABLE, Some("three"))], || {
            let payload = catch_unwind(|| Pool::global().workers()).expect_err("a panic");
            assert!(panic_message(&*payload).contains(VARIABLE), "{}", panic_message(&*payload));
            // The second attempt fails in the same way.
            assert!(catch_unwind(|| Pool::global().workers()).is_err());
            assert!(catch_unwind(|| heist::spawn(|| 1)).is_err());
        });
    });
}

/// Outside of any pool, `heist::spawn` uses the global pool; inside a pool, it uses that pool.
#[test]
fn global() {
    watched(test_path!("global"), || {
        in_child("two", &[(VARIABLE, Some("2"))], || {
            let place = || thread::current().name().map(str::to_owned).expect("a name");
            let name = heist::spawn(place).join().expect("a result");
            assert!(name.starts_with("heist-"), "{name}");
            assert_eq!(Pool::global().stats().total.tasks_submitted, 1);

            let named = Pool::builder().workers(1).thread_name(|n| format!("other-{n}"));
            let pool = named.build().expect("a pool");
            let inner = pool.spawn(move || heist::spawn(place).join().expect("a result"));
            assert_eq!(inner.join().expect("a result"), "other-0");
            assert_eq!(Pool::global().stats().total.tasks_submitted, 1);
            // Every thread gets the same pool.
            let pools = thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(Pool::global));
                threads.map(|thread| thread.join().expect("no panic"))
            });
            assert!(pools.iter().all(|&pool| std::ptr::eq(pool, Pool::global())));
        });
    });
}

/// The global pool never stops by itself, but a program may stop it.
#[test]
fn global_stopped() {
    watched(test_path!("global_stopped"), || {
        in_child("stopped", &[(VARIABLE, Some("2"))], || {
            let handle = heist::spawn(|| 1);
            Pool::global().stop();
            assert_eq!(handle.join().expect("a result"), 1);
            let late = heist::spawn(|| 2).join();
            assert!(matches!(late, Err(heist::JoinError::Stopped)), "{late:?}");
            // Loops on external threads work without the pool.
            let numbers: Vec<u64> = (0..4_000).collect();
            for _ in 0..200 {
                let sum = heist::parallel::reduce_pieces(
                    &numbers,
                    |some: &[u64]| some.iter().sum::<u64>(),
                    |a, b| a + b,
                );
                assert_eq!(sum, Some(7_998_000));
            }
        });
    });
}

/// With address space for a few stacks, the system starts some threads and refuses the next one.
#[cfg(target_os = "linux")]
mod refused {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::common::{Kind, ThreadGroup, assert_balanced, for_every_strategy, in_child};
    use heist::BuildError;
    use heist_testkit::limits::{ONE_ARENA, limit_address_space, unlimit_address_space};

    for_every_strategy! {
        some_threads,
        no_standby_thread_can_start,
        waits_for_many,
    }

    const STACK: usize = 256 << 20;
    /// Room for at least one thread and at most seven.
    const ROOM: usize = 8 * STACK;
    const WORKERS: usize = 20;

    fn some_threads(kind: Kind) {
        in_child("refused", &[ONE_ARENA], || {
            limit_address_space(ROOM);
            let group = ThreadGroup::new();
            let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let [start, stop] = counts.each_ref().map(|count| {
                let count = Arc::clone(count);
                move |_| _ = count.fetch_add(1, Ordering::Relaxed)
            });
            let builder = kind.builder_in(&group, WORKERS).stack_size(STACK);
            let error = builder.on_thread_start(start).on_thread_stop(stop).build();
            match error.expect_err("no room for so many") {
                error @ BuildError::Thread { started, asked, .. } => {
                    assert!((1..WORKERS).contains(&started), "{error}");
                    assert_eq!(asked, WORKERS);
                }
                other => panic!("{other:?}"),
            }
            group.assert_gone();
            let [starts, stops] = counts.map(|count| count.load(Ordering::Relaxed));
            assert_eq!(starts, stops);
            // There is room again for a smaller pool.
            let pool = kind.builder_in(&group, 1).stack_size(STACK).build().expect("a pool");
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        });
    }

    /// The pool is running, but no standby thread can be started for a task that waits. The pool
    /// continues with the threads that it has.
    fn no_standby_thread_can_start(kind: Kind) {
        fn fib(n: u32) -> u64 {
            if n < 2 {
                return n.into();
            }
            let first = heist::spawn(move || fib(n - 1));
            fib(n - 2) + first.join().expect("a result")
        }
        in_child("refused", &[ONE_ARENA], || {
            for workers in [1, 2, 4] {
                let group = ThreadGroup::new();
                let pool =
                    kind.builder_in(&group, workers).stack_size(STACK).build().expect("a pool");
                pool.spawn(|| ()).join().expect("a result");
                limit_address_space(STACK / 2);
                let more = kind.builder_in(&group, 1).stack_size(STACK).build();
                assert!(more.is_err(), "room for one more");
                for _ in 0..5 {
                    assert_eq!(pool.spawn(|| fib(14)).join().expect("a result"), 377);
                }
                pool.stop();
                assert_balanced(&pool.stats());
                group.assert_gone();
                unlimit_address_space();
            }
        });
    }

    /// A task waits for a batch that its own thread may not run, and no standby thread can be started.
    /// The last worker that is awake runs the batch all the same.
    fn waits_for_many(kind: Kind) {
        in_child("refused", &[ONE_ARENA], || {
            for workers in [1, 2, 4] {
                let pool = kind.builder(workers).stack_size(STACK).build().expect("a pool");
                let pool = Arc::new(pool);
                pool.spawn(|| ()).join().expect("a result");
                limit_address_space(STACK / 2);
                assert!(kind.builder(1).stack_size(STACK).build().is_err(), "room for one more");
                let tasks: Vec<_> = (0..20)
                    .map(|_| {
                        let here = Arc::clone(&pool);
                        pool.spawn(move || here.spawn_batch((0..50).map(|n| move || n)).join())
                    })
                    .collect();
                for task in tasks {
                    let results = task.join().expect("a result").expect("results");
                    assert!(results.into_iter().eq(0..50));
                }
                pool.stop();
                assert_balanced(&pool.stats());
                unlimit_address_space();
            }
        });
    }
}
