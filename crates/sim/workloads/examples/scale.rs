//! Prints how efficient heist is on more and more virtual cores.
//!
//!     cargo run --release -p heist-sim-workloads --example scale -- \
//!         [WORKLOADS] [STRATEGIES] [CORES] [MACHINE] [SEED] [SPAN] [PLACES]
//!
//! The first three are lists with commas, or `all`. The machine is `generic`, a name in crates/sim/machines, or a file. The
//! span is the microseconds of work for each worker. The last is how many of the most expensive places in the source are
//! printed.

use std::error::Error;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use heist_sim_workloads::{Machine, Point, Run, Strategy, Workload, sweep};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize, default: &'static str| arguments.get(n).map_or(default, |s| s);
    let workloads: Vec<Workload> = list(argument(0, "all"), Workload::ALL)?;
    let strategies: Vec<Strategy> = list(argument(1, "all"), Strategy::ALL)?;
    let cores: Vec<usize> = list(argument(2, "all"), &[1, 2, 8, 24, 64, 128, 256])?;
    let machine = match argument(3, "generic") {
        "generic" => None,
        name if Machine::shipped_names().any(|shipped| shipped == name) => {
            Some(Machine::shipped(name)?)
        }
        path => Some(Machine::read(Path::new(path))?),
    };
    let seed = argument(4, "1").parse()?;
    let span = argument(5, "4000").parse::<u64>()? * 1_000;
    let places = argument(6, "0").parse()?;
    println!(
        "simulated; efficiency T1 / (P * TP); shares of the workers' time; the last first work"
    );
    for &workload in &workloads {
        for &strategy in &strategies {
            let machine = machine.clone();
            let run = Run { machine, seed, span, ..Run::new(workload, strategy, 1) };
            let mut start = Instant::now();
            sweep(&run, &cores, |point| {
                show(point, places);
                println!("  in {:.1} s", start.elapsed().as_secs_f64());
                start = Instant::now();
            })?;
        }
    }
    Ok(())
}

/// Reads a list with commas, or `all`.
fn list<T: FromStr + Clone>(text: &str, all: &[T]) -> Result<Vec<T>, T::Err> {
    match text {
        "all" => Ok(all.to_vec()),
        list => list.split(',').map(str::parse).collect(),
    }
}

fn show(point: &Point, places: usize) {
    let measured = &point.measurement;
    let split = &measured.report.split;
    let share =
        |time: u64| 100.0 * time as f64 / (measured.elapsed * measured.workers as u64) as f64;
    let ramp = measured.report.threads.iter().map(|thread| thread.first_work).max();
    for site in measured.report.sites.iter().take(places) {
        println!(
            "    {:44} {:9} us {:9} operations {:9} transfers",
            site.place,
            site.stall / 1_000,
            site.operations,
            site.transfers
        );
    }
    print!(
        "{:12} {:13} {:4}  {:.3}  {:8} us  work {:4.1}% misses {:4.1}% pauses {:4.1}% idle {:4.1}%  threads {:4} ramp {:5} us  steals: near {:5} far {:5}",
        measured.workload,
        measured.strategy,
        measured.workers,
        point.efficiency,
        measured.elapsed / 1_000,
        share(split.work),
        share(split.misses),
        share(split.pauses),
        share(split.idle),
        measured.report.threads.len(),
        ramp.unwrap_or(0) / 1_000,
        measured.near_steals,
        measured.far_steals,
    );
}
