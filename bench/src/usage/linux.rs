//! By `getrusage`. Its sum of user and system time is exact, also for what is shorter than a tick
//! of the clock; only their shares are estimated.

use std::time::Duration;

use libc::{RUSAGE_SELF, getrusage, rusage, timeval};

use super::Usage;

pub(crate) fn look() -> Usage {
    // SAFETY: it is made of integers, for which zero is a value.
    let mut found: rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call.
    let outcome = unsafe { getrusage(RUSAGE_SELF, &mut found) };
    assert_eq!(outcome, 0, "a process may ask for its own usage");
    Usage {
        cpu: duration(found.ru_utime) + duration(found.ru_stime),
        switches: (found.ru_nvcsw + found.ru_nivcsw) as u64,
    }
}

fn duration(time: timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000)
}
