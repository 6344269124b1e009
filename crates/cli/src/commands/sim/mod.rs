//! `heist sim`: simulates how heist scales on more cores than there are.

mod plan;
pub(crate) mod record;
pub(crate) mod summary;
mod table;

use heist_sim::RunError;
use heist_sim_workloads::{Error, Measurement, Strategy, Workload, efficiency};
use indicatif::ProgressBar;

use super::bench;
use crate::args::{Common, Sim};
use crate::exit::{Exit, Failure, Outcome};
use crate::{file, interrupt, out};
use plan::Plan;
use record::{SimPoint, SimRecord};

pub(crate) fn run(asked: &Sim, common: &Common) -> Outcome {
    let plan = Plan::new(asked)?;
    // Checked before the simulation, whose result would be lost otherwise.
    asked.json.as_deref().map_or(Ok(()), file::check)?;
    let mut record = SimRecord::new(plan.command(), plan.machine(), asked.seed, asked.seeds);
    record.span = plan.span();
    let bar = progress(&plan, common);
    let simulated = simulate(&plan, &bar, &mut record.points);
    bar.finish_and_clear();
    simulated?;
    if record.points.is_empty() {
        out::note("heist: interrupted before the first run ended; there are no results");
        return Ok(Exit::Interrupted);
    }
    let tables = table::markdown(&record);
    match &asked.json {
        None => out::print(&tables)?,
        Some(path) => {
            let shown = file::print_beside(path, &tables, common.quiet);
            // The points are kept even if stdout is closed.
            file::write(path, &record.bytes())?;
            shown?;
        }
    }
    if interrupt::seen() {
        out::note("heist: interrupted; these are the results so far");
    }
    Ok(interrupt::exit())
}

/// Returns a bar, which is invisible with `--quiet` or without a terminal. A run takes about as long as it has cores.
fn progress(plan: &Plan<'_>, common: &Common) -> ProgressBar {
    if common.quiet || !out::is_drawable() {
        return ProgressBar::hidden();
    }
    let curves = plan.workloads().len() * plan.strategies().len() * plan.seeds().count();
    bench::bar((curves * plan.cores.iter().sum::<usize>()) as u64)
}

/// Runs everything, one seed after the other, so that an interrupted simulation has complete curves.
fn simulate(plan: &Plan<'_>, bar: &ProgressBar, points: &mut Vec<SimPoint>) -> Result<(), Failure> {
    for seed in plan.seeds() {
        for &workload in plan.workloads() {
            for &strategy in plan.strategies() {
                curve(plan, workload, strategy, seed, bar, points)?;
            }
        }
    }
    Ok(())
}

/// Runs a workload on one core, to which the others are compared, and on each number of cores.
fn curve(
    plan: &Plan<'_>,
    workload: Workload,
    strategy: Strategy,
    seed: u64,
    bar: &ProgressBar,
    points: &mut Vec<SimPoint>,
) -> Result<(), Failure> {
    let mut base: Option<Measurement> = None;
    for &cores in &plan.cores {
        if interrupt::seen() {
            return Ok(());
        }
        bar.set_message(format!("{workload}, {strategy}, {cores} cores, seed {seed}"));
        let measure = |cores| {
            let measured = plan.run(workload, strategy, cores, seed).measure();
            measured.map_err(|error| failed(&error))
        };
        let base = match &base {
            Some(base) => base,
            None => base.insert(measure(1)?),
        };
        let measured = if cores == 1 { base.clone() } else { measure(cores)? };
        let outside = plan.run(workload, strategy, cores, seed).placement().producers.len();
        points.push(SimPoint::new(&measured, efficiency(base, &measured), outside));
        bar.inc(cores as u64);
    }
    Ok(())
}

/// Returns the failure for a simulation that did not reach its end.
fn failed(error: &Error) -> Failure {
    let is_invalid = matches!(error, Error::TooFewCores { .. } | Error::Run(RunError::Machine(_)));
    Failure {
        exit: if is_invalid { Exit::Usage } else { Exit::Wrong },
        what: "the simulation failed".into(),
        why: error.to_string(),
        advice: if is_invalid {
            "Use a smaller number for --cores, or another --machine.".into()
        } else {
            "Please report this message and the command; the same seed fails again.".into()
        },
    }
}
