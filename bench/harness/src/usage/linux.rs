//! Linux: `getrusage`. The sum of user and system time is exact even below one tick of the clock; only the shares
//! of the two are estimated.

use std::time::Duration;

use libc::{RUSAGE_SELF, getrusage, rusage, timeval};

use super::Usage;

/// Returns what the process has used so far.
pub fn look() -> Usage {
    // SAFETY: the structure consists of integers, for which zero is a valid value.
    let mut found: rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call.
    let outcome = unsafe { getrusage(RUSAGE_SELF, &mut found) };
    assert_eq!(outcome, 0, "getrusage failed for the own process");
    Usage {
        cpu: duration(found.ru_utime) + duration(found.ru_stime),
        switches: (found.ru_nvcsw + found.ru_nivcsw) as u64,
    }
}

fn duration(time: timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000)
}
