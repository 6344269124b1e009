//! An engine under load: threads of the program's own, halves that meet, letters to every thread, and a thread that is only
//! a caller. What `rayon-core` stands on, without its face; for the sanitizers, mostly.
//!
//! Every result is known beforehand. `--quick` does a tenth.

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use heist::engine::{self, Engine, Latch};

fn join<RA: Send, RB: Send>(
    a: impl FnOnce() -> RA + Send,
    b: impl FnOnce() -> RB + Send,
) -> (RA, RB) {
    engine::join(|_| a(), |_| b(), || unreachable!("on a thread of an engine"))
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

/// Halves that wait for each other, within others: the second must be taken by another thread, asked or not.
fn meet(depth: u32) {
    if depth > 0 {
        join(|| meet(depth - 1), || ());
    } else {
        let barrier = Barrier::new(2);
        join(|| barrier.wait().is_leader(), || barrier.wait().is_leader());
    }
}

/// So many closures, each spawned by itself, and one to every thread.
fn scatter(engine: &Engine, count: u64) -> u64 {
    let (sum, latch) = (AtomicU64::new(0), Latch::new());
    let add = |number| {
        sum.fetch_add(number, Ordering::Relaxed);
        // SAFETY: counted below, before it is given away.
        unsafe { Latch::done(&raw const latch) };
    };
    let add = &add;
    for number in 1..=count {
        latch.one_more();
        // SAFETY: waited for below.
        unsafe { engine.spawn(move || add(number)) };
    }
    (0..engine.threads()).for_each(|_| latch.one_more());
    // SAFETY: waited for below.
    unsafe { engine.broadcast((0..engine.threads()).map(|_| move || add(0))) };
    latch.wait();
    sum.into_inner()
}

/// All of it, `rounds` times. Was every result right?
fn work(engine: &Engine, rounds: u64) -> bool {
    (0..rounds).all(|round| {
        let sum = if round % 2 == 0 {
            scatter(engine, 100)
        } else {
            engine.run(|_| scatter(engine, 100))
        };
        engine.run(|_| {
            meet(3);
            (0..50).for_each(|_| _ = join(|| (), || ()));
        });
        sum == 5050 && engine.run(|_| fibonacci(14)) == 377
    })
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 500 } else { 5000 };
    let mut right = true;
    for (threads, caller) in [(2, false), (4, false), (2, true)] {
        // A caller belongs to its engine for good, so it has a thread of its own.
        let of_all = thread::spawn(move || {
            let (engine, workers) = Engine::new(threads, caller);
            let mut workers = workers.into_iter();
            if caller {
                workers.next().expect("one for each thread").attach();
            }
            let others: Vec<_> =
                workers.map(|worker| thread::spawn(|| worker.run(|| (), || ()))).collect();
            let right = work(&engine, rounds);
            engine.close();
            others.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            right
        });
        let result = of_all.join().expect("it does not panic");
        let kind = if caller { ", one of them a caller" } else { "" };
        println!("{threads} threads{kind}: {}", if result { "right" } else { "WRONG" });
        right &= result;
    }
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
