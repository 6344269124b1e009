//! A few long jobs in a chain of joins. A library that hands over one of them at a time, or none before the first
//! is done, leaves a worker idle. The system may keep two workers on one processor for a while, unless they are pinned: so a pool
//! whose workers are pinned is measured as well.

use harness::metric;
use harness::pause::Pause;
use harness::row::Row;

use super::{Case, Fork, Program, expect};

/// The number of leaves of a chain.
const LEAVES: u64 = if cfg!(test) { 20 } else { 1_000 };

/// The units of work, of about 100 ns each, in a leaf.
const LEAF: u64 = if cfg!(test) { 2 } else { 200 };

/// The number of jobs that wait under the long leaf.
const JOBS: u64 = if cfg!(test) { 4 } else { 64 };

/// The units of work in one of these jobs. The leaf has as many as all of them together.
const JOB: u64 = if cfg!(test) { 2 } else { 500 };

/// How often the jobs and the long leaf run in a sample. Once takes 6 ms.
const LAPS: u64 = if cfg!(test) { 1 } else { 4 };

/// The wanted ratio to the sequential program: nine tenths of what two workers could gain.
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
    let mut rows =
        case("", "1,000 leaves of 20 µs, join(rest, leaf)", Chain::Right).rows_with_pinned();
    rows.extend(
        case("left", "1,000 leaves of 20 µs, join(leaf, rest)", Chain::Left).rows_with_pinned(),
    );
    let title = "64 jobs of 50 µs, and one as long as all";
    rows.extend(case("long-leaf", title, Chain::LongLeaf).rows_with_pinned());
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

    fn run<F: Fork>(self, context: &mut F::Context<'_>, pause: &mut Pause) -> u64 {
        let pause = *pause;
        match self {
            Self::Right => right::<F>(context, pause, LEAVES),
            Self::Left => left::<F>(context, pause, LEAVES),
            Self::LongLeaf => (0..LAPS).map(|_| long_leaf::<F>(context, pause, JOBS)).sum(),
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

/// Returns the units of work that were done.
fn work(pause: Pause, units: u64) -> u64 {
    (0..units).map(|_| pause.work()).count() as u64
}

fn right<F: Fork>(context: &mut F::Context<'_>, pause: Pause, leaves: u64) -> u64 {
    if leaves == 0 {
        return 0;
    }
    let (rest, leaf) = F::join(
        context,
        move |context| right::<F>(context, pause, leaves - 1),
        move |_| work(pause, LEAF),
    );
    rest + leaf
}

fn left<F: Fork>(context: &mut F::Context<'_>, pause: Pause, leaves: u64) -> u64 {
    if leaves == 0 {
        return 0;
    }
    let (leaf, rest) = F::join(
        context,
        move |_| work(pause, LEAF),
        move |context| left::<F>(context, pause, leaves - 1),
    );
    leaf + rest
}

/// The leaf begins when all jobs are waiting. Nothing joins before it ends.
fn long_leaf<F: Fork>(context: &mut F::Context<'_>, pause: Pause, jobs: u64) -> u64 {
    if jobs == 0 {
        return work(pause, JOBS * JOB);
    }
    let (rest, job) = F::join(
        context,
        move |context| long_leaf::<F>(context, pause, jobs - 1),
        move |_| work(pause, JOB),
    );
    rest + job
}
