//! The latency workload: how long a thread outside waits for the answer of a pool that was idle.

use std::thread;
use std::time::{Duration, Instant};

use harness::metric::{self, Metric};
use harness::row::{Row, Sample, nanoseconds};
use harness::stats::percentile;
use harness::target::{Target, Than};

use crate::peers::{PEERS, Pool, answer, condvar, heist, kept, rayon};
#[cfg(feature = "peers")]
use crate::peers::{channel, threadpool, tokio};

/// The number of workers: one to answer, and one that might get in its way.
const WORKERS: usize = 2;

/// The pause before each question, and the number of questions in a sample. More questions make the 99th percentile
/// more meaningful; fewer make a round shorter.
const CASES: [(Duration, usize); 2] = if cfg!(test) {
    [(Duration::from_micros(10), 10), (Duration::from_micros(100), 3)]
} else {
    [(Duration::from_millis(1), 400), (Duration::from_millis(50), 40)]
};

const REFERENCE: &str = "rayon";

/// The highest wanted ratios to the best peer. The queue with a condition variable is not a peer: no program would use
/// it as a pool, and it is there to show the least time that waking takes.
const LIMITS: [(&Metric, f64); 2] = [(&metric::P50, 0.9), (&metric::P99, 1.1)];

pub(crate) fn rows() -> Vec<Row> {
    CASES.map(|(idle, questions)| row(idle, questions)).into()
}

fn row(idle: Duration, questions: usize) -> Row {
    let case = format!("after-{idle:?}");
    let title = format!("after {} ms of idleness", idle.as_secs_f64() * 1e3);
    let mut row = Row::of_pools("latency", case, title, vec![&metric::P50, &metric::P99]);
    row.references = vec![REFERENCE];
    enter::<heist::Stealing>(&mut row, idle, questions);
    enter::<rayon::ThreadPool>(&mut row, idle, questions);
    #[cfg(feature = "peers")]
    {
        enter::<tokio::Runtime>(&mut row, idle, questions);
        enter::<threadpool::ThreadPool>(&mut row, idle, questions);
        enter::<channel::Workers>(&mut row, idle, questions);
    }
    enter::<condvar::Workers>(&mut row, idle, questions);
    let target = |(metric, at_most)| Target {
        of: heist::Stealing::NAME,
        metric,
        than: Than::Best(PEERS),
        at_most,
    };
    row.targets = LIMITS.map(target).into();
    row
}

/// Adds an entry that asks a pool of two workers this number of questions, with this pause before each.
pub(crate) fn enter<P: Pool>(row: &mut Row, idle: Duration, questions: usize) {
    row.enter(P::NAME, move || {
        let pool = kept::pool::<P>(WORKERS);
        let answers = ask::<P>(pool, questions, || thread::sleep(idle));
        Sample { answers: answers.clone(), ..Sample::of(percentiles(answers)) }
    });
}

/// Returns how long each answer took, in nanoseconds. What is done before each question is not counted.
pub(crate) fn ask<P: Pool>(pool: &P, questions: usize, before: impl Fn()) -> Vec<f64> {
    let ask = |question| {
        before();
        let start = Instant::now();
        let found = pool.ask(question);
        let time = start.elapsed();
        assert_eq!(found, answer(question), "{}: wrong answer", P::NAME);
        nanoseconds(time)
    };
    (0..questions as u64).map(ask).collect()
}

/// Returns the times within which half of the answers, and 99 of 100, came.
pub(crate) fn percentiles(mut times: Vec<f64>) -> [f64; 2] {
    [0.5, 0.99].map(|fraction| percentile(&mut times, fraction))
}
