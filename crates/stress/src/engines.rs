//! The engine under `rayon-core`: worker threads of the caller's own, one of them perhaps an attached
//! thread, joins whose halves wait for each other, spawned closures, and broadcasts.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use heist::engine::{self, Engine, Latch};

use crate::{Error, Monitor, Size, Violation};

#[derive(Clone, Copy, Debug)]
struct Case {
    threads: usize,
    /// Whether one of the threads is an attached thread: a thread of the caller, for which the engine does
    /// not wait when it is closed.
    attached: bool,
    rounds: u64,
}

/// Runs the same work on engines with and without an attached thread.
pub(crate) fn run(size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    let rounds = size.choose(500, 5000);
    for (threads, attached) in [(2, false), (4, false), (2, true)] {
        let case = Case { threads, attached, rounds };
        case.run().map_err(|violation| violation.in_case(&case))?;
        let kind = if attached { ", one of them attached" } else { "" };
        monitor.report(&format!("{threads} threads{kind}: {rounds} rounds"));
    }
    Ok(())
}

impl Case {
    fn run(self) -> Result<(), Violation> {
        // An attached thread belongs to its engine for good. Each case therefore runs on a new thread.
        thread::spawn(move || {
            let (engine, workers) = Engine::new(self.threads, self.attached);
            let mut workers = workers.into_iter();
            if self.attached {
                workers.next().expect("there is one worker for each thread").attach();
            }
            let others: Vec<_> =
                workers.map(|worker| thread::spawn(|| worker.run(|| (), || ()))).collect();
            let outcome = (0..self.rounds).try_for_each(|round| run_round(&engine, round));
            engine.close();
            others.into_iter().for_each(|thread| thread.join().expect("no worker panics"));
            outcome
        })
        .join()
        .expect("no case panics")
    }
}

fn join<RA: Send, RB: Send>(
    a: impl FnOnce() -> RA + Send,
    b: impl FnOnce() -> RB + Send,
) -> (RA, RB) {
    engine::join(|_| a(), |_| b(), || unreachable!("this runs on a thread of an engine"))
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

/// Joins two halves that wait for each other, inside of `depth` other joins: another thread must steal the
/// second half, even if it has not requested work.
fn rendezvous(depth: u32) {
    if depth > 0 {
        join(|| rendezvous(depth - 1), || ());
    } else {
        let barrier = Barrier::new(2);
        join(|| barrier.wait().is_leader(), || barrier.wait().is_leader());
    }
}

/// Spawns `count` closures one by one, broadcasts one closure to every thread, and returns the sum of what
/// the spawned ones add.
fn spawn_and_broadcast(engine: &Engine, count: u64) -> u64 {
    let (sum, latch) = (AtomicU64::new(0), Latch::new());
    let add = |number| {
        sum.fetch_add(number, Ordering::Relaxed);
        // SAFETY: `one_more` counted this closure before it was handed to the engine.
        unsafe { Latch::done(&raw const latch) };
    };
    let add = &add;
    for number in 1..=count {
        latch.one_more();
        // SAFETY: `latch.wait` below keeps `sum` and `latch` alive until the closure has run.
        unsafe { engine.spawn(move || add(number)) };
    }
    (0..engine.threads()).for_each(|_| latch.one_more());
    // SAFETY: `latch.wait` below keeps `sum` and `latch` alive until all closures have run.
    unsafe { engine.broadcast((0..engine.threads()).map(|_| move || add(0))) };
    latch.wait();
    sum.into_inner()
}

/// Uses the engine from outside in even rounds, and from one of its own threads in odd ones.
fn run_round(engine: &Engine, round: u64) -> Result<(), Violation> {
    let from_outside = round & 1 == 0;
    let sum = if from_outside {
        spawn_and_broadcast(engine, 100)
    } else {
        engine.run(|_| spawn_and_broadcast(engine, 100))
    };
    engine.run(|_| {
        rendezvous(3);
        (0..50).for_each(|_| _ = join(|| (), || ()));
    });
    let fibonacci = engine.run(|_| fibonacci(14));
    if (sum, fibonacci) == (5050, 377) {
        Ok(())
    } else {
        Err(Violation::Result(format!(
            "in round {round} the sum is {sum} instead of 5050, fibonacci(14) {fibonacci} instead of 377"
        )))
    }
}
