//! Forks of a task that has handed off its core while it waited. No other worker may be free for its parts,
//! because all of them may want a lock that the task holds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use heist::Pool;

use crate::common::{Kind, WORKERS, for_every_strategy, held_task};
use heist_testkit::watchdog::eventually;

for_every_strategy! {
    scope_while_all_want_the_lock,
    nested_scope_while_all_want_the_lock,
    join_while_all_want_the_lock,
    task_while_all_want_the_lock,
    batch_while_all_want_the_lock,
    scope_after_a_task_of_the_same_pool,
    batch_after_a_task_of_the_same_pool,
    deep_scope_without_another_thread,
    deep_batch_without_another_thread,
}

/// What a task does under the lock. It returns how many parts have run.
type Fork = fn(&Pool) -> usize;

fn scope(_: &Pool) -> usize {
    let count = AtomicUsize::new(0);
    heist::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
        }
    });
    count.into_inner()
}

fn nested_scope(pool: &Pool) -> usize {
    let count = AtomicUsize::new(0);
    heist::scope(|outer| {
        outer.spawn(|_| _ = count.fetch_add(scope(pool), Ordering::Relaxed));
    });
    count.into_inner()
}

fn join(_: &Pool) -> usize {
    let (one, another) = heist::join(|| 1, || 1);
    one + another
}

fn task(_: &Pool) -> usize {
    heist::spawn(|| heist::spawn(|| 2).join().expect("a result")).join().expect("a result")
}

fn batch(pool: &Pool) -> usize {
    pool.spawn_batch([|| 1, || 1]).join().expect("results").into_iter().sum()
}

fn scope_while_all_want_the_lock(kind: Kind) {
    all_want_the_lock(kind, scope);
}

fn nested_scope_while_all_want_the_lock(kind: Kind) {
    all_want_the_lock(kind, nested_scope);
}

fn join_while_all_want_the_lock(kind: Kind) {
    all_want_the_lock(kind, join);
}

fn task_while_all_want_the_lock(kind: Kind) {
    all_want_the_lock(kind, task);
}

fn batch_while_all_want_the_lock(kind: Kind) {
    all_want_the_lock(kind, batch);
}

fn scope_after_a_task_of_the_same_pool(kind: Kind) {
    same_pool(kind, scope);
}

fn batch_after_a_task_of_the_same_pool(kind: Kind) {
    same_pool(kind, batch);
}

fn deep_scope_without_another_thread(kind: Kind) {
    deep_without_another_thread(kind, |_, part| heist::scope(|scope| scope.spawn(|_| part())));
}

fn deep_batch_without_another_thread(kind: Kind) {
    deep_without_another_thread(kind, |pool, part| {
        pool.spawn_batch([part]).join().expect("a result");
    });
}

type Part = Box<dyn FnOnce() + Send>;

/// A task that has used a good part of its stack forks. The pool may have no more threads, and its other worker is blocked
/// until the part of that fork has run. So the part runs here.
fn deep_without_another_thread(kind: Kind, fork: fn(&Pool, Part)) {
    const STACK: usize = 4 << 20;
    let builder = kind.builder(2).max_threads(2).stack_size(STACK);
    let pool = Arc::new(builder.build().expect("a pool"));
    let (begin, has_begun) = mpsc::channel();
    let (end, has_ended) = mpsc::channel();
    let blocked = pool.spawn(move || {
        begin.send(()).expect("a test that waits");
        has_ended.recv().expect("the part sends it");
    });
    has_begun.recv().expect("a task that runs");
    let here = Arc::clone(&pool);
    let forking = pool.spawn(move || {
        let part = Box::new(move || end.send(()).expect("a task that waits"));
        deeper(STACK / 8 * 3, || fork(&here, part));
    });
    forking.join().expect("a result");
    blocked.join().expect("a result");
}

/// Calls `f` when that much more of the stack is used.
fn deeper(bytes: usize, f: impl FnOnce()) {
    fn go(top: usize, bytes: usize, f: &mut dyn FnMut()) {
        let frame = [0_u8; 256];
        if top.abs_diff(frame.as_ptr().addr()) < bytes {
            go(top, bytes, f);
        } else {
            f();
        }
        std::hint::black_box(&frame);
    }
    let (top, mut f) = (0_u8, Some(f));
    go((&raw const top).addr(), bytes, &mut || f.take().expect("called once")());
}

/// A task takes the lock and waits for a task on another pool. Then as many tasks want the lock as there are
/// workers, so that all cores are in use when the first task forks.
fn all_want_the_lock(kind: Kind, fork: Fork) {
    for workers in WORKERS {
        let (here, there) = (Arc::new(kind.pool(workers)), kind.pool(1));
        let (open, slow) = held_task(&there);
        let held = Held::new();
        let (holder, pool, state) = (mpsc::channel(), Arc::clone(&here), held.clone());
        let first = here.spawn(move || {
            heist::isolate(|| {
                let _guard = state.lock.lock().expect("no panic");
                holder.0.send(()).expect("a test that waits");
                slow.join().expect("a result");
                fork(&pool)
            })
        });
        holder.1.recv().expect("a task that has the lock");
        let others: Vec<_> = (0..workers).map(|_| held.want(&here)).collect();
        eventually("all cores are in use", || held.wanting() == workers);
        drop(open);
        assert_eq!(first.join().expect("a result"), 2);
        others.into_iter().for_each(|other| other.join().expect("a result"));
    }
}

/// The awaited task runs on the second of two workers. When it ends, its worker may take the second of the
/// tasks that want the lock.
fn same_pool(kind: Kind, fork: Fork) {
    for _ in 0..5 {
        let pool = Arc::new(kind.pool(2));
        let (open, slow) = held_task(&pool);
        let held = Held::new();
        let (holder, here, state) = (mpsc::channel(), Arc::clone(&pool), held.clone());
        let first = pool.spawn(move || {
            heist::isolate(|| {
                let _guard = state.lock.lock().expect("no panic");
                holder.0.send(()).expect("a test that waits");
                slow.join().expect("a result");
                // This leaves time for the free worker, which need not take a task that wants the lock.
                (0..20).take_while(|_| state.wanting() < 2).for_each(|_| {
                    thread::sleep(Duration::from_millis(1));
                });
                fork(&here)
            })
        });
        holder.1.recv().expect("a task that has the lock");
        let others = [held.want(&pool), held.want(&pool)];
        eventually("another task runs on the core", || held.wanting() > 0);
        drop(open);
        assert_eq!(first.join().expect("a result"), 2);
        others.into_iter().for_each(|other| other.join().expect("a result"));
    }
}

/// A lock, and the number of tasks that have asked for it.
#[derive(Clone)]
struct Held {
    lock: Arc<Mutex<()>>,
    wanting: Arc<AtomicUsize>,
}

impl Held {
    fn new() -> Self {
        Self { lock: Arc::default(), wanting: Arc::default() }
    }

    fn wanting(&self) -> usize {
        self.wanting.load(Ordering::SeqCst)
    }

    /// Spawns a task that wants the lock.
    fn want(&self, pool: &Pool) -> heist::JoinHandle<()> {
        let held = self.clone();
        pool.spawn(move || {
            held.wanting.fetch_add(1, Ordering::SeqCst);
            drop(held.lock.lock().expect("no panic"));
        })
    }
}
