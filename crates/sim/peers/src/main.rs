//! Prints how efficient rayon and heist are on more and more virtual cores. `crates/sim/peers/run.sh` builds and runs it.

mod workloads;
#[path = "../../cases/src/host/sim.rs"]
mod host;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use heist_sim_workloads::{Case, Machine, Run, Strategy, Workload};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

type Failure = Box<dyn Error>;

/// The argument with which this program measures once.
const ONE: &str = "--one";

/// What is compared.
const LIBRARIES: [&str; 2] = ["rayon", "heist"];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [one, library, workload, workers, machine, seed, span] if one == ONE => {
            let run = Run {
                machine: machine_of(machine)?,
                seed: seed.parse()?,
                span: span.parse()?,
                ..Run::new(workload.parse()?, Strategy::WorkStealing, workers.parse()?)
            };
            println!("{}", measure(library, &run)?);
            Ok(())
        }
        _ => compare(&arguments),
    }
}

fn machine_of(name: &str) -> Result<Option<Machine>, Failure> {
    Ok(match name {
        "generic" => None,
        name if Machine::shipped_names().any(|shipped| shipped == name) => {
            Some(Machine::shipped(name)?)
        }
        path => Some(Machine::read(Path::new(path))?),
    })
}

/// Measures once.
fn measure(library: &str, run: &Run) -> Result<Value, Failure> {
    let (elapsed, units, report) = if library == "heist" {
        let measured = run.measure()?;
        (measured.elapsed, measured.units, measured.report)
    } else {
        let (machine, placement) = run.layout();
        let strategy = run.strategy;
        let case = Case { workload: run.workload, strategy, placement, span: run.span };
        let config = heist_sim::Config { seed: run.seed, ..heist_sim::Config::new(machine) };
        let ((elapsed, parts), report) = heist_sim::run(config, move || workloads::measure(&case))?;
        (elapsed, parts, report)
    };
    let mut begun: Vec<u64> = report.threads.iter().map(|thread| thread.first_work).collect();
    begun.sort_unstable();
    Ok(json!({
        "library": library,
        "workload": run.workload.name(),
        "workers": run.workers,
        "seed": run.seed,
        "elapsed": elapsed,
        "units": units,
        "ramp": begun.get(run.workers - 1),
        "report": report,
    }))
}

/// Measures in a process of its own: statics of rayon keep memory of the simulation in which they were first used.
fn in_own_process(
    library: &str,
    workload: Workload,
    workers: usize,
    machine: &str,
    seed: u64,
    span: u64,
) -> Result<Value, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args([ONE, library, workload.name(), &workers.to_string(), machine])
        .args([seed.to_string(), span.to_string()])
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{library} {workload} {workers} seed {seed}: {message}").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Reads a list with commas, or `all`.
fn list<T: FromStr + Clone>(text: &str, all: &[T]) -> Result<Vec<T>, T::Err> {
    match text {
        "all" => Ok(all.to_vec()),
        list => list.split(',').map(str::parse).collect(),
    }
}

/// Runs all libraries on all workloads and numbers of cores, and prints a table.
fn compare(arguments: &[String]) -> Result<(), Failure> {
    let argument = |n: usize, default: &'static str| arguments.get(n).map_or(default, |s| s);
    let workloads: Vec<Workload> = list(argument(0, "all"), workloads::ALL)?;
    let cores: Vec<usize> = list(argument(1, "all"), &[1, 2, 8, 24, 64, 128])?;
    let machine = argument(2, "generic");
    let seeds: Vec<u64> = list(argument(3, "all"), &[1, 2, 3])?;
    let span = argument(4, "4000").parse::<u64>()? * 1_000;
    let places: usize = argument(5, "0").parse()?;
    let mut points = Vec::new();
    println!(
        "simulated; efficiency T1 / (P * TP): the median of {} seeds, with the smallest and the largest",
        seeds.len()
    );
    for &workload in &workloads {
        for library in LIBRARIES {
            let mut bases = Vec::new();
            for &seed in &seeds {
                bases.push(in_own_process(library, workload, 1, machine, seed, span)?);
            }
            for &workers in &cores {
                let mut runs = Vec::new();
                for (&seed, base) in seeds.iter().zip(&bases) {
                    let mut run = match workers {
                        1 => base.clone(),
                        _ => in_own_process(library, workload, workers, machine, seed, span)?,
                    };
                    run["efficiency"] = json!(efficiency(base, &run));
                    runs.push(run);
                }
                runs.sort_by(|a, b| number(a, "efficiency").total_cmp(&number(b, "efficiency")));
                show(&runs, places);
                points.extend(runs);
            }
        }
    }
    if let Some(file) = arguments.get(6) {
        fs::write(file, serde_json::to_string_pretty(&json!({ "simulated": points }))?)?;
    }
    Ok(())
}

fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or(f64::NAN)
}

fn efficiency(base: &Value, run: &Value) -> f64 {
    let time = |run: &Value| number(run, "elapsed") / number(run, "units");
    time(base) / (time(run) * number(run, "workers"))
}

/// Prints the median of runs that are sorted by their efficiency.
fn show(runs: &[Value], places: usize) {
    let median = &runs[runs.len() / 2];
    let text = |name: &str| median[name].as_str().unwrap_or_default();
    println!(
        "{:8} {:6} {:4.0}  {:.3} ({:.3}-{:.3})  {:8.0} us  ramp {:6.0} us",
        text("workload"),
        text("library"),
        number(median, "workers"),
        number(median, "efficiency"),
        number(&runs[0], "efficiency"),
        number(&runs[runs.len() - 1], "efficiency"),
        number(median, "elapsed") / 1e3,
        number(median, "ramp") / 1e3,
    );
    for site in median["report"]["sites"].as_array().into_iter().flatten().take(places) {
        println!(
            "    {:44} {:9.0} us {:9.0} operations {:9.0} transfers",
            site["place"].as_str().unwrap_or_default(),
            number(site, "stall") / 1e3,
            number(site, "operations"),
            number(site, "transfers")
        );
    }
}
