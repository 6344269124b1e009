//! The contract of broadcasts: the closure runs once on each thread, wherever the broadcast is called.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rayon_core::{broadcast, spawn, spawn_broadcast};

use crate::common::{panic_of, with_pool};

#[test]
fn from_outside() {
    for threads in [1, 2, 5] {
        with_pool(threads, |pool| {
            let seen = pool.broadcast(|context| {
                assert_eq!(context.num_threads(), threads);
                assert_eq!(pool.current_thread_index(), Some(context.index()));
                (context.index(), thread::current().id())
            });
            let indices: Vec<_> = seen.iter().map(|&(index, _)| index).collect();
            assert_eq!(indices, (0..threads).collect::<Vec<_>>());
            let again = pool.broadcast(|context| (context.index(), thread::current().id()));
            assert_eq!(seen, again, "a thread keeps its number");
        });
    }
}

#[test]
fn from_inside() {
    for threads in [1, 3] {
        with_pool(threads, |pool| {
            assert_eq!(pool.install(|| broadcast(|context| context.index())).len(), threads);
            let nested = pool.broadcast(|_| broadcast(|context| context.index()).len());
            assert_eq!(nested, vec![threads; threads]);
        });
    }
}

#[test]
fn from_another_pool() {
    with_pool(2, |ours| {
        with_pool(3, |theirs| {
            let everywhere = ours.broadcast(|_| theirs.broadcast(|context| context.num_threads()));
            assert_eq!(everywhere, vec![vec![3; 3]; 2]);
            assert_eq!(ours.install(|| broadcast(|context| context.num_threads())), [2, 2]);
        });
    });
}

#[test]
fn from_many_threads() {
    with_pool(2, |pool| {
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.broadcast(|_| count.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 400);
    });
}

#[test]
fn panic_of_one() {
    with_pool(3, |pool| {
        for bad in 0..3 {
            let count = AtomicUsize::new(0);
            let text = panic_of(|| {
                pool.broadcast(|context| {
                    count.fetch_add(1, Ordering::Relaxed);
                    assert!(context.index() != bad, "number {bad}");
                })
            });
            assert_eq!(text, format!("number {bad}"));
            assert_eq!(count.into_inner(), 3);
        }
    });
}

#[test]
fn panic_of_all() {
    with_pool(3, |pool| {
        let count = AtomicUsize::new(0);
        let text = panic_of(|| {
            pool.broadcast(|_| {
                count.fetch_add(1, Ordering::Relaxed);
                panic!("everywhere")
            })
        });
        assert_eq!(text, "everywhere");
        assert_eq!(count.into_inner(), 3);
    });
}

#[test]
fn results_are_dropped_once() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    with_pool(3, |pool| {
        let drops = AtomicUsize::new(0);
        drop(pool.broadcast(|_| Counted(&drops)));
        assert_eq!(drops.load(Ordering::Relaxed), 3);
        panic_of(|| {
            pool.broadcast(|context| {
                assert!(context.index() != 1, "the second");
                Counted(&drops)
            })
        });
        assert_eq!(drops.into_inner(), 5);
    });
}

/// A broadcast runs after the tasks that the thread has spawned itself.
#[test]
fn runs_after_local_tasks() {
    with_pool(1, |pool| {
        let (tell, told) = mpsc::channel();
        pool.install(|| {
            let (everywhere, spawned) = (tell.clone(), tell.clone());
            spawn_broadcast(move |_| everywhere.send("broadcast").unwrap());
            spawn(move || spawned.send("spawn").unwrap());
        });
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["spawn", "broadcast"]);
    });
}

#[test]
fn spawned_in_order() {
    with_pool(2, |pool| {
        let (tell, told) = mpsc::channel();
        for n in 0..10 {
            let tell = tell.clone();
            pool.spawn_broadcast(move |context| tell.send((context.index(), n)).unwrap());
        }
        drop(tell);
        let mut seen: Vec<_> = told.iter().collect();
        // A stable sort: the events of each thread stay in order.
        seen.sort_by_key(|&(index, _)| index);
        let expected: Vec<_> = (0..2).flat_map(|index| (0..10).map(move |n| (index, n))).collect();
        assert_eq!(seen, expected);
    });
}
