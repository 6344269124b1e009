//! Few jobs that take long, in a row of joins: whoever hands over one of them at a time, or none before
//! the first is done, leaves a worker idle.

use harness::metric;
use harness::pause::Pause;
use harness::row::Row;

use super::{Case, Fork, Program, expect};

/// The leaves of a chain.
const LEAVES: u64 = if cfg!(test) { 20 } else { 1_000 };

/// Units of work, of about 100 ns each, in a leaf.
const LEAF: u64 = if cfg!(test) { 2 } else { 200 };

/// Jobs that wait under the long leaf.
const JOBS: u64 = if cfg!(test) { 4 } else { 64 };

/// Units of work in one of them. The leaf has as many as all of them together.
const JOB: u64 = if cfg!(test) { 2 } else { 500 };

/// How often the jobs and the long leaf come in a sample: once takes 6 ms.
const LAPS: u64 = if cfg!(test) { 1 } else { 4 };

/// Of two workers, nine tenths of what they could do: against the sequential program.
const LIMITS: &[(usize, &str, f64)] = &[(2, "plain", 0.556)];

pub(super) fn rows() -> Vec<Row> {
    let case = |name, title, program| Case {
        workload: "chain",
        name,
        title,
        metric: &metric::TOTAL,
        program,
        limits: LIMITS,
        efficiency: None,
    };
    let mut rows = case("", "1,000 leaves of 20 µs, join(rest, leaf)", Chain::Right).rows();
    rows.extend(case("left", "1,000 leaves of 20 µs, join(leaf, rest)", Chain::Left).rows());
    let title = "64 jobs of 50 µs, and one as long as all";
    rows.extend(case("long-leaf", title, Chain::LongLeaf).rows());
    rows
}

#[derive(Clone, Copy)]
enum Chain {
    Right,
    Left,
    LongLeaf,
}

impl Program for Chain {
    type Input = Pause;

    fn input(self) -> Pause {
        Pause::calibrated()
    }

    fn run<F: Fork>(self, hand: &mut F::Hand<'_>, pause: &mut Pause) -> u64 {
        let pause = *pause;
        match self {
            Self::Right => right::<F>(hand, pause, LEAVES),
            Self::Left => left::<F>(hand, pause, LEAVES),
            Self::LongLeaf => (0..LAPS).map(|_| long_leaf::<F>(hand, pause, JOBS)).sum(),
        }
    }

    fn check(self, by: &str, _: &Pause, found: u64) {
        let units = match self {
            Self::Right | Self::Left => LEAVES * LEAF,
            Self::LongLeaf => LAPS * 2 * JOBS * JOB,
        };
        expect(by, found, units);
    }

    fn operations(self) -> u64 {
        1
    }
}

/// The units of work that were done.
fn work(pause: Pause, units: u64) -> u64 {
    (0..units).map(|_| pause.work()).count() as u64
}

fn right<F: Fork>(hand: &mut F::Hand<'_>, pause: Pause, leaves: u64) -> u64 {
    if leaves == 0 {
        return 0;
    }
    let (rest, leaf) =
        F::join(hand, move |hand| right::<F>(hand, pause, leaves - 1), move |_| work(pause, LEAF));
    rest + leaf
}

fn left<F: Fork>(hand: &mut F::Hand<'_>, pause: Pause, leaves: u64) -> u64 {
    if leaves == 0 {
        return 0;
    }
    let (leaf, rest) =
        F::join(hand, move |_| work(pause, LEAF), move |hand| left::<F>(hand, pause, leaves - 1));
    leaf + rest
}

/// The leaf begins when all jobs are waiting; nothing joins before it ends.
fn long_leaf<F: Fork>(hand: &mut F::Hand<'_>, pause: Pause, jobs: u64) -> u64 {
    if jobs == 0 {
        return work(pause, JOBS * JOB);
    }
    let (rest, job) =
        F::join(hand, move |hand| long_leaf::<F>(hand, pause, jobs - 1), move |_| work(pause, JOB));
    rest + job
}
