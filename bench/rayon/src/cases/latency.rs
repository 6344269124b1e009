//! The duration of a call from outside while the pool has nothing to do.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Case, Plan, Run, SOONER, timed};

/// A pause after which the workers sleep.
const PAUSE: Duration = Duration::from_millis(1);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::outside("install/hot", "install(|| ()), one after the other", hot).at_most(SOONER),
        Case::outside("install/cold", "install(|| ()) after 1 ms of nothing", cold).at_most(SOONER),
    ]
}

fn pool(plan: &Plan) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(plan.threads).build().expect("a few threads can be had")
}

fn hot(plan: &Plan) -> Run {
    const COUNT: u32 = 50;
    let pool = pool(plan);
    Box::new(move || {
        let calls = || {
            for call in 0..COUNT {
                assert_eq!(pool.install(|| black_box(call)), call, "wrong result");
            }
        };
        timed(calls).1 / f64::from(COUNT)
    })
}

fn cold(plan: &Plan) -> Run {
    let pool = pool(plan);
    let mut call = 0;
    Box::new(move || {
        thread::sleep(PAUSE);
        call += 1;
        let (found, time) = timed(|| pool.install(|| black_box(call)));
        assert_eq!(found, call, "wrong result");
        time
    })
}
