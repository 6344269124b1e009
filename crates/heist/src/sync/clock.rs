//! A clock for short times, which is read in a few nanoseconds. What is measured with it is a hint, never a promise.
//!
//! On x86-64 it is the processor's time-stamp counter, if that counts at the same rate at all times. The length of a tick is
//! measured with the system's clock, which takes twice to three times as long to read. Elsewhere it is the system's clock.

use std::time::Instant;

use super::{AtomicU64, OnceLock, Ordering};

/// A reading of the clock.
#[derive(Clone, Copy)]
pub(crate) struct Ticks(u64);

/// When the clock was first read, by the system's clock and by the counter.
struct Begin {
    time: Instant,
    ticks: u64,
    has_counter: bool,
}

static BEGIN: OnceLock<Begin> = OnceLock::new();

/// The nanoseconds of a tick, as the bits of a floating-point number; zero until it is known.
///
/// Ordering: relaxed. Nothing else is passed with it.
static LENGTH: AtomicU64 = AtomicU64::new(0);

/// The length of a tick is measured when this much time has passed: long enough for an error of a hundredth at most.
const LONG_ENOUGH: f64 = 20_000.0;

/// Two readings that are so many ticks apart were interrupted, on a processor of whatever speed.
const INTERRUPTED: u64 = 20_000;

impl Ticks {
    #[inline(always)]
    pub(crate) fn now() -> Self {
        let begin = BEGIN.get_or_init(Begin::now);
        Self(if begin.has_counter { counter() } else { begin.elapsed() as u64 })
    }

    /// Returns the nanoseconds since an earlier reading. They may be wrong by any factor in the first moments of a program,
    /// and if the thread has moved to another processor.
    #[inline(always)]
    pub(crate) fn since(self, earlier: Self) -> f64 {
        let length = LENGTH.load(Ordering::Relaxed);
        let length = if length == 0 { measure() } else { f64::from_bits(length) };
        self.0.saturating_sub(earlier.0) as f64 * length
    }
}

impl Begin {
    #[cold]
    fn now() -> Self {
        let has_counter = has_steady_counter();
        loop {
            let (before, time, ticks) = (counter(), Instant::now(), counter());
            // If the thread was interrupted between the readings, they do not belong together.
            if ticks.saturating_sub(before) < INTERRUPTED {
                return Self { time, ticks, has_counter };
            }
        }
    }

    fn elapsed(&self) -> f64 {
        self.time.elapsed().as_nanos() as f64
    }
}

/// Returns the nanoseconds of a tick as far as that can be said, and notes them if it is certain.
#[cold]
#[inline(never)]
fn measure() -> f64 {
    let begin = BEGIN.get_or_init(Begin::now);
    if !begin.has_counter {
        LENGTH.store(1.0_f64.to_bits(), Ordering::Relaxed);
        return 1.0;
    }
    let (before, time) = (counter(), begin.elapsed());
    let (ticks, reading) =
        (counter().saturating_sub(begin.ticks), counter().saturating_sub(before));
    // One more tick, so that it is never zero.
    let length = (time + 1.0) / (ticks as f64 + 1.0);
    // If the thread was interrupted between the two readings, it is measured again next time.
    if time >= LONG_ENOUGH && reading as f64 * length < time / 50.0 {
        LENGTH.store(length.to_bits(), Ordering::Relaxed);
    }
    length
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux, Windows and macOS let programs use it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn counter() -> u64 {
    0
}

/// Returns whether the processor has a counter that counts at the same rate at all times.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_steady_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    /// The page of the processor's description that tells of power management.
    const POWER: u32 = 0x8000_0007;
    const STEADY: u32 = 1 << 8;
    #[allow(unused_unsafe, reason = "older compilers want it")]
    // SAFETY: every x86-64 processor has the instruction.
    let page = |number| unsafe { __cpuid(number) };
    page(0x8000_0000).eax >= POWER && page(POWER).edx & STEADY != 0
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn has_steady_counter() -> bool {
    false
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn it_runs() {
        let start = Ticks::now();
        let begin = Instant::now();
        while begin.elapsed().as_nanos() < 2 * LONG_ENOUGH as u128 {
            // Lets the time pass, until the length of a tick is known.
        }
        let time = Ticks::now().since(start);
        assert!(time.is_finite() && time >= 0.0, "{time}");
    }
}
