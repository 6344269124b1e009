//! The cost of a push and a pop for an owner while one thief steals, and how much the thief steals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::cores;
use harness::item::{Item, Tally};
use harness::pause::Pause;
use harness::row::{Sample, nanoseconds};
use harness::threads::{Finally, Padded, spin_until};

use super::alone::push_and_pop;
use super::{CONTENDED, Outcome, Owner, Thief, USUAL};

/// The number of push+pop pairs between two reads of the clock. A multiple of every depth.
const BLOCK: u64 = 4096;

/// A thief that tries less often than this was not running: even one that sleeps on a mutex and has to be woken
/// returns within a few tens of microseconds.
const PATIENCE: Duration = Duration::from_micros(100);

/// How often a sample is repeated if the thief was not running.
const REPEATS: usize = 10;

/// Measures `DEPTH` pushes, then as many pops. If `WORKS`, the thief works about 100 ns on every item and after
/// every attempt that found none; otherwise it only steals.
pub(super) fn measure<T: Item, O: Owner<T>, const DEPTH: u64, const WORKS: bool>() -> Sample {
    let mut sample = measure_once::<T, O, DEPTH, WORKS>();
    for _ in 0..REPEATS {
        if !sample.disturbed {
            break;
        }
        sample = measure_once::<T, O, DEPTH, WORKS>();
    }
    sample
}

fn measure_once<T: Item, O: Owner<T>, const DEPTH: u64, const WORKS: bool>() -> Sample {
    let (worker, thief) = O::new(USUAL);
    let pause = Pause::calibrated();
    let work = move || {
        if WORKS {
            pause.work();
        }
    };
    let started = Padded(AtomicBool::new(false));
    let stop = Padded(AtomicBool::new(false));
    let mut seen = Tally::default();
    let mut count = 0;
    let (time, stolen) = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let thief = thief;
            cores::pin(cores::THIEF);
            // Ordering: relaxed, like `stop`. The flag publishes nothing else.
            started.0.store(true, Ordering::Relaxed);
            steal_until(&thief, &stop.0, work)
        });
        let ended = Finally(|| stop.0.store(true, Ordering::Relaxed));
        spin_until(|| started.0.load(Ordering::Relaxed));
        let start = Instant::now();
        while start.elapsed() < CONTENDED {
            push_and_pop::<T, O, DEPTH>(&worker, count, BLOCK, push_or_wait, &mut seen);
            count += BLOCK;
        }
        let time = start.elapsed();
        drop(ended);
        (time, thread.join().expect("the thief panicked; its message is above"))
    });
    assert!(
        worker.pop().is_none(),
        "{}: an item appeared after the owner had found the deque empty",
        O::NAME
    );
    seen.merge(stolen.tally);
    seen.check::<T>(O::NAME, count, 1);
    let time_of_one = nanoseconds(time) / count as f64;
    let disturbed = u128::from(stolen.attempts) < time.as_nanos() / PATIENCE.as_nanos();
    Sample { disturbed, ..Sample::of([time_of_one, stolen.count as f64 / time.as_secs_f64()]) }
}

/// What a thief has stolen.
#[derive(Default)]
struct Stolen {
    tally: Tally,
    count: u64,
    attempts: u64,
}

/// Steals until `stop` is set.
#[inline(always)]
fn steal_until<T: Item>(thief: &impl Thief<T>, stop: &AtomicBool, work: impl Fn()) -> Stolen {
    let mut stolen = Stolen::default();
    while !stop.load(Ordering::Relaxed) {
        if thief.steal(|item| stolen.tally.add(item)) == Outcome::Taken {
            stolen.count += 1;
        }
        stolen.attempts += 1;
        work();
    }
    stolen
}

/// Pushes an item, and waits while the queue is full: a thief that was descheduled in the middle of a steal may
/// hold a slot.
#[inline(always)]
fn push_or_wait<T, O: Owner<T>>(worker: &O, item: T) {
    let mut outcome = worker.push(item);
    while let Err(item) = outcome {
        thread::yield_now();
        outcome = worker.push(item);
    }
}
