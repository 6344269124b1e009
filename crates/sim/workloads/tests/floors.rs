//! How efficient heist must be at least on virtual cores, how soon all of its workers must be at work, and how few of its
//! steals may be from another NUMA node.
//!
//!     cargo test --release -p heist-sim-workloads --test floors            # all rows
//!     cargo test --release -p heist-sim-workloads --test floors -- join    # those of a workload
//!     ci/floors.sh REVISION [WORKLOAD]                                     # the same rows on older code
//!
//! The same code gives the same figures, whatever the machine does meanwhile. Any change of the code moves them a little, so
//! that each row has some slack. Simulations of a process take place one after the other; therefore each row is checked by
//! a process of its own, and as many of them run as there are processors.
//!
//! Only a release build checks the rows: debug assertions access memory, which is charged.

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use heist_sim_workloads::Workload::{
    Join, Loop, Outside, OutsideFar, Pipe, PipeOrdered, Scope, Sort, Spawn,
};
use heist_sim_workloads::{Machine, Measurement, Run, Strategy, Workload, efficiency};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

/// What must hold. To change a limit, change its line; to add one, add a line.
const ROWS: &[Row] = &[
    row(Spawn, 24).efficiency(0.98),
    row(Spawn, 64).efficiency(0.965),
    row(Spawn, 128).efficiency(0.95),
    row(Spawn, 256).efficiency(0.93),
    row(Join, 24).efficiency(0.97),
    row(Join, 64).efficiency(0.945).ramp(110),
    row(Join, 128).efficiency(0.925).ramp(130),
    row(Join, 256).efficiency(0.90).ramp(170),
    row(Scope, 24).efficiency(0.98),
    row(Scope, 64).efficiency(0.965),
    row(Scope, 128).efficiency(0.955),
    row(Scope, 256).efficiency(0.945).ramp(170),
    row(Outside, 24).efficiency(0.965),
    row(Outside, 64).efficiency(0.955),
    row(Outside, 128).efficiency(0.95),
    row(OutsideFar, 24).efficiency(0.93),
    row(OutsideFar, 64).efficiency(0.85),
    row(OutsideFar, 128).efficiency(0.80),
    row(Loop, 24).efficiency(0.96),
    row(Loop, 64).efficiency(0.945),
    row(Loop, 128).efficiency(0.92),
    row(Loop, 256).efficiency(0.91),
    row(Pipe, 24).efficiency(0.985),
    row(Pipe, 64).efficiency(0.95),
    row(Pipe, 128).efficiency(0.945),
    row(Pipe, 256).efficiency(0.88),
    row(PipeOrdered, 24).efficiency(0.98),
    row(PipeOrdered, 64).efficiency(0.95),
    row(PipeOrdered, 128).efficiency(0.90),
    row(PipeOrdered, 256).efficiency(0.83),
    row(Sort, 24).efficiency(0.36),
    row(Join, 96).machine("server-2x64").efficiency(0.925).far(0.12),
    row(Join, 80).machine("server-4x24").efficiency(0.945).far(0.12),
];

/// The seeds of each row; the median counts.
const SEEDS: &[u64] = &[1, 2, 3];

/// The work of each worker, in nanoseconds.
const SPAN: u64 = 4_000_000;

/// How many of the most expensive source lines a failure shows.
const PLACES: usize = 8;

/// A workload on a number of workers, each with a core of its own, with work stealing.
struct Row {
    workload: Workload,
    workers: usize,
    /// The name of a machine in crates/sim/machines; if there is none, the machine is the generic one.
    machine: Option<&'static str>,
    /// The efficiency T(1) / (P * T(P)) must not be less.
    efficiency: Option<f64>,
    /// The microseconds after which all workers must have begun their first work.
    ramp: Option<u64>,
    /// The share of the steals from a worker on another NUMA node must not be more.
    far: Option<f64>,
}

const fn row(workload: Workload, workers: usize) -> Row {
    Row { workload, workers, machine: None, efficiency: None, ramp: None, far: None }
}

impl Row {
    /// The machine. The workers are on its first cores.
    const fn machine(self, name: &'static str) -> Self {
        Self { machine: Some(name), ..self }
    }

    /// The least efficiency.
    const fn efficiency(self, least: f64) -> Self {
        Self { efficiency: Some(least), ..self }
    }

    /// The microseconds within which all workers begin.
    const fn ramp(self, most: u64) -> Self {
        Self { ramp: Some(most), ..self }
    }

    /// The largest share of far steals.
    const fn far(self, most: f64) -> Self {
        Self { far: Some(most), ..self }
    }

    fn measure(&self, workers: usize, seed: u64) -> Measurement {
        let shipped = |name| Machine::shipped(name).expect("a row names a machine that is shipped");
        let machine = self.machine.map(shipped);
        let run = Run::new(self.workload, Strategy::WorkStealing, workers);
        let run = Run { machine, seed, span: SPAN, ..run };
        run.measure().unwrap_or_else(|error| panic!("{} {workers}: {error}", self.workload))
    }

    /// Measures with all seeds, and prints what was reached. Returns whether that is enough.
    fn check(&self) -> bool {
        let runs: Vec<Seeded> = SEEDS.iter().map(|&seed| Seeded::new(self, seed)).collect();
        let mut is_enough = true;
        if let Some(least) = self.efficiency {
            let run = median(&runs, |run| run.efficiency);
            let reached = format!("{:.3}, floor {least:.3}", run.efficiency);
            is_enough &= self.verdict(run, "efficiency", &reached, run.efficiency >= least);
        }
        if let Some(most) = self.ramp {
            let run = median(&runs, |run| run.ramp as f64);
            let reached = match run.ramp {
                Seeded::NEVER => format!("some workers never began, limit {most} us"),
                ramp => format!("all workers at work after {ramp} us, limit {most} us"),
            };
            is_enough &= self.verdict(run, "ramp", &reached, run.ramp <= most);
        }
        if let Some(most) = self.far {
            let run = median(&runs, |run| run.far);
            let Measurement { near_steals, far_steals, .. } = run.measured;
            let reached = format!(
                "{:.3} of the steals ({near_steals} near, {far_steals} far), limit {most:.3}",
                run.far
            );
            is_enough &= self.verdict(run, "far", &reached, run.far <= most);
        }
        is_enough
    }

    /// Prints a result, and the most expensive source lines of the run if it is not good enough.
    fn verdict(&self, run: &Seeded, what: &str, reached: &str, is_enough: bool) -> bool {
        let Self { workload, workers, .. } = self;
        let place = self.machine.map(|name| format!(" on {name}")).unwrap_or_default();
        let verdict = if is_enough { "ok" } else { "FAILED" };
        println!(
            "{verdict:6} {workload:12} {workers:3} workers{place}, seed {} (median of {}): {what} {reached} (simulated)",
            run.measured.seed,
            SEEDS.len()
        );
        if !is_enough {
            println!("       the most expensive source lines:");
            for site in run.measured.report.sites.iter().take(PLACES) {
                println!(
                    "         {:44} {:9} us, {:9} operations, {:9} transfers",
                    site.place,
                    site.stall / 1_000,
                    site.operations,
                    site.transfers
                );
            }
        }
        is_enough
    }
}

/// A run with a seed.
struct Seeded {
    measured: Measurement,
    efficiency: f64,
    /// The microseconds after which as many threads have begun to work as there are workers.
    ramp: u64,
    /// The share of the steals from a worker on another NUMA node. Without any steal it is not a number, which no limit allows.
    far: f64,
}

impl Seeded {
    /// The ramp if not all workers have worked.
    const NEVER: u64 = u64::MAX;

    fn new(row: &Row, seed: u64) -> Self {
        let base = row.measure(1, seed);
        let measured = row.measure(row.workers, seed);
        let threads = measured.report.threads.iter();
        let mut begun: Vec<u64> = threads.map(|thread| thread.first_work / 1_000).collect();
        begun.sort_unstable();
        let ramp = begun.get(row.workers - 1).copied().unwrap_or(Self::NEVER);
        let steals = measured.near_steals + measured.far_steals;
        let far = measured.far_steals as f64 / steals as f64;
        Self { efficiency: efficiency(&base, &measured), measured, ramp, far }
    }
}

/// Returns the run in the middle.
fn median(runs: &[Seeded], figure: impl Fn(&Seeded) -> f64) -> &Seeded {
    let mut sorted: Vec<&Seeded> = runs.iter().collect();
    sorted.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    sorted[sorted.len() / 2]
}

/// The argument with which this program checks one row.
const ONE_ROW: &str = "--row";

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        println!("floors: skipped: the floors are those of a release build");
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_enough = match &arguments[..] {
        [flag, index] if flag == ONE_ROW => {
            ROWS[index.parse::<usize>().expect("the number of a row")].check()
        }
        _ => check_all(&arguments),
    };
    if is_enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks all rows whose workload is named, or all. Returns whether all have passed.
fn check_all(names: &[String]) -> bool {
    let start = Instant::now();
    let is_named =
        |row: &Row| names.is_empty() || names.iter().any(|name| *name == row.workload.name());
    let mut rows: Vec<usize> = (0..ROWS.len()).filter(|&row| is_named(&ROWS[row])).collect();
    // Those that take longest begin first.
    rows.sort_by_key(|&row| std::cmp::Reverse(ROWS[row].workers));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(0));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(&row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = in_own_process(row);
                    let mut failed = failed.lock().expect("no thread panics while it prints");
                    print!("{}", String::from_utf8_lossy(&output.stdout));
                    if !output.status.success() {
                        eprint!("{}", String::from_utf8_lossy(&output.stderr));
                        *failed += 1;
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("as above");
    println!(
        "floors: {} rows, {failed} failed, in {:.0} s",
        rows.len(),
        start.elapsed().as_secs_f64()
    );
    failed == 0
}

fn in_own_process(row: usize) -> std::process::Output {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).args([ONE_ROW, &row.to_string()]).output();
    output.expect("this program can be started")
}
