//! An occasional question among a few other tasks: how long the answer takes.

use std::thread;
use std::time::Duration;

use harness::pause::Pause;
use harness::row::Sample;

use super::Counts;
use crate::peers::heist::{Choice, Heist};
use crate::peers::{Pool, kept};
use crate::workloads::latency;

const QUESTIONS: usize = if cfg!(test) { 5 } else { 200 };

/// The pause between an answer and the next question. Together with the tasks before each question, a worker is
/// busy for a tenth of the time or less.
const GAP: Duration = Duration::from_micros(if cfg!(test) { 10 } else { 200 });

/// The number of tasks that are spawned right before each question.
const OTHERS: usize = 4;

/// The duration of one of these tasks, in units of work.
const LOAD: usize = 50;

pub(super) fn measure<C: Choice>(workers: usize) -> Sample {
    let pool = kept::pool::<Heist<C>>(workers);
    let pause = Pause::calibrated();
    let load = || {
        thread::sleep(GAP);
        for _ in 0..OTHERS {
            pool.spawn(move || (0..LOAD).for_each(|_| pause.work()));
        }
    };
    let before = Counts::of(pool);
    let times = latency::ask(pool, QUESTIONS, load);
    let tasks = (QUESTIONS * (OTHERS + 1)) as u64;
    let counts = Counts::of(pool).since(&before, tasks, QUESTIONS as u64);
    Sample::of([&latency::percentiles(times)[..], &counts].concat())
}
