//! How the threads of a case start, take turns and end, also when one of them panics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores;

/// A cache line to itself, and its neighbour that is fetched with it: what one thread asks for all
/// the time must not sit beside what another writes.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Runs the function at the end of the block, also when that comes by a panic.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waits without sleeping, so that the waiting thread keeps its core; with more threads than
/// cores, it lets another one run from time to time.
pub(crate) fn spin_until(done: impl Fn() -> bool) {
    /// About as long as a thread takes that is already running on the other core. A guess.
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

/// Whose turn it is: even numbers are the filler's, odd ones the drainer's.
#[derive(Default)]
struct Baton(Padded<AtomicU64>);

impl Baton {
    /// One of the two has gone.
    const DROPPED: u64 = u64::MAX;

    fn pass(&self, turn: u64) {
        // Ordering: release. What was done in this turn is there for the next.
        self.0.0.store(turn, Ordering::Release);
    }

    /// False if the other has gone.
    #[must_use]
    fn wait_for(&self, turn: u64) -> bool {
        // Ordering: acquire, the partner of `pass`.
        let now = || self.0.0.load(Ordering::Acquire);
        spin_until(|| now() == turn || now() == Self::DROPPED);
        now() == turn
    }

    /// At the end of either thread, so that the other does not wait in vain.
    fn dropped_at_end(&self) -> Finally<impl FnMut()> {
        Finally(|| self.pass(Self::DROPPED))
    }
}

/// Fills on this thread and drains on another, by turns: the time that the draining took.
pub(crate) fn relay(laps: u64, mut fill: impl FnMut(), mut drain: impl FnMut() + Send) -> Duration {
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
        drainer.join().expect("the drainer says what went wrong")
    })
}
