//! Compares simulated with real times on one and two workers, as a table in Markdown.
//!
//!     cargo run --release -p heist-sim-workloads --example compare
//!
//! The machine must be otherwise idle, and the one that crates/sim/machines/dev-2.toml describes.

use std::error::Error;

use heist_real_cases as real;
use heist_sim_workloads::{Machine, Run, Strategy, Workload};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

/// The number of real runs, of which the fastest counts: it is the one with the least noise of other programs.
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    println!("| workload | strategy | workers | simulated us | real us | simulated / real |");
    println!("|---|---|---|---|---|---|");
    for &workload in Workload::ALL {
        // There is only one socket.
        if workload == Workload::OutsideFar {
            continue;
        }
        for &strategy in Strategy::ALL {
            for workers in [1, 2] {
                let run = Run {
                    machine: Some(Machine::shipped("dev-2")?),
                    ..Run::new(workload, strategy, workers)
                };
                let simulated = run.measure()?.elapsed as f64 / 1e3;
                let measured = on_real_machine(&run)?;
                println!(
                    "| {workload} | {strategy} | {workers} | {simulated:.0} | {measured:.0} | {:.2} |",
                    simulated / measured
                );
            }
        }
    }
    Ok(())
}

/// Returns the shortest real time in microseconds.
fn on_real_machine(run: &Run) -> Result<f64, real::UnknownName> {
    let placement = run.placement();
    let case = real::Case {
        workload: run.workload.name().parse()?,
        strategy: run.strategy.name().parse()?,
        placement: real::Placement {
            workers: placement.workers,
            producers: placement.producers,
            main: placement.main,
        },
        span: run.span,
    };
    let times = (0..ROUNDS).map(|_| real::measure(&case).elapsed);
    Ok(times.min().unwrap_or(0) as f64 / 1e3)
}
