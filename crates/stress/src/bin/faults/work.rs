//! Work that the cases give to pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use heist::{Pool, Strategy};

pub(crate) const STRATEGIES: [Strategy; 3] =
    [Strategy::WorkStealing, Strategy::LockedDeques, Strategy::GlobalQueue];

/// A tree of joins.
pub(crate) fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Tasks that wait for tasks.
pub(crate) fn tree(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = (heist::spawn(move || tree(n - 1)), heist::spawn(move || tree(n - 2)));
    thread::yield_now();
    a.join().expect("a result") + b.join().expect("a result")
}

/// Runs so many tasks, each of which waits for another one that runs elsewhere, while more tasks are queued: as a rule, each of
/// them hands its core to another thread. The pool has at least two workers.
pub(crate) fn hand_offs(pool: &Arc<Pool>, count: usize) {
    let ran = Arc::new(AtomicUsize::new(0));
    let waiting: Vec<_> = (0..count)
        .map(|_| {
            let (here, ran) = (Arc::clone(pool), Arc::clone(&ran));
            pool.spawn(move || {
                let begun = Arc::new(AtomicBool::new(false));
                let (tell, outer) = (Arc::clone(&begun), Instant::now());
                let other = here.spawn(move || {
                    tell.store(true, SeqCst);
                    // Long enough that the thread which waits does not only look.
                    thread::sleep(Duration::from_micros(500));
                });
                // If all workers are here, nobody runs it before it is joined.
                while !begun.load(SeqCst) && outer.elapsed() < Duration::from_millis(5) {
                    thread::yield_now();
                }
                let queued: Vec<_> = (0..3)
                    .map(|_| {
                        let ran = Arc::clone(&ran);
                        here.spawn(move || ran.fetch_add(1, SeqCst))
                    })
                    .collect();
                other.join().expect("no panic");
                queued.into_iter().for_each(|task| _ = task.join().expect("no panic"));
            })
        })
        .collect();
    waiting.into_iter().for_each(|task| task.join().expect("no panic"));
    assert_eq!(ran.load(SeqCst), 3 * count);
}
