//! The page of a simulation. Every figure on it says that it is simulated.

mod calibration;
mod efficiency;
mod machine;
mod places;
mod rows;

use std::path::Path;

use super::html::{section, text};
use super::{document, environment, top};
use crate::commands::sim::record::SimRecord;
use crate::commands::sim::summary::{Curve, curves};
use crate::exit::{Exit, Failure};
use crate::{file, units};

/// Reads a record from the bytes of a file that is known to be of a simulation.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<SimRecord, Failure> {
    let unusable = |why: String| Failure {
        exit: Exit::File,
        what: format!("cannot make a page from {}", path.display()),
        why,
        advice: "Simulate again: heist sim --json FILE".into(),
    };
    let record: SimRecord = serde_json::from_slice(bytes).map_err(|error| {
        if SimRecord::is_newer(bytes) {
            file::newer(path, &error)
        } else {
            unusable(format!("it is the file of a simulation, but not a valid one: {error}"))
        }
    })?;
    if record.points.is_empty() {
        return Err(unusable("it has no points".into()));
    }
    Ok(record)
}

/// Returns the page of a simulation.
pub(super) fn page(record: &SimRecord) -> String {
    let curves = curves(record);
    let sections = [
        limits(),
        efficiency::efficiency(&curves),
        calibration::calibration(record),
        rows::split(&curves),
        rows::ends(&curves),
        places::places(&curves),
        machine::machine(record),
        environment::again(
            "The same build of heist gives the same figures again; another build may give others. The command:",
            &record.command,
        ),
    ];
    let footer = "Every figure on this page is simulated. Each run has checked that all work was done exactly once.";
    document("heist simulation report", &header(record, &curves), &sections.concat(), footer)
}

fn header(record: &SimRecord, curves: &[Curve<'_>]) -> String {
    let links = [
        ("limits", "What may be claimed"),
        ("efficiency", "Efficiency"),
        ("calibration", "Calibration"),
        ("split", "Core time"),
        ("ends", "Ramp and tail"),
        ("places", "Source lines"),
        ("machine", "Machine"),
        ("again", "Reproduce"),
    ];
    let place = [
        "simulated".to_owned(),
        format!("machine {}", record.machine.name),
        units::of(record.seeds, "seed"),
        format!("{} of work for each core", units::time(record.span as f64)),
    ];
    let headline = format!("<p class=\"headline\">{}</p>\n", text(&headline(curves)));
    top("simulation", &place.join(" · "), &headline, &links)
}

/// Says how efficient the first curve of each workload is on the most cores.
fn headline(curves: &[Curve<'_>]) -> String {
    let first = |curves: &[Curve<'_>]| {
        let (curve, row) = (&curves[0], curves[0].largest());
        let cores = units::of(row.cores as u64, "core");
        let efficiency = row.efficiency().median;
        format!(
            "{} has an efficiency of {efficiency:.2} on {cores} ({})",
            curve.workload, curve.strategy
        )
    };
    let workloads: Vec<String> =
        curves.chunk_by(|a, b| a.workload == b.workload).map(first).collect();
    format!("Simulated: {}.", units::list(&workloads))
}

/// Returns the section that says what follows from a simulation, and what does not.
fn limits() -> String {
    let list = |lines: &[&str]| -> String {
        lines.iter().map(|line| format!("<li>{}</li>", text(line))).collect()
    };
    let may = list(&[
        "Where threads queue for the same cache line, and which line of the source that is.",
        "How long a protocol takes to get all workers going, and to come to an end.",
        "Whether one design is better than another on the same model.",
    ]);
    let may_not = list(&[
        "The speed of a real machine: constants were measured on two cores of one processor, or are assumed.",
        "Anything about the capacity of caches, memory bandwidth, several threads on a core, frequencies or noise.",
        "That the model holds above two cores. No such machine was available to check it.",
    ]);
    let body = format!(
        "<div class=\"cards\">\n<div class=\"card\"><h3>May be claimed</h3><ul>{may}</ul></div>\n\
         <div class=\"card\"><h3>May not be claimed</h3><ul>{may_not}</ul></div>\n</div>\n"
    );
    let lead = "The code that ships runs on virtual cores in virtual time, on a model of caches and system calls. docs/SIMULATION.md \
                in the repository explains the model, where its constants come from, and how well it agrees with real runs.";
    section("limits", "What these figures may claim", lead, &body)
}

/// Returns a figure. The chart and the table are already escaped.
fn figure(class: &str, name: &str, what: &str, inside: &str) -> String {
    format!(
        "<figure class=\"{class}\"><figcaption><strong>{}</strong><span class=\"quiet\">simulated: {}</span></figcaption>\n{inside}</figure>\n",
        text(name),
        text(what),
    )
}

/// Returns the name of a curve.
fn named(curve: &Curve<'_>) -> String {
    format!("{}, {}", curve.workload, curve.strategy)
}

#[cfg(test)]
mod tests;
