//! Starts the threads of a case, lets them take turns, and ends them even if one panics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores;

/// A value with a cache line of its own, and the neighbouring line that is prefetched with it. What one thread polls
/// must not share a line with what another thread writes.
#[derive(Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// Runs the function when it is dropped, also by a panic.
pub struct Finally<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Spins until `done`, so that the waiting thread keeps its processor. It yields from time to time, for machines
/// with fewer processors than threads.
pub fn spin_until(done: impl Fn() -> bool) {
    /// About as long as a thread needs that is already running on the other processor. A guess.
    const SPINS: usize = 10_000;
    loop {
        for _ in 0..SPINS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

/// Passes the turn between two threads: even numbers are the filler's turns, odd numbers the drainer's.
#[derive(Default)]
struct Baton(Padded<AtomicU64>);

impl Baton {
    /// One of the two threads has ended.
    const DROPPED: u64 = u64::MAX;

    fn pass(&self, turn: u64) {
        // Ordering: release, the partner of the load in `wait_for`. What was done in this turn is visible in the
        // next one.
        self.0.0.store(turn, Ordering::Release);
    }

    /// Waits for a turn. Returns false if the other thread has ended.
    #[must_use]
    fn wait_for(&self, turn: u64) -> bool {
        // Ordering: acquire, the partner of the store in `pass`.
        let now = || self.0.0.load(Ordering::Acquire);
        spin_until(|| now() == turn || now() == Self::DROPPED);
        now() == turn
    }

    /// Drops the baton at the end of either thread, so that the other one does not wait forever.
    fn dropped_at_end(&self) -> Finally<impl FnMut()> {
        Finally(|| self.pass(Self::DROPPED))
    }
}

/// Fills on this thread and drains on another one, in turns. Returns the time that draining took.
pub fn relay(laps: u64, mut fill: impl FnMut(), mut drain: impl FnMut() + Send) -> Duration {
    let baton = Baton::default();
    let drainer = || {
        let _end = baton.dropped_at_end();
        cores::pin(cores::THIEF);
        let mut time = Duration::ZERO;
        for lap in 0..laps {
            if !baton.wait_for(2 * lap + 1) {
                break;
            }
            let start = Instant::now();
            drain();
            time += start.elapsed();
            baton.pass(2 * lap + 2);
        }
        time
    };
    thread::scope(|scope| {
        let drainer = scope.spawn(drainer);
        let end = baton.dropped_at_end();
        for lap in 0..laps {
            fill();
            baton.pass(2 * lap + 1);
            if !baton.wait_for(2 * lap + 2) {
                break;
            }
        }
        drop(end);
        drainer.join().expect("the drainer panicked; its message is above")
    })
}
