//! A picture of nodes, packages and cores.

use super::Topology;
use super::cpus::Cpus;
use super::machine::{Cache, Core, Node, Package};
use super::show::size;
use crate::units;

/// More cores than these share a line, if they are alike.
const CORES: usize = 8;

/// A line of the picture, and what is below it.
struct Branch {
    line: String,
    twigs: Vec<Branch>,
}

/// The picture, a line each, or nothing if nothing is known.
pub(super) fn lines(topology: &Topology) -> Vec<String> {
    let mut lines = Vec::new();
    draw(&mut lines, "", &roots(topology));
    lines
}

/// The nodes that have processors, or else the packages.
fn roots(topology: &Topology) -> Vec<Branch> {
    let nodes: Vec<_> = topology.nodes.iter().filter(|node| node.cpus.count() > 0).collect();
    if nodes.is_empty() {
        return topology
            .packages
            .iter()
            .map(|package| package_branch(topology, package, None))
            .collect();
    }
    nodes.into_iter().map(|node| node_branch(topology, node)).collect()
}

fn node_branch(topology: &Topology, node: &Node) -> Branch {
    let memory = node
        .memory_kibibytes
        .map_or_else(String::new, |kibibytes| format!(", {}", size(kibibytes)));
    let twigs = topology
        .packages
        .iter()
        .filter(|package| package.cores.iter().any(|core| node.cpus.contains_all(&core.cpus)))
        .map(|package| package_branch(topology, package, Some(&node.cpus)))
        .collect();
    Branch { line: format!("node {}: {}{memory}", node.id, named(&node.cpus)), twigs }
}

/// That part of a package that is in a node.
fn package_branch(topology: &Topology, package: &Package, node: Option<&Cpus>) -> Branch {
    let cores: Vec<_> = package
        .cores
        .iter()
        .filter(|core| node.is_none_or(|node| node.contains_all(&core.cpus)))
        .collect();
    let shared: Vec<_> = topology
        .caches
        .iter()
        .filter(|cache| {
            cores.iter().any(|core| cache.cpus.contains_all(&core.cpus) && cache.cpus != core.cpus)
        })
        .collect();
    let line = format!("package {}{}", package.id, listed(&shared));
    let twigs = if cores.len() <= CORES {
        cores.iter().map(|core| core_branch(topology, core)).collect()
    } else {
        vec![many(topology, &cores)]
    };
    Branch { line, twigs }
}

fn core_branch(topology: &Topology, core: &Core) -> Branch {
    Branch {
        line: format!("core {}: {}{}", core.id, named(&core.cpus), listed(&own(topology, core))),
        twigs: Vec::new(),
    }
}

fn many(topology: &Topology, cores: &[&Core]) -> Branch {
    let least = cores.iter().map(|core| core.cpus.count()).min().unwrap_or(0);
    let most = cores.iter().map(|core| core.cpus.count()).max().unwrap_or(0);
    let threads = if least == most {
        units::of(most as u64, "processor")
    } else {
        format!("{least} to {most} processors")
    };
    let caches = cores.first().map_or_else(String::new, |core| listed(&own(topology, core)));
    Branch { line: format!("{} cores of {threads} each{caches}", cores.len()), twigs: Vec::new() }
}

/// The caches that a core has for itself.
fn own<'t>(topology: &'t Topology, core: &Core) -> Vec<&'t Cache> {
    topology.caches.iter().filter(|cache| cache.cpus == core.cpus).collect()
}

fn listed(caches: &[&Cache]) -> String {
    let mut text = String::new();
    for alike in caches.chunk_by(|a, b| (&a.name, a.kibibytes) == (&b.name, b.kibibytes)) {
        let count = if alike.len() > 1 { format!("{} x ", alike.len()) } else { String::new() };
        text += &format!(", {} {count}{}", alike[0].name, size(alike[0].kibibytes));
    }
    text
}

fn named(cpus: &Cpus) -> String {
    format!("processor{} {cpus}", if cpus.count() == 1 { "" } else { "s" })
}

fn draw(lines: &mut Vec<String>, before: &str, branches: &[Branch]) {
    for (place, branch) in branches.iter().enumerate() {
        let last = place + 1 == branches.len();
        lines.push(format!("{before}{}{}", if last { "└─ " } else { "├─ " }, branch.line));
        draw(lines, &format!("{before}{}", if last { "   " } else { "│  " }), &branch.twigs);
    }
}
