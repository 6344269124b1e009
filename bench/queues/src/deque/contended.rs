//! The owner's loop while one thief is at work: what the owner pays, and what the thief gets.

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

/// Push+pop pairs between two looks at the clock. A multiple of every depth.
const BLOCK: u64 = 4096;

/// A thief that tries less often than this is not there: even one that sleeps on a mutex and has
/// to be woken is back within a few ten microseconds.
const PATIENCE: Duration = Duration::from_micros(100);

/// How often a sample is repeated because the thief was not there.
const REPEATS: usize = 10;

/// `DEPTH` pushes, then as many pops. The thief `WORKS` about 100 ns on every item and after every
/// attempt that found none; or it does nothing but try.
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
    let (time, loot) = thread::scope(|scope| {
        let robber = scope.spawn(|| {
            let thief = thief;
            cores::pin(cores::THIEF);
            // Ordering: relaxed, as with `stop`. Nothing is passed on by it.
            started.0.store(true, Ordering::Relaxed);
            rob(&thief, &stop.0, work)
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
        (time, robber.join().expect("the thief says what went wrong"))
    });
    assert!(
        worker.pop().is_none(),
        "{}: a pop before found nothing, and now there is something",
        O::NAME
    );
    seen.merge(loot.tally);
    seen.check::<T>(O::NAME, count, 1);
    let time_of_one = nanoseconds(time) / count as f64;
    let disturbed = u128::from(loot.attempts) < time.as_nanos() / PATIENCE.as_nanos();
    Sample { disturbed, ..Sample::of([time_of_one, loot.stolen as f64 / time.as_secs_f64()]) }
}

/// What a thief has to show.
#[derive(Default)]
struct Loot {
    tally: Tally,
    stolen: u64,
    attempts: u64,
}

/// Steals until told to stop.
#[inline(always)]
fn rob<T: Item>(thief: &impl Thief<T>, stop: &AtomicBool, work: impl Fn()) -> Loot {
    let mut loot = Loot::default();
    while !stop.load(Ordering::Relaxed) {
        if thief.steal(|item| loot.tally.add(item)) == Outcome::Taken {
            loot.stolen += 1;
        }
        loot.attempts += 1;
        work();
    }
    loot
}

/// A slot may be held by a thief that was stopped in the middle of a steal.
#[inline(always)]
fn push_or_wait<T, O: Owner<T>>(worker: &O, item: T) {
    let mut outcome = worker.push(item);
    while let Err(item) = outcome {
        thread::yield_now();
        outcome = worker.push(item);
    }
}
