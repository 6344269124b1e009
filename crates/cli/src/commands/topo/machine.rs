//! What the machine is made of, as Linux describes it under `/sys` and `/proc`. What cannot be read is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::cpus::Cpus;

/// A socket, mostly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Package {
    pub(crate) id: i64,
    pub(crate) cores: Vec<Core>,
}

/// One or more processors that share what computes: siblings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Core {
    pub(crate) id: i64,
    pub(crate) cpus: Cpus,
}

/// A cache of data, and who shares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Cache {
    /// `L1d`, `L2`, `L3`.
    pub(crate) name: String,
    pub(crate) kibibytes: u64,
    pub(crate) cpus: Cpus,
}

/// Processors and memory that are near each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Node {
    pub(crate) id: usize,
    pub(crate) cpus: Cpus,
    pub(crate) memory_kibibytes: Option<u64>,
    /// To each node, in their order; 10 is its own.
    pub(crate) distances: Vec<u64>,
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read(path)?.parse().ok()
}

fn cpus(path: &Path) -> Option<Cpus> {
    Cpus::parse(&read(path)?)
}

/// The name of the processors.
pub(crate) fn model(root: &Path) -> Option<String> {
    let text = read(&root.join("proc/cpuinfo"))?;
    // On x86; on Power; on some Arm boards.
    let line = ["model name", "cpu", "Hardware"].into_iter().find_map(|key| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)
    })?;
    Some(line.1.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|name| !name.is_empty())
}

pub(crate) fn online(root: &Path) -> Option<Cpus> {
    cpus(&root.join("sys/devices/system/cpu/online"))
}

/// Those on which the process may run.
pub(crate) fn allowed(root: &Path) -> Option<Cpus> {
    let status = read(&root.join("proc/self/status"))?;
    Cpus::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

pub(crate) fn packages(root: &Path, online: &Cpus) -> Vec<Package> {
    let mut packages: BTreeMap<i64, BTreeMap<Cpus, i64>> = BTreeMap::new();
    for &cpu in online.numbers() {
        let topology = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        let Some(package) = number(&topology.join("physical_package_id")) else { continue };
        let siblings = cpus(&topology.join("core_cpus_list"))
            .or_else(|| cpus(&topology.join("thread_siblings_list")));
        // Siblings tell cores apart; their numbers need not be unique in a package.
        let siblings =
            siblings.unwrap_or_else(|| Cpus::parse(&cpu.to_string()).unwrap_or_default());
        let id = number(&topology.join("core_id")).unwrap_or(-1);
        packages.entry(package).or_default().insert(siblings, id);
    }
    let core = |(cpus, id)| Core { id, cpus };
    packages
        .into_iter()
        .map(|(id, cores)| Package { id, cores: cores.into_iter().map(core).collect() })
        .collect()
}

pub(crate) fn caches(root: &Path, online: &Cpus) -> Vec<Cache> {
    let mut caches: Vec<Cache> = online
        .numbers()
        .iter()
        .flat_map(|cpu| {
            let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
            (0..)
                .map(move |index| folder.join(format!("index{index}")))
                .map_while(|index| index.is_dir().then(|| cache(&index)))
        })
        .flatten()
        .collect();
    caches.sort_unstable();
    caches.dedup();
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let level: u8 = number(&folder.join("level"))?;
    let kind = match read(&folder.join("type"))?.as_str() {
        "Data" => "d",
        "Unified" => "",
        _ => return None,
    };
    Some(Cache {
        name: format!("L{level}{kind}"),
        kibibytes: read(&folder.join("size")).as_deref().and_then(kibibytes)?,
        cpus: cpus(&folder.join("shared_cpu_list"))?,
    })
}

/// `32K`, `1M`.
fn kibibytes(size: &str) -> Option<u64> {
    match size.strip_suffix('M') {
        Some(mebi) => mebi.parse::<u64>().ok()?.checked_mul(1024),
        None => size.strip_suffix('K')?.parse().ok(),
    }
}

pub(crate) fn nodes(root: &Path) -> Vec<Node> {
    let folder = root.join("sys/devices/system/node");
    // Nodes are written as processors are.
    let Some(ids) = cpus(&folder.join("online")) else { return Vec::new() };
    let node = |&id: &usize| {
        let own = folder.join(format!("node{id}"));
        let distances = read(&own.join("distance")).unwrap_or_default();
        Some(Node {
            id,
            cpus: cpus(&own.join("cpulist"))?,
            memory_kibibytes: memory(&own),
            distances: distances
                .split_whitespace()
                .filter_map(|distance| distance.parse().ok())
                .collect(),
        })
    };
    ids.numbers().iter().filter_map(node).collect()
}

fn memory(node: &Path) -> Option<u64> {
    let text = read(&node.join("meminfo"))?;
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_whitespace().rev().nth(1)?.parse().ok()
}
