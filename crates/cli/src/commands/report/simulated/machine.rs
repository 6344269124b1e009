//! The machine that was simulated, with its constants.

use super::super::environment::listed;
use super::super::html::section;
use crate::commands::sim::record::SimRecord;
use crate::units;

/// Constants that are no times.
const NUMBERS: [&str; 3] = ["request_share", "shared_read_share", "jitter_permille"];

/// Returns the section.
pub(super) fn machine(record: &SimRecord) -> String {
    let lead = "The model with which these figures were simulated. docs/SIMULATION.md says which constants were measured, fitted or \
                assumed. Times are in nanoseconds.";
    let mut facts = shape(record);
    facts.extend(constants(record));
    section("machine", "Simulated machine", lead, &listed(&facts))
}

fn shape(record: &SimRecord) -> Vec<(String, String)> {
    let machine = &record.machine;
    let between = machine.node_transfer.iter().flatten().copied().fold(0.0, f64::max);
    let facts = [
        ("Machine", machine.name.clone()),
        ("Sources", machine.sources.join("; ")),
        ("Cores", units::count(machine.cores() as u64)),
        ("Sockets", machine.sockets.to_string()),
        ("Cores that share a cache", machine.cores_per_cluster.to_string()),
        ("Transfer within a cluster", format!("{} ns", machine.cluster_transfer)),
        ("Longest transfer", format!("{between} ns")),
        ("heist", record.version.clone()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Returns the constants under the names that a machine file uses.
fn constants(record: &SimRecord) -> Vec<(String, String)> {
    let costs = serde_json::to_value(&record.machine.costs).unwrap_or_default();
    let fact = |(name, value): (&String, &serde_json::Value)| {
        let unit = if NUMBERS.contains(&&**name) { "" } else { " ns" };
        (name.clone(), format!("{value}{unit}"))
    };
    costs.as_object().into_iter().flatten().map(fact).collect()
}
