//! Forks on a thread that holds no worker core: in the hooks at the start and at the end of the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heist::{Builder, Pool};

use crate::common::{Kind, assert_balanced, for_every_strategy};

for_every_strategy! {
    join_at_the_start,
    scope_at_the_start,
    join_at_the_end,
    scope_at_the_end,
    after_the_core_was_handed_off,
    wait_in_both_hooks,
}

/// A thread that has waited in the middle of a task, and has usually handed off its core, forks in its
/// stop hook.
fn after_the_core_was_handed_off(kind: Kind) {
    for _ in 0..ROUNDS {
        let count = Arc::new(AtomicUsize::new(0));
        let (threads, fork) = (Arc::new(AtomicUsize::new(0)), joins(&count));
        let ended = Arc::clone(&threads);
        let builder = kind.builder(2).on_thread_stop(move |n| {
            ended.fetch_add(1, Ordering::Relaxed);
            fork(n);
        });
        let pool = builder.build().expect("a pool");
        hand_off(&pool);
        pool.stop();
        let threads = threads.load(Ordering::Relaxed);
        assert_eq!(count.load(Ordering::Relaxed), 2 * threads);
        assert_balanced(&pool.stats());
    }
}

/// Every thread waits in both hooks for tasks of another pool, and then runs tasks that wait and hand off cores.
fn wait_in_both_hooks(kind: Kind) {
    for _ in 0..ROUNDS / 5 {
        let other = Arc::new(kind.pool(1));
        let wait = move || {
            // Long enough that the hook sleeps.
            let slow = || std::thread::sleep(std::time::Duration::from_millis(1));
            (0..2).for_each(|_| other.install(slow));
        };
        let (at_start, at_end) = (wait.clone(), wait);
        let builder = kind.builder(2).on_thread_start(move |_| at_start());
        let pool = builder.on_thread_stop(move |_| at_end()).build().expect("a pool");
        (0..3).for_each(|_| hand_off(&pool));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// A task waits, and its core is needed by another one: both workers are blocked.
fn hand_off(pool: &Pool) {
    let (open, opened) = std::sync::mpsc::channel::<()>();
    let slow = pool.spawn(move || _ = opened.recv());
    let waiter = pool.spawn(move || slow.join().is_ok());
    assert_eq!(pool.install(|| 1), 1);
    drop(open);
    assert!(waiter.join().expect("a result"));
}

const ROUNDS: usize = 50;

type Fork = Box<dyn Fn(usize) + Send + Sync>;

fn joins(count: &Arc<AtomicUsize>) -> Fork {
    let count = Arc::clone(count);
    let add = move || _ = count.fetch_add(1, Ordering::Relaxed);
    Box::new(move |_| _ = heist::join(&add, &add))
}

fn scopes(count: &Arc<AtomicUsize>) -> Fork {
    let count = Arc::clone(count);
    let add = move || _ = count.fetch_add(1, Ordering::Relaxed);
    Box::new(move |_| heist::scope(|scope| (0..2).for_each(|_| scope.spawn(|_| add()))))
}

/// Both halves run once on each thread.
fn forks(kind: Kind, fork: fn(&Arc<AtomicUsize>) -> Fork, hook: fn(Builder, Fork) -> Builder) {
    for workers in [2, 1] {
        for _ in 0..ROUNDS {
            let count = Arc::new(AtomicUsize::new(0));
            let pool = hook(kind.builder(workers), fork(&count)).build().expect("a pool");
            assert_eq!(pool.install(|| 1), 1);
            pool.stop();
            assert_eq!(count.load(Ordering::Relaxed), 2 * workers);
            assert_balanced(&pool.stats());
        }
    }
}

fn join_at_the_start(kind: Kind) {
    forks(kind, joins, |builder, fork| builder.on_thread_start(fork));
}

fn scope_at_the_start(kind: Kind) {
    forks(kind, scopes, |builder, fork| builder.on_thread_start(fork));
}

fn join_at_the_end(kind: Kind) {
    forks(kind, joins, |builder, fork| builder.on_thread_stop(fork));
}

fn scope_at_the_end(kind: Kind) {
    forks(kind, scopes, |builder, fork| builder.on_thread_stop(fork));
}
