//! A tree of NUMA nodes, packages and cores.

use heist::topology::{Cache, CpuSet, NumaNode, Package, PhysicalCore, Topology};

use super::show::{is_alike, size};
use crate::units;

/// If a package has more cores, they share one line.
const MAX_CORES: usize = 8;

struct Branch {
    line: String,
    children: Vec<Branch>,
}

/// Returns the lines of the tree. There are none if nothing is known.
pub(super) fn lines(topology: &Topology) -> Vec<String> {
    let mut lines = Vec::new();
    draw(&mut lines, "", &roots(topology));
    lines
}

/// Returns the NUMA nodes that have processors, or the packages if no node is known.
fn roots(topology: &Topology) -> Vec<Branch> {
    let nodes: Vec<_> = topology.nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    if nodes.is_empty() {
        return topology
            .packages
            .iter()
            .map(|package| package_branch(topology, package, None))
            .collect();
    }
    nodes.into_iter().map(|node| node_branch(topology, node)).collect()
}

fn node_branch(topology: &Topology, node: &NumaNode) -> Branch {
    let memory = node
        .memory_kibibytes
        .map_or_else(String::new, |kibibytes| format!(", {}", size(kibibytes)));
    let children = topology
        .packages
        .iter()
        .filter(|package| package.cores.iter().any(|core| node.cpus.is_superset(&core.cpus)))
        .map(|package| package_branch(topology, package, Some(&node.cpus)))
        .collect();
    Branch { line: format!("node {}: {}{memory}", node.id, processors(&node.cpus)), children }
}

/// Returns the part of a package that is in a node.
fn package_branch(topology: &Topology, package: &Package, node: Option<&CpuSet>) -> Branch {
    let cores: Vec<_> = package
        .cores
        .iter()
        .filter(|core| node.is_none_or(|node| node.is_superset(&core.cpus)))
        .collect();
    let shared: Vec<_> = topology
        .caches
        .iter()
        .filter(|cache| {
            cores.iter().any(|core| cache.cpus.is_superset(&core.cpus) && cache.cpus != core.cpus)
        })
        .collect();
    let line = format!("package {}{}", package.id, cache_list(&shared));
    let children = if cores.len() <= MAX_CORES {
        cores.iter().map(|core| core_branch(topology, core)).collect()
    } else {
        vec![cores_branch(topology, &cores)]
    };
    Branch { line, children }
}

fn core_branch(topology: &Topology, core: &PhysicalCore) -> Branch {
    Branch {
        line: format!(
            "core {}: {}{}",
            core.id,
            processors(&core.cpus),
            cache_list(&private_caches(topology, core))
        ),
        children: Vec::new(),
    }
}

fn cores_branch(topology: &Topology, cores: &[&PhysicalCore]) -> Branch {
    let least = cores.iter().map(|core| core.cpus.len()).min().unwrap_or(0);
    let most = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0);
    let threads = if least == most {
        units::of(most as u64, "processor")
    } else {
        format!("{least} to {most} processors")
    };
    let caches =
        cores.first().map_or_else(String::new, |core| cache_list(&private_caches(topology, core)));
    Branch {
        line: format!("{} cores of {threads} each{caches}", cores.len()),
        children: Vec::new(),
    }
}

/// Returns the caches that no other core shares.
fn private_caches<'t>(topology: &'t Topology, core: &PhysicalCore) -> Vec<&'t Cache> {
    topology.caches.iter().filter(|cache| cache.cpus == core.cpus).collect()
}

fn cache_list(caches: &[&Cache]) -> String {
    let mut text = String::new();
    for alike in caches.chunk_by(|a, b| is_alike(a, b)) {
        let count = if alike.len() > 1 { format!("{} x ", alike.len()) } else { String::new() };
        text += &format!(", {} {count}{}", alike[0].name(), size(alike[0].kibibytes));
    }
    text
}

fn processors(cpus: &CpuSet) -> String {
    format!("processor{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

fn draw(lines: &mut Vec<String>, indent: &str, branches: &[Branch]) {
    for (index, branch) in branches.iter().enumerate() {
        let last = index + 1 == branches.len();
        lines.push(format!("{indent}{}{}", if last { "└─ " } else { "├─ " }, branch.line));
        draw(lines, &format!("{indent}{}", if last { "   " } else { "│  " }), &branch.children);
    }
}
