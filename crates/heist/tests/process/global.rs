//! The contract of `Builder::build_global`: one call starts the global pool, or its first use does.

use std::panic::catch_unwind;
use std::sync::Barrier;
use std::thread;

use heist::{BuildError, Pool, Strategy};
use heist_testkit::test_path;

use crate::common::{ThreadGroup, in_child, watched};

#[test]
fn is_used_by_free_functions() {
    watched(test_path!("is_used_by_free_functions"), || {
        in_child("first", &[], || {
            let builder = Pool::builder().workers(3).strategy(Strategy::LockedDeques);
            let pool = builder.thread_name(|n| format!("mine-{n}")).build_global().expect("a pool");
            assert!(std::ptr::eq(pool, Pool::global()));
            assert_eq!((pool.workers(), pool.strategy()), (3, Strategy::LockedDeques));
            let name = || thread::current().name().map(str::to_owned).expect("a name");
            assert!(heist::spawn(name).join().expect("a result").starts_with("mine-"));
            // The first half runs here, and so the second one on a worker.
            let barrier = Barrier::new(2);
            let meet = || {
                barrier.wait();
                name()
            };
            let (here, there) = heist::join(meet, meet);
            assert_eq!(here, name());
            assert!(there.starts_with("mine-"), "{there}");
        });
    });
}

#[test]
fn comes_too_late() {
    watched(test_path!("comes_too_late"), || {
        in_child("late", &[("HEIST_WORKERS", Some("2"))], || {
            assert_eq!(Pool::global().workers(), 2);
            let error = Pool::builder().workers(3).build_global().expect_err("it was started");
            assert!(error.to_string().contains("beginning of main"), "{error}");
            assert!(matches!(error, BuildError::GlobalStarted { workers: 2 }), "{error:?}");
            assert_eq!(Pool::global().workers(), 2);
        });
    });
}

/// A pool that cannot be built is an error of its own, after which the global pool can be started.
#[test]
fn failed_before() {
    watched(test_path!("failed_before"), || {
        in_child("failed", &[("HEIST_WORKERS", Some("three"))], || {
            let error = Pool::builder().workers(0).build_global().expect_err("no worker");
            assert!(matches!(error, BuildError::ZeroWorkers), "{error:?}");
            assert!(catch_unwind(Pool::global).is_err(), "the variable is not a number");
            assert_eq!(Pool::builder().workers(3).build_global().expect("a pool").workers(), 3);
            assert_eq!(Pool::global().workers(), 3);
        });
    });
}

/// Of several threads that start the global pool at the same time, one does, and no thread of the other
/// pools is left.
#[test]
fn one_of_many_starts_it() {
    const BUILDERS: usize = 4;
    /// The number of workers of a pool that is started by its first use.
    const BY_USE: usize = 6;
    watched(test_path!("one_of_many_starts_it"), || {
        for round in 0..4 {
            let name = format!("race {round}");
            in_child(&name, &[("HEIST_WORKERS", Some("6"))], || {
                let groups: [_; BUILDERS] = std::array::from_fn(|_| ThreadGroup::new());
                let start = Barrier::new(BUILDERS + 1);
                let (built, used) = thread::scope(|threads| {
                    let (start, build) = (&start, |n: usize| {
                        let prefix = groups[n].prefix().to_owned();
                        let builder = Pool::builder().workers(1 + n);
                        let builder = builder.thread_name(move |index| format!("{prefix}{index}"));
                        start.wait();
                        builder.build_global()
                    });
                    let builders: [_; BUILDERS] =
                        std::array::from_fn(|n| threads.spawn(move || build(n)));
                    let user = threads.spawn(|| {
                        start.wait();
                        Pool::global()
                    });
                    (builders.map(|thread| thread.join().expect("no panic")), user.join())
                });
                let used = used.expect("no panic");
                assert!(std::ptr::eq(used, Pool::global()));
                let winners = built.iter().filter(|built| built.is_ok()).count();
                assert_eq!(winners, usize::from(used.workers() != BY_USE));
                for (n, built) in built.into_iter().enumerate() {
                    match built {
                        Ok(pool) => {
                            assert!(std::ptr::eq(pool, used));
                            assert_eq!(used.workers(), 1 + n);
                        }
                        Err(BuildError::GlobalStarted { workers }) => {
                            assert_eq!(workers, used.workers());
                            groups[n].assert_gone();
                        }
                        Err(other) => panic!("{other:?}"),
                    }
                }
            });
        }
    });
}
