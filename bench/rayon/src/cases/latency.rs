//! The duration of a call from outside while the pool has nothing to do, and of the life of a pool.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Case, Plan, Run, SOONER, timed};

/// A pause after which the workers sleep.
const PAUSE: Duration = Duration::from_millis(1);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::outside("install/hot", "install(|| ()), one after the other", hot).at_most(SOONER),
        Case::outside("install/cold", "install(|| ()) after 1 ms of nothing", cold).at_most(SOONER),
        Case::outside("sporadic", "sum of 100,000 u64 after 1 ms of nothing", |_| sporadic()),
        Case::outside("pool", "building and dropping a pool of 4", |_| life()),
    ]
}

fn pool(plan: &Plan) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(plan.threads).build().expect("a few threads can be had")
}

/// Runs it with a warm cache: what matters here is how soon the workers begin.
fn sporadic() -> Run {
    let data: Vec<u64> = (0..100_000).collect();
    let expected = data.iter().sum::<u64>();
    Box::new(move || {
        thread::sleep(PAUSE);
        let (found, time) = timed(|| black_box(&data).par_iter().sum::<u64>());
        assert_eq!(found, expected, "wrong result");
        time
    })
}

fn life() -> Run {
    const THREADS: usize = 4;
    Box::new(|| {
        let (found, time) = timed(|| {
            let pool = ThreadPoolBuilder::new().num_threads(THREADS).build();
            pool.expect("a few threads can be had").current_num_threads()
        });
        assert_eq!(found, THREADS, "wrong result");
        time
    })
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
