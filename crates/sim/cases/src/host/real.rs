//! The real machine.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The multiplications in a microsecond.
static RATE: LazyLock<f64> = LazyLock::new(|| {
    const ROUNDS: u64 = 1_000_000;
    let round = |_| {
        let start = Instant::now();
        multiply(ROUNDS);
        start.elapsed().as_secs_f64() * 1e6
    };
    let best = (0..20).map(round).fold(f64::MAX, f64::min);
    ROUNDS as f64 / best
});

#[inline(never)]
fn multiply(rounds: u64) {
    let mut x = 1_u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// Works for this many nanoseconds.
pub(crate) fn work(nanoseconds: u64) {
    multiply((nanoseconds as f64 * *RATE / 1e3) as u64);
}

/// Keeps the calling thread on a core, modulo the number of cores.
#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
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

/// Counts what was done. The counter would be a bottleneck of its own, so that the pool's counters are used, and single
/// parts are counted only where a workload is verified by that.
pub(crate) struct Tally {
    done: AtomicU64,
    all: u64,
}

impl Tally {
    /// Returns a tally for this many parts.
    pub(crate) fn new(all: u64) -> Self {
        // The rate is found before the clock starts.
        LazyLock::force(&RATE);
        Self { done: AtomicU64::new(0), all }
    }

    /// Does nothing: see the type.
    pub(crate) fn one(&self) {}

    /// Waits until the pool has completed all parts. `span` is how long that takes at least.
    pub(crate) fn wait(&self, completed: impl Fn() -> u64, span: Duration) {
        sleep(span * 9 / 10);
        while completed() < self.all {
            sleep(span / 100);
        }
        self.done.store(self.all, Ordering::Relaxed);
    }

    /// Returns how many parts were done, as far as that is known.
    pub(crate) fn done(&self) -> u64 {
        match self.done.load(Ordering::Relaxed) {
            0 => self.all,
            done => done,
        }
    }
}
