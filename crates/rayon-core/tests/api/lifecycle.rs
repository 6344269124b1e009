//! Pools that are dropped at inconvenient moments, handlers that use them, threads that never start, and
//! pools of heist beside those of this crate.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use heist_testkit::test_path;
use heist_testkit::watchdog::watched;
use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Makes a test for each function of `contract`, under the watchdog.
macro_rules! tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            watched(test_path!(stringify!($name)), contract::$name);
        }
    )*};
}

tests! {
    concurrent_broadcasts_have_the_same_order_on_every_thread
    a_broadcast_that_panics_still_runs_on_every_thread
    broadcasts_before_the_drop_run
    a_pool_may_be_dropped_by_its_own_task
    a_pool_may_be_dropped_while_its_current_thread_waits
    the_current_thread_outlives_the_other_threads_of_its_pool
    handlers_may_use_the_pool
    tasks_spawned_by_exit_handlers_run
    threads_that_never_start_block_nothing
    a_build_that_fails_leaves_no_thread
    pools_of_both_kinds_wait_for_each_other
}

/// Calls `f` with a pool. Its threads have ended when this returns.
fn with_pool<R>(builder: ThreadPoolBuilder, f: impl FnOnce(ThreadPool) -> R) -> R {
    thread::scope(|scope| {
        let spawn = |thread: ThreadBuilder| {
            scope.spawn(|| thread.run());
            Ok(())
        };
        f(builder.spawn_handler(spawn).build().unwrap())
    })
}

fn threads(threads: usize) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new().num_threads(threads)
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

mod contract {
    use super::*;

    pub(crate) fn concurrent_broadcasts_have_the_same_order_on_every_thread() {
        with_pool(threads(6), |pool| {
            let call = || {
                for _ in 0..500 {
                    let barrier = Barrier::new(6);
                    pool.broadcast(|_| barrier.wait());
                }
            };
            thread::scope(|scope| {
                scope.spawn(call);
                scope.spawn(call);
                call();
            });
        });
    }

    pub(crate) fn a_broadcast_that_panics_still_runs_on_every_thread() {
        with_pool(threads(3), |pool| {
            for _ in 0..200 {
                let called = AtomicUsize::new(0);
                let call = || {
                    pool.broadcast(|context| {
                        count(&called);
                        if context.index() != 0 {
                            resume_unwind(Box::new(context.index()));
                        }
                    })
                };
                let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
                assert_eq!(*payload.downcast::<usize>().unwrap(), 1, "the first");
                assert_eq!(called.into_inner(), 3);
            }
        });
    }

    pub(crate) fn broadcasts_before_the_drop_run() {
        for _ in 0..500 {
            let called = Arc::new(AtomicUsize::new(0));
            with_pool(threads(2), |pool| {
                let called = Arc::clone(&called);
                pool.spawn_broadcast(move |_| _ = rayon_core::broadcast(|_| count(&called)));
            });
            assert_eq!(called.load(Ordering::Relaxed), 4);
        }
    }

    pub(crate) fn a_pool_may_be_dropped_by_its_own_task() {
        for _ in 0..500 {
            let called = Arc::new(AtomicUsize::new(0));
            with_pool(threads(2), |pool| {
                let pool = Arc::new(pool);
                let (own, called) = (Arc::clone(&pool), Arc::clone(&called));
                pool.spawn(move || {
                    drop(own);
                    rayon_core::spawn(move || {
                        rayon_core::spawn_broadcast(move |_| count(&called));
                    });
                });
            });
            assert_eq!(called.load(Ordering::Relaxed), 2);
        }
    }

    pub(crate) fn a_pool_may_be_dropped_while_its_current_thread_waits() {
        for _ in 0..50 {
            let current_thread = || {
                with_pool(threads(2).use_current_thread(), |pool| {
                    let barrier = Barrier::new(2);
                    let drop_there = || {
                        barrier.wait();
                        drop(pool);
                    };
                    rayon_core::join(|| barrier.wait(), drop_there);
                });
            };
            thread::spawn(current_thread).join().unwrap();
        }
    }

    pub(crate) fn the_current_thread_outlives_the_other_threads_of_its_pool() {
        let current_thread = || {
            with_pool(threads(2).use_current_thread(), drop);
            assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
            let called = AtomicUsize::new(0);
            rayon_core::scope(|scope| {
                scope.spawn(|_| count(&called));
                thread::scope(|threads| _ = threads.spawn(|| scope.spawn(|_| count(&called))));
            });
            assert_eq!(called.into_inner(), 2);
        };
        thread::spawn(current_thread).join().unwrap();
    }

    pub(crate) fn handlers_may_use_the_pool() {
        fn use_it(counter: &AtomicUsize) {
            assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
            rayon_core::scope(|scope| (0..3).for_each(|_| scope.spawn(|_| count(counter))));
        }
        for _ in 0..200 {
            let called = Arc::new(AtomicUsize::new(0));
            let (at_start, at_exit) = (Arc::clone(&called), Arc::clone(&called));
            let start = move |_| {
                use_it(&at_start);
                rayon_core::broadcast(|_| count(&at_start));
            };
            let exit = move |_| use_it(&at_exit);
            with_pool(threads(3).start_handler(start).exit_handler(exit), |pool| {
                pool.install(|| rayon_core::join(|| (), || ()));
            });
            assert_eq!(called.load(Ordering::Relaxed), 3 * (3 + 3) + 3 * 3);
        }
    }

    pub(crate) fn tasks_spawned_by_exit_handlers_run() {
        let called = Arc::new(AtomicUsize::new(0));
        let at_exit = Arc::clone(&called);
        let exit = move |_| {
            let spawned = || {
                let called = Arc::clone(&at_exit);
                move || {
                    assert!(rayon_core::current_thread_index().is_some());
                    count(&called);
                }
            };
            rayon_core::spawn(spawned());
            rayon_core::spawn_fifo(spawned());
        };
        with_pool(threads(2).exit_handler(exit), drop);
        assert_eq!(called.load(Ordering::Relaxed), 4);
    }

    pub(crate) fn threads_that_never_start_block_nothing() {
        let (mut first, mut late) = (None, None);
        let spawn = |thread: ThreadBuilder| {
            match thread.index() {
                0 => first = Some(thread::spawn(|| thread.run())),
                1 => late = Some(thread),
                _ => drop(thread),
            }
            Ok(())
        };
        let pool = threads(3).spawn_handler(spawn).build().unwrap();
        assert_eq!(pool.install(|| rayon_core::join(|| 1, || 2)), (1, 2));
        drop(pool);
        first.unwrap().join().unwrap();
        late.unwrap().run();

        let nobody = |thread: ThreadBuilder| {
            drop(thread);
            Ok(())
        };
        let pool = threads(2).spawn_handler(nobody).build().unwrap();
        pool.spawn(|| unreachable!("there is no thread"));
        pool.spawn_broadcast(|_| unreachable!("there is no thread"));
    }

    pub(crate) fn a_build_that_fails_leaves_no_thread() {
        thread::scope(|scope| {
            let spawn = |thread: ThreadBuilder| {
                if thread.index() == 2 {
                    return Err(io::Error::other("planned"));
                }
                scope.spawn(|| thread.run());
                Ok(())
            };
            assert!(threads(4).spawn_handler(spawn).build().is_err());
        });
    }

    /// Each kind of pool forks and waits on the threads of the other kind.
    pub(crate) fn pools_of_both_kinds_wait_for_each_other() {
        for (ours, heists) in [(1, 1), (2, 1), (1, 2), (3, 2)] {
            let heist = heist::Pool::builder().workers(heists).build().unwrap();
            with_pool(threads(ours), |rayon| {
                let pools = Pools { rayon: &rayon, heist: &heist };
                for way in 0..14 {
                    assert_eq!(pools.fib(11, way), 89);
                    assert_eq!(rayon.install(|| pools.fib(11, way)), 89);
                    assert_eq!(heist.install(|| pools.fib(11, way)), 89);
                }
            });
            heist.stop();
        }
    }

    #[derive(Clone, Copy)]
    struct Pools<'a> {
        rayon: &'a ThreadPool,
        heist: &'a heist::Pool,
    }

    impl Pools<'_> {
        /// Computes a Fibonacci number, with another kind of call at each step.
        fn fib(self, n: u32, way: u32) -> u32 {
            if n < 2 {
                return n;
            }
            let (mut a, mut b) = (0, 0);
            let mut first = || a = self.fib(n - 1, way + 1);
            let mut second = || b = self.fib(n - 2, way + 3);
            match way % 7 {
                0 => _ = rayon_core::join(first, second),
                1 => _ = heist::join(first, second),
                2 => _ = self.rayon.join(first, second),
                3 => {
                    self.heist.install(first);
                    self.rayon.install(second);
                }
                4 => heist::scope(|scope| {
                    scope.spawn(|_| first());
                    scope.spawn(|_| second());
                }),
                5 => self.rayon.in_place_scope(|scope| {
                    scope.spawn(|_| heist::isolate(first));
                    self.rayon.scope(|scope| scope.spawn(|_| second()));
                }),
                _ => {
                    let one = heist::spawn(|| 1);
                    first();
                    assert_eq!(one.join().unwrap(), 1);
                    self.rayon.broadcast(|_| ());
                    second();
                }
            }
            a + b
        }
    }
}
