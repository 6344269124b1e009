//! Prints how efficient heist is on more and more virtual cores.
//!
//!     cargo run --release -p heist-sim-workloads --example scale -- [WORKLOADS] [STRATEGIES] [CORES] [MACHINE] [SEED]
//!
//! The first three are lists with commas, or `all`. The machine is `generic`, a name in crates/sim/machines, or a file.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use heist_sim_workloads::{Machine, Run, Strategy, Workload, sweep};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize, default: &'static str| arguments.get(n).map_or(default, |s| s);
    let workloads = match argument(0, "all") {
        "all" => Workload::ALL.to_vec(),
        list => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let strategies = match argument(1, "all") {
        "all" => Strategy::ALL.to_vec(),
        list => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let cores = match argument(2, "all") {
        "all" => vec![1, 2, 8, 24, 64, 128, 256],
        list => list.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?,
    };
    let machine = match argument(3, "generic") {
        "generic" => None,
        name if Machine::shipped_names().any(|shipped| shipped == name) => {
            Some(Machine::shipped(name)?)
        }
        path => Some(Machine::read(Path::new(path))?),
    };
    let seed = argument(4, "1").parse()?;
    println!("simulated; efficiency T1 / (P * TP); us of virtual time; s of real time");
    for &workload in &workloads {
        for &strategy in &strategies {
            let run = Run { machine: machine.clone(), seed, ..Run::new(workload, strategy, 1) };
            let mut start = Instant::now();
            sweep(&run, &cores, |point| {
                let m = &point.measurement;
                let (used, last) = (&m.report.split, m.report.threads.iter());
                println!(
                    "{workload:12} {strategy:13} {:4} eff {:.3} use {:.3} {:8} us  parks {:6} moved {:7} misses {:5.1}% \
                     pauses {:4.1}% ramp {:4} us  {:.1} s",
                    m.workers,
                    point.efficiency,
                    m.utilization,
                    m.elapsed / 1_000,
                    m.parks,
                    m.moved,
                    100.0 * used.misses as f64 / (m.elapsed * m.workers as u64) as f64,
                    100.0 * used.pauses as f64 / (m.elapsed * m.workers as u64) as f64,
                    last.map(|thread| thread.first_work).max().unwrap_or(0) / 1_000,
                    start.elapsed().as_secs_f64(),
                );
                if std::env::var_os("SITES").is_some() {
                    for site in m.report.sites.iter().take(12) {
                        println!(
                            "    {:48} {:9} us {:9} operations {:9} transfers",
                            site.place,
                            site.stall / 1_000,
                            site.operations,
                            site.transfers
                        );
                    }
                }
                start = Instant::now();
            })?;
        }
    }
    Ok(())
}
