//! Forks of whole pools.

use heist::Strategy;
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::sync::mpsc;
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { meetings meetings_beside_a_task }

/// Keeps forking, and returns when another thread has taken the second half.
fn meet() {
    let met = AtomicBool::new(false);
    let fork = || {
        while !met.load(SeqCst) {
            _ = heist::join(thread::yield_now, || ())
        }
    };
    heist::join(fork, || met.store(true, SeqCst));
}

/// The other worker is idle. Whatever happened to earlier forks, it takes part in the next one.
fn meetings(strategy: Strategy) {
    let pool = pool(strategy, 2);
    pool.install(|| {
        for _ in 0..2 {
            heist::join(|| (), || ());
            meet();
        }
    });
    pool.stop();
    exact(&pool);
}

/// Like `meetings`, while one of the other workers runs a task.
fn meetings_beside_a_task(strategy: Strategy) {
    let pool = pool(strategy, 3);
    let (end, ended) = mpsc::channel();
    let other = pool.spawn(move || ended.recv().unwrap());
    pool.install(|| {
        heist::join(|| (), || ());
        meet();
    });
    end.send(()).unwrap();
    other.join().unwrap();
    pool.stop();
    exact(&pool);
}
