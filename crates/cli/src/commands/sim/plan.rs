//! What is to be simulated, checked before the first run.

use std::path::Path;

use heist_sim::MAX_CORES;
use heist_sim_workloads::{Machine, Run, Strategy, Workload};

use crate::args::{Cores, Sim};
use crate::exit::{Exit, Failure};

/// The machine file of `--machine here`.
const HERE: &str = "dev-2";
/// The largest number of cores if none is given.
const DEFAULT_CORES: usize = 64;

/// What is to be simulated.
pub(super) struct Plan<'a> {
    asked: &'a Sim,
    /// The machine; if there is none, the generic one, whose size is that of the run.
    machine: Option<Machine>,
    pub(super) cores: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Checks what the parser does not.
    pub(super) fn new(asked: &'a Sim) -> Result<Self, Failure> {
        if asked.seed.checked_add(asked.seeds).is_none() {
            return Err(usage(
                format!("cannot use {} seeds from {} on", asked.seeds, asked.seed),
                format!("the largest seed is {}", u64::MAX),
                "Use a smaller --seed.",
            ));
        }
        let machine = machine(&asked.machine)?;
        let most = machine.as_ref().map_or(DEFAULT_CORES, Machine::cores).min(DEFAULT_CORES);
        let cores = asked.cores.clone().unwrap_or_else(|| Cores::up_to(most)).0;
        let plan = Self { asked, machine, cores };
        plan.check_cores()?;
        Ok(plan)
    }

    /// Checks that the largest runs fit on the machine, and that the simulator has room for it.
    fn check_cores(&self) -> Result<(), Failure> {
        let workers = self.cores.iter().copied().max().unwrap_or(1);
        for &workload in &self.asked.workload.0 {
            let cores = self.run(workload, Strategy::WorkStealing, workers, 1).cores();
            if workers > cores {
                return Err(usage(
                    format!(
                        "cannot simulate {workers} cores on the machine {}",
                        self.machine_name()
                    ),
                    format!("it has {cores}"),
                    &format!(
                        "Use --cores 1..{cores}, or a larger machine: --machine generic has any number, server-2x64 has 128 cores."
                    ),
                ));
            }
            if cores > MAX_CORES {
                return Err(usage(
                    format!("cannot simulate {workload} on {workers} cores"),
                    format!(
                        "with its other threads it needs {cores} cores, and the simulator has {MAX_CORES}"
                    ),
                    "Use a smaller number for --cores, for example 1..128.",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn workloads(&self) -> &[Workload] {
        &self.asked.workload.0
    }

    pub(super) fn strategies(&self) -> &[Strategy] {
        &self.asked.strategy.0
    }

    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> {
        self.asked.seed..self.asked.seed + self.asked.seeds
    }

    /// Returns the work of each core in nanoseconds.
    pub(super) fn span(&self) -> u64 {
        self.asked.span * 1_000
    }

    pub(super) fn run(
        &self,
        workload: Workload,
        strategy: Strategy,
        workers: usize,
        seed: u64,
    ) -> Run {
        let (machine, span) = (self.machine.clone(), self.span());
        Run { machine, seed, span, ..Run::new(workload, strategy, workers) }
    }

    fn machine_name(&self) -> &str {
        self.machine.as_ref().map_or("generic", |machine| &machine.name)
    }

    /// Returns the machine for the record.
    pub(super) fn machine(&self) -> Machine {
        let largest = self.cores.iter().copied().max().unwrap_or(1);
        self.machine.clone().unwrap_or_else(|| Machine::generic(largest))
    }

    /// Returns the command in full, so that it does not depend on defaults, and without the folders of files, so that it is
    /// the same on every machine.
    pub(super) fn command(&self) -> String {
        let asked = self.asked;
        let cores: Vec<String> = self.cores.iter().map(ToString::to_string).collect();
        let workloads: Vec<&str> =
            self.workloads().iter().map(|workload| workload.name()).collect();
        let strategies: Vec<&str> =
            self.strategies().iter().map(|strategy| strategy.name()).collect();
        let machine = Path::new(&asked.machine).file_name();
        format!(
            "heist sim --cores {} --workload {} --strategy {} --machine {} --seed {} --seeds {} --span {} --json sim.json",
            cores.join(","),
            workloads.join(","),
            strategies.join(","),
            machine.unwrap_or_default().to_string_lossy(),
            asked.seed,
            asked.seeds,
            asked.span,
        )
    }
}

/// Finds a machine: a name first, then a file.
fn machine(name: &str) -> Result<Option<Machine>, Failure> {
    let name = match name {
        "generic" => return Ok(None),
        "here" => HERE,
        name => name,
    };
    let names: Vec<&str> = Machine::shipped_names().collect();
    let path = Path::new(name);
    if names.contains(&name) {
        return Machine::shipped(name).map(Some).map_err(|error| unusable(name, &error));
    }
    if !path.exists() {
        return Err(usage(
            format!("cannot find the machine {name:?}"),
            "there is no machine and no file of this name".into(),
            &format!(
                "Use generic, here, {}, or a file such as those in crates/sim/machines.",
                names.join(", ")
            ),
        ));
    }
    Machine::read(path).map(Some).map_err(|error| unusable(name, &error))
}

fn unusable(name: &str, error: &heist_sim::MachineError) -> Failure {
    Failure {
        exit: Exit::File,
        what: format!("cannot use the machine {name}"),
        why: error.to_string().trim_end().to_owned(),
        advice: "Correct the file, or use a machine that ships with heist, for example --machine server-2x64.".into(),
    }
}

fn usage(what: String, why: String, advice: &str) -> Failure {
    Failure { exit: Exit::Usage, what, why, advice: advice.to_owned() }
}
