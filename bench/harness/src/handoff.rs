//! Measures how long a cache line takes from one processor to the other.
//!
//! No queue is involved: this is the unit cost of all communication between threads. The host of a virtual
//! machine moves its processors around, and the number changes with them. On the reference machine it is 45 ns
//! for some time, then 175 ns, and never between, and some queues suffer more from it than others. Therefore it
//! is measured in every round and reported.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores;
use crate::threads::Padded;

/// Long enough for some ten thousand trips.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 1 });

/// Trips between two looks at the clock.
const BLOCK: u64 = 64;

/// Tells the other side to return.
const END: u64 = u64::MAX;

/// Returns the nanoseconds one way between the owner's processor, where this is called, and the thief's.
pub(crate) fn measure() -> f64 {
    let line = Padded(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            cores::pin(cores::THIEF);
            answer(&line.0);
        });
        // The first answer shows that the other side has started.
        let mut trips = ask(&line.0, 0);
        let (start, first) = (Instant::now(), trips);
        let mut time = Duration::ZERO;
        while trips == first || time < TIME {
            for _ in 0..BLOCK {
                trips = ask(&line.0, trips);
            }
            time = start.elapsed();
        }
        line.0.store(END, Ordering::Relaxed);
        time.as_nanos() as f64 / (trips - first) as f64
    })
}

/// Sends the line there and back, which is two trips.
fn ask(line: &AtomicU64, trips: u64) -> u64 {
    // Ordering: relaxed, here and in `answer`. Only the number itself is communicated.
    line.store(trips + 1, Ordering::Relaxed);
    wait(line, |now| now == trips + 2)
}

fn answer(line: &AtomicU64) {
    loop {
        let now = wait(line, |now| now % 2 == 1);
        if now == END {
            return;
        }
        line.store(now + 1, Ordering::Relaxed);
    }
}

/// Spins until the value is due. Yields after a while, for machines with one processor.
fn wait(line: &AtomicU64, is_due: impl Fn(u64) -> bool) -> u64 {
    /// Longer than any trip, shorter than a time slice.
    const LOOKS: usize = 10_000;
    loop {
        for _ in 0..LOOKS {
            let now = line.load(Ordering::Relaxed);
            if is_due(now) {
                return now;
            }
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_hand_off_takes_time_and_ends() {
        assert!(super::measure() > 0.0);
    }
}
