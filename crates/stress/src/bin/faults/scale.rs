//! Very many workers, tasks and pools, and deep recursion.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use heist::{Pool, parallel};

use crate::alloc::live_bytes;
use crate::case::{Case, Size};
use crate::work::{STRATEGIES, fib, hand_offs};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("scale: a thousand workers", thousand_workers),
        Case::new("scale: millions of queued tasks", queued_tasks),
        Case::new("scale: very many pools", many_pools),
        Case::new("scale: recursion to the end of the stack", deep),
    ]
}

/// The most that a queued task may take: its slot, its place in a queue that has doubled, and the handle of this test.
const BYTES_PER_TASK: i64 = 64 + 16 + 32;

fn thousand_workers(size: Size) {
    for strategy in STRATEGIES {
        let builder = Pool::builder().workers(1_000).stack_size(256 << 10).strategy(strategy);
        let pool = Arc::new(builder.build().expect("a pool"));
        for _ in 0..size.choose(1, 20) {
            assert_eq!(pool.install(|| fib(20)), 6_765);
            hand_offs(&pool, 20);
            let tasks: Vec<_> = (0..20_000_u64).map(|n| pool.spawn(move || n)).collect();
            let sum: u64 = tasks.into_iter().map(|task| task.join().expect("a result")).sum();
            assert_eq!(sum, 199_990_000);
            assert_eq!(pool.broadcast(|_| 1).len(), 1_000);
            let squares = pool.install(|| parallel::map(0..100_000_u64, |n| n * n));
            assert_eq!(squares.len(), 100_000);
        }
        pool.stop();
        assert_eq!(pool.stats().threads, 0);
    }
}

/// Queues tasks in a pool whose workers are busy, from outside and from a task, and checks what they take.
fn queued_tasks(size: Size) {
    let count = size.choose(1_000_000, 10_000_000);
    for strategy in STRATEGIES {
        for from_inside in [false, true] {
            let pool = Pool::builder().workers(1).strategy(strategy).build().expect("a pool");
            let (sum, before) = (Arc::new(AtomicU64::new(0)), live_bytes());
            let (open, gate) = std::sync::mpsc::channel::<()>();
            let busy = pool.spawn(move || gate.recv().is_err());
            let handle = pool.handle();
            let push = {
                let sum = Arc::clone(&sum);
                move || {
                    for n in 0..count {
                        let sum = Arc::as_ptr(&sum) as usize;
                        drop(handle.spawn(move || {
                            // SAFETY: the counter lives until the pool has stopped.
                            unsafe { &*(sum as *const AtomicU64) }.fetch_add(n, Relaxed);
                        }));
                    }
                    live_bytes()
                }
            };
            let most = if from_inside {
                drop(open);
                pool.spawn(push).join().expect("a result")
            } else {
                let most = push();
                // Its handle of the pool would keep the memory.
                drop(push);
                drop(open);
                most
            };
            assert!(busy.join().expect("a result"));
            let each = (most - before) / count as i64;
            assert!(each <= BYTES_PER_TASK, "{strategy}: {each} bytes for each queued task");
            pool.stop();
            assert_eq!(sum.load(Relaxed), count * (count - 1) / 2);
            drop(pool);
            // The memory of the slots is freed with the last pool.
            let left = live_bytes() - before;
            assert!(left < 1 << 20, "{strategy}: {left} bytes are left");
        }
    }
}

/// Builds and drops pools, and checks that no thread and no byte is left of them.
fn many_pools(size: Size) {
    let round = |n: usize| {
        let pool = Pool::builder().workers(1 + n % 3).strategy(STRATEGIES[n % 3]);
        let pool = pool.build().expect("a pool");
        if n.is_multiple_of(2) {
            assert_eq!(pool.install(|| fib(5)), 5);
        }
        if n.is_multiple_of(5) {
            drop(pool.spawn(move || n));
        }
    };
    (0..100).for_each(round);
    settle();
    let (bytes, memory) = (live_bytes(), resident());
    let count = size.choose(2_000, 100_000);
    (0..count).for_each(round);
    settle();
    assert!(live_bytes() <= bytes, "{} bytes are left", live_bytes() - bytes);
    // The C library keeps some stacks.
    let more = resident().saturating_sub(memory);
    assert!(more < 32 << 20, "{more} more bytes of memory");
}

/// Waits until this thread is the only one.
fn settle() {
    let start = Instant::now();
    while fs::read_dir("/proc/self/task").expect("a directory").count() > 1 {
        assert!(start.elapsed() < Duration::from_secs(30), "a thread is left");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns how many bytes of memory this process has.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").expect("a file");
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// Joins, scopes and installs, one within the other, until little of the stack is left. What waits at that depth runs nothing
/// on top that would not fit.
fn deep(size: Size) {
    const STACK: usize = 8 << 20;
    fn nest(top: usize, by: usize) -> u64 {
        let here = std::hint::black_box([0_u8; 64]);
        if top.abs_diff(here.as_ptr().addr()) > STACK / 10 * 9 {
            return 1;
        }
        let below = match by {
            0 => heist::join(|| nest(top, by), || fib(3)).0,
            1 => heist::join(|| fib(3), || nest(top, by)).1,
            _ => heist::scope(|_| nest(top, by)),
        };
        below + u64::from(here[7])
    }
    for strategy in STRATEGIES {
        for workers in [1, 2, 4] {
            let pool = Pool::builder().workers(workers).strategy(strategy).stack_size(STACK);
            let pool = pool.build().expect("a pool");
            for by in 0..3 {
                for _ in 0..size.choose(1, 20) {
                    let start = || {
                        let top = 0_u8;
                        nest((&raw const top).addr(), by)
                    };
                    assert_eq!(pool.install(start), 1);
                }
            }
        }
    }
}
