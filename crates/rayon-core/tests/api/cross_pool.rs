//! The contract between pools: a thread that waits for another pool runs tasks of its own, and pools that
//! wait for each other do not deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use rayon_core::{ThreadPool, join, spawn};

use crate::common::{Order, add, panic_of, with_pool};

#[test]
fn install() {
    with_pool(2, |ours| {
        with_pool(3, |theirs| {
            let sizes = ours.install(|| {
                let before = rayon_core::current_num_threads();
                let there = theirs.install(rayon_core::current_num_threads);
                (before, there, rayon_core::current_num_threads())
            });
            assert_eq!(sizes, (2, 3, 2));
            assert_eq!(ours.install(|| ours.install(|| 1)), 1);
            assert_eq!(panic_of(|| ours.install(|| theirs.install(|| panic!("afar")))), "afar");
        });
    });
}

/// Two pools with one thread each call each other: a thread that waits for the other pool runs the tasks
/// that come from there.
#[test]
fn ping_pong() {
    fn bounce(depth: usize, here: &ThreadPool, there: &ThreadPool) -> usize {
        if depth == 0 { 0 } else { 1 + there.install(|| bounce(depth - 1, there, here)) }
    }
    with_pool(1, |a| with_pool(1, |b| assert_eq!(a.install(|| bounce(50, a, b)), 50)));
}

#[test]
fn joins_across() {
    fn count(depth: usize, here: &ThreadPool, there: &ThreadPool) -> usize {
        if depth == 0 {
            return 1;
        }
        let (a, b) = join(
            || there.install(|| count(depth - 1, there, here)),
            || count(depth - 1, here, there),
        );
        a + b
    }
    for (a, b) in [(1, 1), (1, 2), (2, 2)] {
        with_pool(a, |a| with_pool(b, |b| assert_eq!(a.install(|| count(7, a, b)), 128)));
    }
}

/// A thread that waits for another pool runs tasks of its own pool.
#[test]
fn runs_tasks_while_it_waits() {
    with_pool(1, |ours| {
        with_pool(1, |theirs| {
            let (tell, told) = mpsc::channel();
            ours.install(|| {
                spawn(move || tell.send(rayon_core::current_thread_index()).unwrap());
                // This ends when the only thread of our pool has run the task.
                assert_eq!(theirs.install(move || told.recv()), Ok(Some(0)));
            });
        });
    });
}

#[test]
fn scopes_across() {
    with_pool(1, |ours| {
        with_pool(1, |theirs| {
            let order = Order::default();
            ours.install(|| {
                theirs.in_place_scope(|scope| {
                    assert!(ours.current_thread_index().is_some());
                    scope.spawn(|_| {
                        assert!(theirs.current_thread_index().is_some());
                        order.push(1);
                    });
                });
                order.push(2);
                theirs.scope(|scope| scope.spawn(|_| order.push(3)));
            });
            assert_eq!(order.take(), [1, 2, 3]);
        });
    });
}

#[test]
fn spawns_across() {
    let count = Arc::new(AtomicUsize::new(0));
    with_pool(2, |ours| {
        with_pool(2, |theirs| {
            ours.broadcast(|_| {
                for _ in 0..100 {
                    let (one, other) = (Arc::clone(&count), Arc::clone(&count));
                    theirs.spawn(move || add(&one, 1));
                    theirs.spawn_fifo(move || add(&other, 1));
                }
            });
        });
    });
    assert_eq!(count.load(Ordering::Relaxed), 400);
}
