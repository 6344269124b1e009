//! The number of threads of a pool whose tasks wait: it does not grow with the number of waits.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heist::Pool;

use crate::common::{Kind, WORKERS, assert_balanced, for_every_strategy};

for_every_strategy! {
    tasks_that_wait_for_a_slow_pool,
    recursive_batches,
}

/// Keeps the processor busy.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

/// Each of many tasks waits for half a millisecond of work on another pool, which has only one worker.
fn tasks_that_wait_for_a_slow_pool(kind: Kind) {
    const TASKS: usize = 2000;
    /// Far fewer than the tasks, and more than a small reserve with what is added to it within a second.
    const MOST: usize = 128;
    let inner = Arc::new(kind.pool(1));
    for workers in [1, 2] {
        let (builder, threads) = kind.counted_builder(workers);
        let outer = builder.build().expect("a pool");
        let tasks: Vec<_> = (0..TASKS)
            .map(|n| {
                let inner = Arc::clone(&inner);
                outer.spawn(move || inner.install(|| (work(Duration::from_micros(500)), n).1))
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join().expect("a result"), n);
        }
        outer.stop();
        assert_balanced(&outer.stats());
        let most = threads.most();
        assert!(most < MOST, "{most} threads for {workers} workers");
    }
}

/// Each task waits for a batch of two, to a depth of eight.
fn recursive_batches(kind: Kind) {
    const DEPTH: u32 = 8;
    /// What a pool may have beyond its workers: a task of each level may wait while another takes over, and
    /// some threads end later than others begin.
    const EXTRA: usize = 20;
    fn grow(pool: &Arc<Pool>, depth: u32, ran: &Arc<AtomicUsize>) -> usize {
        ran.fetch_add(1, Ordering::Relaxed);
        if depth == 0 {
            return 1;
        }
        let halves = [(); 2].map(|()| {
            let (pool, ran) = (Arc::clone(pool), Arc::clone(ran));
            move || grow(&pool, depth - 1, &ran)
        });
        pool.spawn_batch(halves).join().expect("results").into_iter().sum()
    }
    for workers in WORKERS {
        let (builder, threads) = kind.counted_builder(workers);
        let pool = Arc::new(builder.build().expect("a pool"));
        for _ in 0..20 {
            let ran = Arc::new(AtomicUsize::new(0));
            let (here, counted) = (Arc::clone(&pool), Arc::clone(&ran));
            let root = pool.spawn(move || grow(&here, DEPTH, &counted));
            assert_eq!(root.join().expect("a result"), 1 << DEPTH);
            assert_eq!(ran.load(Ordering::Relaxed), (2 << DEPTH) - 1);
        }
        let most = threads.most();
        assert!(most <= workers + EXTRA, "{most} threads for {workers} workers");
    }
}
