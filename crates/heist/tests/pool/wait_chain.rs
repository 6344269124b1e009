//! The contract of chains of waits: tasks that wait for each other in a long row overflow no stack and
//! block no pool.

use std::sync::{Arc, Mutex, mpsc};

use heist::JoinHandle;

use crate::common::{Gate, Kind, ThreadGroup, WORKERS, assert_counts, for_every_strategy};

for_every_strategy! {
    descending,
    large_frames,
    from_outside,
    behind_a_gate,
    from_inside,
    behind_each_other,
    held_across_a_wait,
}

/// The length of the long chains, which would not fit on one stack.
const LENGTH: u64 = 10_000;

/// Each task submits the next and waits for it.
fn descending(kind: Kind) {
    fn descend(length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        heist::spawn(move || descend(length - 1)).join().expect("a result") + 1
    }
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        assert_eq!(pool.spawn(|| descend(LENGTH)).join().expect("a result"), LENGTH);
        assert_counts(&pool, LENGTH + 1, 0, 0);
        group.assert_gone();
    }
}

/// A few of these fill a stack.
fn large_frames(kind: Kind) {
    fn descend(length: u64) -> u64 {
        let frame = std::hint::black_box([length as u8; 128 << 10]);
        if length == 0 {
            return 0;
        }
        let below = heist::spawn(move || descend(length - 1)).join().expect("a result");
        assert_eq!(std::hint::black_box(frame)[4096], length as u8);
        below + 1
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn(|| descend(100)).join().expect("a result"), 100);
    }
}

/// Submits a chain of tasks, each with the handle of the one before it.
fn chain(mut spawn: impl FnMut(Option<JoinHandle<u64>>) -> JoinHandle<u64>) -> JoinHandle<u64> {
    let mut last = spawn(None);
    for _ in 0..LENGTH {
        last = spawn(Some(last));
    }
    last
}

fn link(before: Option<JoinHandle<u64>>) -> u64 {
    before.map_or(0, |before| before.join().expect("a result") + 1)
}

fn from_outside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let last = chain(|before| pool.spawn(move || link(before)));
        assert_eq!(last.join().expect("a result"), LENGTH);
        assert_counts(&pool, LENGTH + 1, 0, 0);
    }
}

/// The whole chain is submitted before the first task runs.
fn behind_a_gate(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let last = chain(|before| pool.spawn(move || link(before)));
        gate.open();
        assert_eq!(last.join().expect("a result"), LENGTH);
    }
}

/// A worker takes its newest task first, which waits for all others.
fn from_inside(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let last = pool.spawn(|| chain(|before| heist::spawn(move || link(before))));
        assert_eq!(last.join().expect("a handle").join().expect("a result"), LENGTH);
        // The same by a task that waits itself.
        let last = pool.spawn(|| chain(|before| heist::spawn(move || link(before))).join());
        assert_eq!(last.join().expect("a result").expect("a result"), LENGTH);
    }
}

/// Every task waits for another pool, and the task that releases them is the last one in the queue.
/// There are more of them than the pool may have threads.
fn behind_each_other(kind: Kind) {
    const WAITERS: u64 = 150;
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let here = kind.builder_in(&group, workers).max_threads(workers + 64);
        let (here, there) = (here.build().expect("a pool"), kind.pool(1));
        let there = Arc::new(there);
        let (open, opened) = mpsc::channel::<()>();
        there.spawn(move || _ = opened.recv());
        let waiters: Vec<_> = (0..WAITERS)
            .map(|n| {
                let there = Arc::clone(&there);
                here.spawn(move || there.install(|| n))
            })
            .collect();
        here.spawn(move || drop(open));
        let sum: u64 = waiters.into_iter().map(|waiter| waiter.join().expect("a result")).sum();
        assert_eq!(sum, WAITERS * (WAITERS - 1) / 2);
        assert_counts(&here, WAITERS + 1, 0, 0);
        group.assert_gone();
    }
}

/// A task holds a lock while it waits, on a stack too deep to run other tasks on top. The thread that
/// takes over the core must first run the task that is waited for, because every other task waits for
/// the lock.
fn held_across_a_wait(kind: Kind) {
    #[inline(never)]
    fn with_a_large_frame(lock: &Mutex<u64>) {
        let frame = std::hint::black_box([1_u8; 256 << 10]);
        let mut sum = lock.lock().expect("nobody panics");
        *sum += heist::spawn(|| 1).join().expect("a result");
        std::hint::black_box(frame);
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let lock = Arc::new(Mutex::new(0));
        let handles: Vec<_> = (0..200)
            .map(|_| Arc::clone(&lock))
            .map(|lock| pool.spawn(move || with_a_large_frame(&lock)))
            .collect();
        for handle in handles {
            handle.join().expect("a result");
        }
        assert_eq!(*lock.lock().expect("nobody panics"), 200);
    }
}
