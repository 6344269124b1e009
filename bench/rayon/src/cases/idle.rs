//! What a pool takes of the processor while it has nothing to do.

use std::thread;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Case, Goal, Plan, Run, Unit};
use crate::usage;

/// Between the last work and the measurement.
const GRACE: Duration = Duration::from_millis(100);

/// How much longer we watch than another case runs: a second, if that takes 100 ms.
const LONGER: u32 = 10;

/// Milliseconds in a second that are as good as none: a wake-up now and then.
const FLOOR: f64 = 0.15;

/// Nothing where the system does not say what we use.
pub(super) fn cases() -> Vec<Case> {
    if !usage::KNOWN {
        return Vec::new();
    }
    let title = "milliseconds of CPU in a second of nothing to do";
    let case = Case::outside("idle", title, idle);
    vec![Case { unit: Unit::CpuMillis, goal: Goal::Floor(FLOOR), ..case }]
}

fn idle(plan: &Plan) -> Run {
    let watch = plan.time * LONGER;
    Box::new(move || {
        let sum = (0..100_000_u64).into_par_iter().sum::<u64>();
        assert_eq!(sum, 4_999_950_000, "a wrong result");
        thread::sleep(GRACE);
        let (start, before) = (Instant::now(), usage::look());
        thread::sleep(watch);
        let used = usage::look() - before;
        used.cpu.as_secs_f64() * 1e3 / start.elapsed().as_secs_f64()
    })
}
