//! The contract of scopes: everything that was spawned has finished, whichever thread spawned it and
//! whatever panicked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rayon_core::{Scope, ScopeFifo, scope, scope_fifo};

use crate::common::{add, panic_of, with_pool};

#[test]
fn borrows_mutably() {
    for threads in [1, 2, 4] {
        let mut numbers = vec![1; 1000];
        with_pool(threads, |pool| {
            pool.scope(|scope| {
                for (n, number) in numbers.iter_mut().enumerate() {
                    scope.spawn(move |_| *number += n);
                }
            });
        });
        assert!(numbers.iter().enumerate().all(|(n, &number)| number == n + 1));
    }
}

fn tree<'scope>(scope: &Scope<'scope>, depth: usize, count: &'scope AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
    if depth > 0 {
        scope.spawn(move |scope| tree(scope, depth - 1, count));
        scope.spawn(move |scope| tree(scope, depth - 1, count));
    }
}

fn tree_fifo<'scope>(scope: &ScopeFifo<'scope>, depth: usize, count: &'scope AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
    if depth > 0 {
        scope.spawn_fifo(move |scope| tree_fifo(scope, depth - 1, count));
        scope.spawn_fifo(move |scope| tree_fifo(scope, depth - 1, count));
    }
}

#[test]
fn spawns_of_spawns() {
    for threads in [1, 2, 4] {
        with_pool(threads, |pool| {
            let count = AtomicUsize::new(0);
            pool.scope(|scope| tree(scope, 10, &count));
            pool.scope_fifo(|scope| tree_fifo(scope, 10, &count));
            pool.in_place_scope(|scope| tree(scope, 10, &count));
            pool.in_place_scope_fifo(|scope| tree_fifo(scope, 10, &count));
            assert_eq!(count.into_inner(), 4 * 2047);
        });
    }
}

#[test]
fn scopes_within_scopes() {
    with_pool(2, |pool| {
        let count = AtomicUsize::new(0);
        pool.scope(|outer| {
            outer.spawn(|outer| {
                scope(|inner| {
                    inner.spawn(|_| {
                        outer.spawn(|_| add(&count, 1));
                        scope_fifo(|fifo| fifo.spawn_fifo(|_| add(&count, 1)));
                    });
                });
                assert!(count.load(Ordering::Relaxed) > 0);
            });
        });
        assert_eq!(count.into_inner(), 2);
    });
}

#[test]
fn returns_what_the_closure_returns() {
    with_pool(1, |pool| {
        assert_eq!(pool.scope(|_| String::from("a")), "a");
        assert_eq!(pool.in_place_scope_fifo(|_| std::rc::Rc::new(2)), std::rc::Rc::new(2));
    });
}

#[test]
fn in_place_stays() {
    with_pool(2, |pool| {
        let caller = thread::current().id();
        let (tell, told) = mpsc::channel();
        pool.in_place_scope(|scope| {
            assert_eq!(thread::current().id(), caller);
            let tell = tell.clone();
            scope.spawn(move |_| tell.send(pool.current_thread_index()).unwrap());
        });
        pool.in_place_scope_fifo(|scope| {
            assert_eq!(thread::current().id(), caller);
            scope.spawn_fifo(move |_| tell.send(pool.current_thread_index()).unwrap());
        });
        assert!(told.iter().all(|index| index.is_some()));
    });
}

#[test]
fn handed_to_other_threads() {
    with_pool(2, |pool| {
        let count = AtomicUsize::new(0);
        let one_more = |inside: bool| {
            assert!(inside, "on a thread of the scope's pool");
            count.fetch_add(1, Ordering::Relaxed);
        };
        pool.scope(|scope| {
            thread::scope(|threads| {
                for _ in 0..4 {
                    threads.spawn(|| {
                        (0..10).for_each(|_| {
                            scope.spawn(|_| one_more(pool.current_thread_index().is_some()))
                        })
                    });
                }
            });
        });
        pool.scope_fifo(|scope| {
            thread::scope(|threads| {
                for _ in 0..4 {
                    threads.spawn(|| {
                        (0..10).for_each(|_| {
                            scope.spawn_fifo(|_| one_more(pool.current_thread_index().is_some()))
                        })
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), 80);
    });
}

/// A thread of one pool spawns in the scope of another.
#[test]
fn handed_to_other_pools() {
    with_pool(2, |ours| {
        with_pool(2, |theirs| {
            let count = AtomicUsize::new(0);
            ours.scope_fifo(|scope| {
                theirs.broadcast(|_| {
                    scope.spawn_fifo(|_| {
                        assert!(ours.current_thread_index().is_some());
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                });
            });
            assert_eq!(count.into_inner(), 2);
        });
    });
}

#[test]
fn panic_of_the_closure() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let count = AtomicUsize::new(0);
            let text = panic_of(|| {
                pool.scope(|scope| {
                    (0..10).for_each(|_| scope.spawn(|_| add(&count, 1)));
                    panic!("closure")
                })
            });
            assert_eq!(text, "closure");
            assert_eq!(count.into_inner(), 10, "what was spawned runs all the same");
        });
    }
}

#[test]
fn panic_of_a_spawn() {
    for threads in [1, 2] {
        with_pool(threads, |pool| {
            let count = AtomicUsize::new(0);
            let one_more = || add(&count, 1);
            let text = panic_of(|| {
                pool.scope(|scope| {
                    scope.spawn(|scope| {
                        scope.spawn(|_| one_more());
                        panic!("spawn")
                    });
                    one_more();
                })
            });
            assert_eq!(text, "spawn");
            let text = panic_of(|| pool.scope_fifo(|scope| scope.spawn_fifo(|_| panic!("fifo"))));
            assert_eq!(text, "fifo");
            let text =
                panic_of(|| pool.in_place_scope(|scope| scope.spawn(|_| panic!("in place"))));
            assert_eq!(text, "in place");
            let text =
                panic_of(|| pool.in_place_scope_fifo(|scope| scope.spawn_fifo(|_| panic!("both"))));
            assert_eq!(text, "both");
            assert_eq!(count.into_inner(), 2);
        });
    }
}

/// On one thread, the first panic in time is propagated.
#[test]
fn panic_of_many() {
    with_pool(1, |pool| {
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.spawn(|_| panic!("later"));
                scope.spawn(|_| panic!("sooner"));
            })
        });
        assert_eq!(text, "sooner");
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.spawn(|_| panic!("spawned"));
                panic!("closure")
            })
        });
        assert_eq!(text, "closure");
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.spawn(|_| panic!("yielded to"));
                assert!(rayon_core::yield_now().is_some());
                panic!("closure")
            })
        });
        assert_eq!(text, "yielded to");
    });
}

#[test]
fn broadcast() {
    for threads in [1, 3] {
        with_pool(threads, |pool| {
            let sum = AtomicUsize::new(0);
            let add = |index| add(&sum, index + 1);
            pool.scope(|scope| scope.spawn_broadcast(|_, context| add(context.index())));
            pool.scope_fifo(|scope| scope.spawn_broadcast(|_, context| add(context.index())));
            pool.in_place_scope(|scope| {
                scope.spawn_broadcast(|scope, context| {
                    assert_eq!(pool.current_thread_index(), Some(context.index()));
                    scope.spawn_broadcast(|_, context| add(context.index()));
                });
            });
            let once: usize = (1..=threads).sum();
            assert_eq!(sum.into_inner(), (2 + threads) * once);
        });
    }
}

#[test]
fn broadcast_that_panics() {
    with_pool(3, |pool| {
        let count = AtomicUsize::new(0);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.spawn_broadcast(|_, context| {
                    count.fetch_add(1, Ordering::Relaxed);
                    assert!(context.index() != 1, "on the second");
                });
            })
        });
        assert_eq!(text, "on the second");
        assert_eq!(count.into_inner(), 3);
    });
}

/// Closures are dropped before the scope ends.
#[test]
fn captures_are_dropped() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for _ in 0..100 {
        with_pool(2, |pool| {
            let drops = AtomicUsize::new(0);
            pool.scope(|scope| {
                let (spawned, everywhere) = (Counted(&drops), Counted(&drops));
                scope.spawn(move |_| drop(spawned));
                scope.spawn_broadcast(move |_, _| {
                    assert!(!std::ptr::eq(&everywhere, std::ptr::null()))
                });
            });
            assert_eq!(drops.into_inner(), 2);
        });
    }
}
