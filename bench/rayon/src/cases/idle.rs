//! The processor time that a pool takes while it has nothing to do.

use std::thread;
use std::time::{Duration, Instant};

use harness::{metric, usage};
use rayon::prelude::*;

use super::{Case, Goal, Plan, Run};

/// The pause between the last work and the measurement.
const GRACE: Duration = Duration::from_millis(100);

/// How much longer this case measures than another one: a second, if that takes 100 ms.
const LONGER: u32 = 10;

/// Nanoseconds in a second that count as none: 0.15 ms, a wake-up from time to time.
const FLOOR: f64 = 0.15e6;

/// Returns the case, or none if the system does not report resource usage.
pub(super) fn cases() -> Vec<Case> {
    if !usage::KNOWN {
        return Vec::new();
    }
    let title = "milliseconds of CPU in a second of nothing to do";
    let case = Case::outside("idle", title, idle);
    vec![Case { metric: &metric::CPU, goal: Goal::Floor(FLOOR), ..case }]
}

fn idle(plan: &Plan) -> Run {
    let watch = plan.time * LONGER;
    Box::new(move || {
        let sum = (0..100_000_u64).into_par_iter().sum::<u64>();
        assert_eq!(sum, 4_999_950_000, "wrong result");
        thread::sleep(GRACE);
        let (start, before) = (Instant::now(), usage::look());
        thread::sleep(watch);
        let used = usage::look() - before;
        used.cpu.as_secs_f64() * 1e9 / start.elapsed().as_secs_f64()
    })
}
