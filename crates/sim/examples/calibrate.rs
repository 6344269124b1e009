//! Measures on the real machine what the constants of the model stand for, and what the model makes of a contended line.
//!
//!     cargo run --release -p heist-sim --example calibrate
//!
//! The machine should be otherwise idle. Two processors are needed for the transfers.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use heist_sim::{Config, Machine};

/// A line of its own, and the next one, which processors fetch together with it.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The rounds of a measurement, of which the fastest counts.
const ROUNDS: u32 = 7;

fn main() {
    println!("{:44} {:>10}", "nanoseconds, the best of 7 rounds", "measured");
    alone();
    system();
    if thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        shared();
    }
}

fn show(name: &str, nanoseconds: f64) {
    println!("{name:44} {nanoseconds:10.2}");
}

/// Returns the nanoseconds of one of `count` operations, in the fastest round.
fn time(count: u32, mut f: impl FnMut(u32)) -> f64 {
    let round = |_| {
        let start = Instant::now();
        f(count);
        start.elapsed().as_nanos() as f64 / f64::from(count)
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}

/// Prints what one of many operations takes.
fn each(name: &str, f: impl Fn()) {
    show(name, time(1_000_000, |count| (0..count).for_each(|_| f())));
}

/// Operations on a line that no other core uses.
fn alone() {
    let line = Line::default();
    each("an empty loop", || {
        black_box(&line);
    });
    each("load", || {
        black_box(line.0.load(Ordering::Relaxed));
    });
    each("store", || line.0.store(1, Ordering::Release));
    each("rmw", || {
        black_box(line.0.fetch_add(1, Ordering::AcqRel));
    });
    each("store and fence", || {
        line.0.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
    });
    each("pause", spin_loop);
    each("clock", || {
        black_box(Instant::now());
    });
    each("alloc and free", || drop(black_box(Box::new([0_u8; 64]))));
}

/// System calls.
fn system() {
    show("yield_call", time(100_000, |count| (0..count).for_each(|_| thread::yield_now())));
    show(
        "spawn_call",
        time(200, |count| {
            let threads: Vec<_> = (0..count).map(|_| thread::spawn(|| ())).collect();
            drop(threads);
        }),
    );
    let (call, latency) = wakes();
    show("wake_call", call);
    show("wake_latency", latency);
}

/// Returns how long the call takes that wakes a thread, and how long the thread takes to run after its begin.
fn wakes() -> (f64, f64) {
    const COUNT: usize = 2_000;
    let start = Instant::now();
    let nanoseconds = move || start.elapsed().as_nanos() as u64;
    let (woken, over) = (Arc::new(Line::default()), Arc::new(AtomicBool::new(false)));
    let sleeper = thread::spawn({
        let (woken, over) = (Arc::clone(&woken), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Acquire) {
                thread::park();
                woken.0.store(nanoseconds(), Ordering::Release);
            }
        }
    });
    let (mut calls, mut latencies) = (Vec::new(), Vec::new());
    for _ in 0..COUNT {
        // Long enough for it to fall asleep.
        let asleep = nanoseconds() + 50_000;
        while nanoseconds() < asleep {
            spin_loop();
        }
        let begin = nanoseconds();
        sleeper.thread().unpark();
        calls.push(nanoseconds() - begin);
        loop {
            let at = woken.0.load(Ordering::Acquire);
            if at >= begin {
                latencies.push(at - begin);
                break;
            }
            spin_loop();
        }
    }
    over.store(true, Ordering::Release);
    sleeper.thread().unpark();
    sleeper.join().expect("it does not panic");
    let median = |mut times: Vec<u64>| {
        times.sort_unstable();
        times[times.len() / 2] as f64
    };
    (median(calls), median(latencies))
}

/// Operations on a line that two cores use, on the real machine and on the virtual one.
fn shared() {
    const COUNT: u64 = 2_000_000;
    println!("\n{:44} {:>10} {:>10}", "two cores on one line", "measured", "simulated");
    let compare = |name: &str, measured: f64, simulated: f64| {
        println!("{name:44} {measured:10.2} {simulated:10.2}");
    };
    compare("hand-over, one way", ping_pong(COUNT / 10), virtual_ping_pong());
    for pauses in [0, 4, 32] {
        let name = format!("fetch_add of two threads, {pauses} pauses between");
        compare(&name, contended(COUNT, pauses), virtual_contended(pauses));
    }
}

/// Returns the time of a hand-over: two threads take turns to advance a number.
fn ping_pong(count: u64) -> f64 {
    let round = |_| {
        let line = Arc::new(Line::default());
        let play = move |line: &Line, parity: u64| {
            for turn in (parity..count).step_by(2) {
                while line.0.load(Ordering::Acquire) != turn {}
                line.0.store(turn + 1, Ordering::Release);
            }
        };
        let start = Instant::now();
        let other = thread::spawn({
            let line = Arc::clone(&line);
            move || play(&line, 1)
        });
        play(&line, 0);
        other.join().expect("it does not panic");
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}

/// Returns the time between two increments of a number to which two threads add.
fn contended(count: u64, pauses: u32) -> f64 {
    let round = |_| {
        let (line, gate) = (Arc::new(Line::default()), Arc::new(Line::default()));
        let add = move |line: &Line, gate: &Line| {
            gate.0.fetch_add(1, Ordering::AcqRel);
            while gate.0.load(Ordering::Acquire) < 2 {
                spin_loop();
            }
            let start = Instant::now();
            for _ in 0..count / 2 {
                line.0.fetch_add(1, Ordering::AcqRel);
                (0..pauses).for_each(|_| spin_loop());
            }
            start.elapsed()
        };
        let other = thread::spawn({
            let (line, gate) = (Arc::clone(&line), Arc::clone(&gate));
            move || add(&line, &gate)
        });
        let mine = add(&line, &gate);
        let time: Duration = mine.max(other.join().expect("it does not panic"));
        time.as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}

/// Runs the same on two virtual cores. Returns the virtual nanoseconds that `count` operations take each.
fn on_virtual_cores(
    count: u64,
    play: fn(&heist_sim::atomic::AtomicU64, u64, u32),
    pauses: u32,
) -> f64 {
    let config = Config::new(Machine::generic(2));
    let (time, _) = heist_sim::run(config, move || {
        let line = Arc::new(heist_sim::atomic::AtomicU64::new(0));
        let other = heist_sim::thread::spawn({
            let line = Arc::clone(&line);
            move || {
                heist_sim::thread::pin(1);
                play(&line, 1, pauses);
            }
        });
        // Until the other has started.
        heist_sim::thread::sleep(Duration::from_micros(50));
        let start = heist_sim::now();
        play(&line, 0, pauses);
        let time = heist_sim::now() - start;
        other.join().expect("it does not panic");
        time
    })
    .expect("a simulation that ends");
    time as f64 / count as f64
}

const VIRTUAL_COUNT: u64 = 200_000;

fn virtual_ping_pong() -> f64 {
    on_virtual_cores(
        VIRTUAL_COUNT,
        |line, parity, _| {
            for turn in (parity..VIRTUAL_COUNT).step_by(2) {
                while line.load(Ordering::Acquire) != turn {}
                line.store(turn + 1, Ordering::Release);
            }
        },
        0,
    )
}

fn virtual_contended(pauses: u32) -> f64 {
    on_virtual_cores(
        VIRTUAL_COUNT,
        |line, _, pauses| {
            for _ in 0..VIRTUAL_COUNT / 2 {
                line.fetch_add(1, Ordering::AcqRel);
                (0..pauses).for_each(|_| heist_sim::pause());
            }
        },
        pauses,
    )
}
