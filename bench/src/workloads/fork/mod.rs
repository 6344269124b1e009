//! The fork-join workloads: what a library must do to take part, and how a program is measured.
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

use crate::peers::workers as workers_in_words;

const WORKERS: [usize; 2] = [1, 2];

/// A library that can run two closures, perhaps at the same time.
pub(crate) trait Fork: 'static {
    const NAME: &'static str;

    type Pool: 'static;

    /// What a function needs in order to fork, passed from call to call. For a library that finds its
    /// worker by itself that is nothing.
    type Hand<'h>;

    /// The pool with that many workers, kept to the end of the program.
    fn pool(workers: usize) -> &'static Self::Pool;

    /// Calls the closure where it may fork, and waits for it.
    fn run<R: Send>(pool: &Self::Pool, f: impl FnOnce(&mut Self::Hand<'_>) -> R + Send) -> R;

    /// A Fibonacci number with a join at every call, closures by move: written out for each library, as one
    /// of its users would. The compiler makes something else of the generic one.
    fn fib(hand: &mut Self::Hand<'_>, n: u64) -> u64;

    /// The library's own join. What the closures hold is all that it gets to hold: a hand is made
    /// inside, not captured.
    fn join<A, B, RA, RB>(hand: &mut Self::Hand<'_>, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut Self::Hand<'_>) -> RA + Send,
        B: FnOnce(&mut Self::Hand<'_>) -> RB + Send,
        RA: Send,
        RB: Send;
}

/// A recursive program with a result that one can check.
trait Program: Copy + Send + Sync + 'static {
    /// What it works on. Made for every sample, before the clock starts.
    type Input: Send;

    fn input(self) -> Self::Input;

    fn run<F: Fork>(self, hand: &mut F::Hand<'_>, input: &mut Self::Input) -> u64;

    /// What one would write instead if there were nothing to fork with.
    fn plain(self, input: &mut Self::Input) -> u64 {
        self.run::<Plain>(&mut (), input)
    }

    /// Panics unless that is the result.
    fn check(self, by: &str, input: &Self::Input, found: u64);

    /// The time is divided by so many.
    fn operations(self) -> u64;
}

/// A program, with what the report says of it and what we expect.
struct Case<P> {
    workload: &'static str,
    /// The rest of its name; empty if the workload has but one case.
    name: &'static str,
    title: &'static str,
    metric: &'static Metric,
    program: P,
    /// With so many workers, the highest ratio to this entry.
    limits: &'static [(usize, &'static str, f64)],
    /// The lowest part of the workers' time that may be of use, by the time of one worker.
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

/// From outside of the pool: a worker that sleeps is woken within the time.
fn measure<F: Fork, P: Program>(program: P, workers: usize) -> Sample {
    let pool = F::pool(workers);
    let mut input = program.input();
    let start = Instant::now();
    let found = F::run(pool, |hand| program.run::<F>(hand, &mut input));
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
    assert_eq!(found, expected, "{by}: that is not the result");
}
