//! The real machine.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) use std::thread::{JoinHandle, sleep, spawn};

/// Does nothing: the whole time is measured.
pub(crate) fn begin() {}

/// Does nothing: the whole time is measured.
pub(crate) fn end() {}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the nanoseconds since the first call.
pub(crate) fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// The multiplications in a microsecond, at the best of many moments: at some, another program slows the processor down.
static RATE: LazyLock<f64> = LazyLock::new(|| {
    const ROUNDS: u64 = 300_000;
    let round = |_| {
        let start = Instant::now();
        multiply(ROUNDS, 1);
        start.elapsed().as_secs_f64() * 1e6
    };
    let best = (0..500).map(round).fold(f64::MAX, f64::min);
    ROUNDS as f64 / best
});

/// Multiplies a number that many times. Each multiplication needs the result of the one before.
#[inline(never)]
fn multiply(rounds: u64, number: u64) -> u64 {
    (0..rounds).fold(number, |x, _| black_box(x.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

thread_local! {
    /// The last result of the thread. With it, the processor cannot begin a short work before the end of the last one.
    static LAST: Cell<u64> = const { Cell::new(1) };
}

/// Works for this many nanoseconds.
pub(crate) fn work(nanoseconds: u64) {
    let rounds = (nanoseconds as f64 * *RATE / 1e3).round() as u64;
    LAST.set(multiply(rounds, LAST.get()));
}

/// The number of cores. It is found before any thread is pinned, because a pinned thread is told that there is one.
#[cfg(target_os = "linux")]
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Keeps the calling thread on a core, modulo the number of cores.
#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) {
    let cores = *CORES;
    // SAFETY: zero is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is less than that of the processors, which a set can contain.
    unsafe { libc::CPU_SET(core % cores, &mut set) };
    // SAFETY: the set is as large as said. An error leaves the thread where it is.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
}

/// Does nothing where threads cannot be pinned.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_core: usize) {}

/// Prepares to wait for the parts of a workload.
pub(crate) fn expect(_all: u64) {
    // The rate is found before the clock starts.
    LazyLock::force(&RATE);
}

/// Does nothing: a counter that all threads change would be a bottleneck of its own.
pub(crate) fn count() {}

/// Waits until the pool has completed all parts. `span` is how long that takes at least.
pub(crate) fn wait_for(all: u64, completed: impl Fn() -> u64, span: Duration) {
    sleep(span * 9 / 10);
    while completed() < all {
        sleep(span / 100);
    }
}

/// Returns how many parts there are: the pool has counted them.
pub(crate) fn counted(all: u64) -> u64 {
    all
}
