//! One run: a workload on a number of virtual cores.

use std::fmt;

use heist_sim::{Config, Machine, Report, RunError};
use heist_sim_cases::{Case, Placement, Strategy, Workload};
use serde::Serialize;

use crate::layout;

/// How long the work of each worker takes if it is evenly distributed, in nanoseconds. Rounding makes it up to twice as long.
const SPAN: u64 = 4_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the pool has to do.
    pub workload: Workload,
    /// How the pool keeps its tasks.
    pub strategy: Strategy,
    /// The number of workers, each of which has a core of its own.
    pub workers: usize,
    /// The machine; if there is none, the generic one with as many cores as there are threads.
    pub machine: Option<Machine>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How long the work of each worker takes if it is evenly distributed, in nanoseconds.
    pub span: u64,
}

/// What was measured. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What the pool had to do.
    pub workload: Workload,
    /// How the pool kept its tasks.
    pub strategy: Strategy,
    /// The number of workers.
    pub workers: usize,
    /// The name of the machine.
    pub machine: String,
    /// The seed.
    pub seed: u64,
    /// The virtual time.
    pub elapsed: u64,
    /// The number of parts. All of them were done, each once.
    pub parts: u64,
    /// What all parts take on one core, in a unit in which the sizes of a workload can be compared.
    pub units: u64,
    /// The part of the workers' time that was declared work.
    pub utilization: f64,
    /// The tasks that the pool has completed.
    pub tasks: u64,
    /// The tasks that moved from one worker to another.
    pub moved: u64,
    /// The steals from a worker on the same NUMA node.
    pub near_steals: u64,
    /// The steals from a worker on another NUMA node.
    pub far_steals: u64,
    /// How often workers went to sleep.
    pub parks: u64,
    /// Where the time went.
    pub report: Report,
}

/// Why a run failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The machine has fewer cores than there are workers.
    TooFewCores {
        /// The number of workers.
        workers: usize,
        /// The number of cores.
        cores: usize,
    },
    /// The simulation failed.
    Run(RunError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewCores { workers, cores } => write!(
                f,
                "{workers} workers do not fit on a machine with {cores} cores; use from 1 to {cores} workers"
            ),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl Run {
    /// Returns a run on the generic machine, with seed 1 and about 4 ms of work for each worker.
    pub fn new(workload: Workload, strategy: Strategy, workers: usize) -> Self {
        Self { workload, strategy, workers, machine: None, seed: 1, span: SPAN }
    }

    /// Returns where the threads are.
    pub fn placement(&self) -> Placement {
        self.layout().1
    }

    /// Returns the number of cores of the machine.
    pub fn cores(&self) -> usize {
        self.layout().0.cores()
    }

    /// Returns the machine, and where the threads are on it.
    pub fn layout(&self) -> (Machine, Placement) {
        match &self.machine {
            None => layout::generic(self.workload, self.workers),
            Some(machine) => (machine.clone(), layout::on(machine, self.workload, self.workers)),
        }
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine is too small, and for the reasons of [`heist_sim::run`].
    ///
    /// # Panics
    ///
    /// Panics if not all of the work was done exactly once.
    pub fn measure(&self) -> Result<Measurement, Error> {
        let (machine, placement) = self.layout();
        let cores = machine.cores();
        if self.workers == 0 || self.workers > cores {
            return Err(Error::TooFewCores { workers: self.workers, cores });
        }
        let case =
            Case { workload: self.workload, strategy: self.strategy, placement, span: self.span };
        let name = machine.name.clone();
        let config = Config { seed: self.seed, ..Config::new(machine) };
        let (sample, report) = heist_sim::run(config, move || heist_sim_cases::measure(&case))?;
        Ok(Measurement {
            workload: self.workload,
            strategy: self.strategy,
            workers: self.workers,
            machine: name,
            seed: self.seed,
            elapsed: sample.elapsed,
            parts: sample.parts,
            units: sample.units,
            utilization: report.split.work as f64
                / (sample.elapsed * self.workers as u64).max(1) as f64,
            tasks: sample.tasks,
            moved: sample.moved,
            near_steals: sample.near_steals,
            far_steals: sample.far_steals,
            parks: sample.parks,
            report,
        })
    }
}
