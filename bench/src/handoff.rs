//! How far apart the two cores are: the time that a cache line takes from one to the other.
//!
//! No queue is involved; it is the unit in which everything between threads is paid. A host moves
//! the cores of a virtual machine about, and this number with them: on our reference machine it is
//! 45 ns for a while, then 175, with nothing between, and some queues mind more than others. So
//! it is taken every round and reported.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores;
use crate::threads::Padded;

/// Long enough for some ten thousand trips.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 1 });

/// Trips between two looks at the clock.
const BLOCK: u64 = 64;

/// Tells the other side to go home.
const END: u64 = u64::MAX;

/// Nanoseconds one way, between the owner's core, where this is called, and the thief's.
pub(crate) fn measure() -> f64 {
    let line = Padded(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            cores::pin(cores::THIEF);
            answer(&line.0);
        });
        // The first answer means that the other side is there.
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

/// There and back: two trips.
fn ask(line: &AtomicU64, trips: u64) -> u64 {
    // Ordering: relaxed, here and in `answer`. The number itself is all that is passed on.
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

/// Looks at the line all the time; where there is one core only, not for long.
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
    fn a_trip_takes_time_and_ends() {
        assert!(super::measure() > 0.0);
    }
}
