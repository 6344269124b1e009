//! Tasks that are spawned one by one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use super::{Case, Run, batch, chain};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::inside("spawn/scope", "scope with 1,000 tasks of about 1 us", |_| scope()),
        Case::inside("spawn/scopes", "20,000 scopes with two empty tasks", |_| scopes()),
        Case::inside("spawn/wide", "50,000 tasks of 256 bytes in a scope", |_| wide()),
        Case::outside("spawn/outside", "10,000 tasks from outside, and wait", |_| outside()),
    ]
}

fn scope() -> Run {
    const TASKS: u64 = 1_000;
    const TURNS: u32 = 220;
    let expected = (0..TASKS).map(|task| chain(task, TURNS) >> 32).sum::<u64>();
    batch(1, expected, || {
        let sum = AtomicU64::new(0);
        rayon::scope(|scope| {
            for task in 0..TASKS {
                let sum = &sum;
                scope.spawn(move |_| {
                    sum.fetch_add(chain(black_box(task), TURNS) >> 32, Ordering::Relaxed);
                });
            }
        });
        sum.into_inner()
    })
}

fn scopes() -> Run {
    const SCOPES: u64 = 20_000;
    let expected = SCOPES * (SCOPES - 1);
    batch(1, expected, || {
        let mut sum = 0;
        for number in 0..SCOPES {
            let (mut left, mut right) = (0, 0);
            rayon::scope(|scope| {
                scope.spawn(|_| left = black_box(number));
                scope.spawn(|_| right = black_box(number));
            });
            sum += left + right;
        }
        sum
    })
}

fn wide() -> Run {
    const TASKS: u64 = 50_000;
    let expected = (0..TASKS).sum::<u64>();
    batch(1, expected, || {
        let sum = AtomicU64::new(0);
        rayon::scope(|scope| {
            for task in 0..TASKS {
                let (sum, numbers) = (&sum, [black_box(task); 31]);
                scope.spawn(move |_| {
                    let [.., number] = black_box(numbers);
                    sum.fetch_add(number, Ordering::Relaxed);
                });
            }
        });
        sum.into_inner()
    })
}

/// Counts the tasks that are done.
struct Board {
    /// The sum of the tasks' values. Every task adds to it.
    sum: AtomicU64,
    /// The number of tasks that are not done. It is set before the first is spawned, and each task decrements it.
    left: AtomicUsize,
    /// The thread that waits for all of them.
    waiter: Thread,
}

impl Board {
    fn done(&self, value: u64) {
        self.sum.fetch_add(value, Ordering::Relaxed);
        // Ordering: release, the partner of the acquire load in `wait`: the thread that sees that no task is left
        // sees the whole sum. Acquire, so that the last task's decrement includes those before it.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiter.unpark();
        }
    }

    fn wait(&self) -> u64 {
        // Ordering: acquire, the partner of the decrement in `done`.
        while self.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
        self.sum.swap(0, Ordering::Relaxed)
    }
}

fn outside() -> Run {
    const TASKS: usize = 10_000;
    // Leaked, because a task may still be in `unpark` when everything else is over.
    let board: &'static Board = Box::leak(Box::new(Board {
        sum: AtomicU64::new(0),
        left: AtomicUsize::new(0),
        waiter: thread::current(),
    }));
    let expected = (0..TASKS as u64).sum::<u64>();
    batch(1, expected, move || {
        board.left.store(TASKS, Ordering::Relaxed);
        for task in 0..TASKS as u64 {
            rayon::spawn(move || board.done(black_box(task)));
        }
        board.wait()
    })
}
