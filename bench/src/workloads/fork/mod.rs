//! The fork-join workloads: the interface that a library implements, and how a program is measured.
//!
//! Every program is written once, generic over the library, and compiled for each.

mod peers;

mod chain;
mod cilksort;
pub(crate) mod fib;
mod integrate;
mod matmul;
mod nqueens;
mod skynet;
#[cfg(feature = "tbb")]
pub(crate) mod tbb;
mod tree_sum;
mod uts;

use std::time::Instant;

use harness::metric::Metric;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};
#[cfg(feature = "peers")]
pub(crate) use peers::Chili;
use peers::{Heist, Plain};
pub(crate) use peers::{Ours, Rayon};

use crate::peers::heist::Pinned;
use crate::peers::workers as workers_in_words;

const WORKERS: [usize; 2] = [1, 2];

/// A library that can run two closures, possibly in parallel.
pub(crate) trait Fork: 'static {
    const NAME: &'static str;

    type Pool: 'static;

    /// What a function needs in order to fork, passed from call to call. It is nothing for a library that finds its
    /// worker itself.
    type Context<'h>;

    /// Returns the pool with this number of workers, which is kept until the end of the program.
    fn pool(workers: usize) -> &'static Self::Pool;

    /// Calls the closure where it may fork, and waits for it.
    fn run<R: Send>(pool: &Self::Pool, f: impl FnOnce(&mut Self::Context<'_>) -> R + Send) -> R;

    /// Computes a Fibonacci number with a join in every call and closures by move, written out for each library as
    /// one of its users would write it. The compiler generates different code for the generic version.
    fn fib(context: &mut Self::Context<'_>, n: u64) -> u64;

    /// Calls the library's own join. The join holds only what the closures hold: the context is created inside, not
    /// captured.
    fn join<A, B, RA, RB>(context: &mut Self::Context<'_>, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut Self::Context<'_>) -> RA + Send,
        B: FnOnce(&mut Self::Context<'_>) -> RB + Send,
        RA: Send,
        RB: Send;
}

/// A recursive program whose result can be checked.
trait Program: Copy + Send + Sync + 'static {
    /// The input. It is created for every sample, before the clock starts.
    type Input: Send;

    fn input(self) -> Self::Input;

    fn run<F: Fork>(self, context: &mut F::Context<'_>, input: &mut Self::Input) -> u64;

    /// Runs the program that one would write without a library.
    fn plain(self, input: &mut Self::Input) -> u64 {
        self.run::<Plain>(&mut (), input)
    }

    /// Panics unless this is the result.
    fn check(self, by: &str, input: &Self::Input, found: u64);

    /// Returns the number of operations by which the time is divided.
    fn operations(self) -> u64;
}

/// A program with its titles and targets.
struct Case<P> {
    workload: &'static str,
    /// The rest of its name; empty if the workload has only one case.
    name: &'static str,
    title: &'static str,
    metric: &'static Metric,
    program: P,
    /// For a number of workers and another entry, the highest wanted ratio to it.
    limits: &'static [(usize, &'static str, f64)],
    /// The lowest wanted efficiency: the time of one worker over the time of all workers together.
    efficiency: Option<f64>,
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = fib::rows();
    rows.extend(tree_sum::rows());
    rows.extend(uts::rows());
    rows.extend(nqueens::rows());
    rows.extend(skynet::rows());
    rows.extend(cilksort::rows());
    rows.extend(matmul::rows());
    rows.extend(integrate::rows());
    rows.extend(chain::rows());
    #[cfg(feature = "tbb")]
    tbb::enter(&mut rows);
    rows
}

impl<P: Program> Case<P> {
    fn rows(&self) -> Vec<Row> {
        WORKERS.map(|workers| self.row(workers)).into()
    }

    fn row(&self, workers: usize) -> Row {
        let title = format!("{}, {}", self.title, workers_in_words(workers));
        let mut row = Row::of_pools(self.workload, self.id(workers), title, vec![self.metric]);
        row.references = vec![Plain::NAME, "rayon"];
        row.workers = Some(workers);
        if workers > 1 {
            row.one_worker = Some(self.one_worker());
        }
        self.enter::<Heist>(&mut row, workers);
        self.enter::<Rayon>(&mut row, workers);
        #[cfg(feature = "peers")]
        self.enter::<Chili>(&mut row, workers);
        let program = self.program;
        row.enter_sequential(Plain::NAME, move || plain(program));
        row.targets = self.targets(workers);
        row
    }

    /// Returns the same rows with another entry, a pool whose workers are pinned, where there are several. Only Linux pins threads.
    fn rows_with_pinned(&self) -> Vec<Row> {
        let mut rows = self.rows();
        if cfg!(any(target_os = "linux", target_os = "android")) {
            let several = rows.iter_mut().zip(WORKERS).filter(|(_, workers)| *workers > 1);
            several.for_each(|(row, workers)| self.enter::<Ours<Pinned>>(row, workers));
        }
        rows
    }

    fn id(&self, workers: usize) -> String {
        if self.name.is_empty() { workers.to_string() } else { format!("{}/{workers}", self.name) }
    }

    fn one_worker(&self) -> String {
        format!("{}/{}", self.workload, self.id(1))
    }

    fn enter<F: Fork>(&self, row: &mut Row, workers: usize) {
        let program = self.program;
        row.enter(F::NAME, move || measure::<F, P>(program, workers));
    }

    fn targets(&self, workers: usize) -> Vec<Target> {
        let target = |than, at_most| Target { of: Heist::NAME, metric: self.metric, than, at_most };
        let limits = self.limits.iter().filter(|limit| limit.0 == workers);
        let mut targets: Vec<_> =
            limits.map(|&(_, name, at_most)| target(Than::Entry(name), at_most)).collect();
        if let Some(efficiency) = self.efficiency.filter(|_| workers > 1) {
            let than = Than::Case(self.one_worker());
            targets.push(target(than, 1.0 / (efficiency * workers as f64)));
        }
        targets
    }
}

/// Measures from outside the pool: the time includes waking a sleeping worker.
fn measure<F: Fork, P: Program>(program: P, workers: usize) -> Sample {
    let pool = F::pool(workers);
    let mut input = program.input();
    let start = Instant::now();
    let found = F::run(pool, |context| program.run::<F>(context, &mut input));
    let time = start.elapsed();
    program.check(F::NAME, &input, found);
    Sample::new(time, program.operations())
}

fn plain<P: Program>(program: P) -> Sample {
    let mut input = program.input();
    let start = Instant::now();
    let found = program.plain(&mut input);
    let time = start.elapsed();
    program.check(Plain::NAME, &input, found);
    Sample::new(time, program.operations())
}

/// Panics unless the number is right.
fn expect(by: &str, found: u64, expected: u64) {
    assert_eq!(found, expected, "{by}: wrong result");
}
