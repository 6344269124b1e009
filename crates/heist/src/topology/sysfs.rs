//! Packages, cores, caches and NUMA nodes, as Linux describes them below `/sys` and `/proc`.
//!
//! An entry that cannot be read is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::CpuSet;

/// A package, which is one socket on most machines.
///
/// ```
/// for package in heist::topology::Topology::detect().packages {
///     println!("package {} has {} physical cores", package.id, package.cores.len());
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// The number that the system gives the package.
    pub id: i64,
    /// The physical cores of the package.
    pub cores: Vec<PhysicalCore>,
}

/// A physical core: one processor, or several hardware threads (SMT siblings) that share execution units.
///
/// ```
/// let topology = heist::topology::Topology::detect();
/// let smt = topology.packages.iter().flat_map(|package| &package.cores).any(|core| core.cpus.len() > 1);
/// println!("simultaneous multithreading: {smt}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhysicalCore {
    /// The number that the system gives the core, which need not be unique. -1 if the system gives none.
    pub id: i64,
    /// The processors (hardware threads) of the core.
    pub cpus: CpuSet,
}

/// The contents of a [`Cache`].
///
/// ```
/// use heist::topology::{CacheKind, Topology};
///
/// let topology = Topology::detect();
/// let data = topology.caches.iter().filter(|cache| cache.kind == CacheKind::Data);
/// println!("{} caches hold data only", data.count());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CacheKind {
    /// Data and instructions.
    Unified,
    /// Data only.
    Data,
}

/// A cache that holds data, and the processors that share it. Instruction caches are not listed.
///
/// ```
/// let topology = heist::topology::Topology::detect();
/// if let Some(last) = topology.caches.iter().max_by_key(|cache| cache.level) {
///     println!("{} of {} KiB, shared by processors {}", last.name(), last.kibibytes, last.cpus);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Cache {
    /// The distance from the core: 1 is the nearest.
    pub level: u8,
    /// The contents.
    pub kind: CacheKind,
    /// The size in KiB.
    pub kibibytes: u64,
    /// The processors that share the cache.
    pub cpus: CpuSet,
}

impl Cache {
    /// Returns the usual name of the cache: `L1d`, `L2`, `L3`.
    ///
    /// ```
    /// for cache in heist::topology::Topology::detect().caches {
    ///     assert!(cache.name().starts_with('L'));
    /// }
    /// ```
    pub fn name(&self) -> String {
        match self.kind {
            CacheKind::Unified => format!("L{}", self.level),
            CacheKind::Data => format!("L{}d", self.level),
        }
    }
}

/// A NUMA node: processors, and the memory that is local to them.
///
/// ```
/// for node in heist::topology::Topology::detect().nodes {
///     println!("node {} has processors {}, at distances {:?}", node.id, node.cpus, node.distances);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumaNode {
    /// The number that the system gives the node.
    pub id: usize,
    /// The processors of the node. Empty if the node consists only of memory.
    pub cpus: CpuSet,
    /// The size of the node's memory in KiB.
    pub memory_kibibytes: Option<u64>,
    /// The distance to each node, in the order of the nodes. A node is at distance 10 from itself. Empty if the system does not
    /// say.
    pub distances: Vec<u64>,
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn parse<T: FromStr>(path: &Path) -> Option<T> {
    read(path)?.parse().ok()
}

/// Returns the model name of the processors.
pub(super) fn model(root: &Path) -> Option<String> {
    let text = read(&root.join("proc/cpuinfo"))?;
    // The keys of x86, of Power, and of some Arm boards.
    let line = ["model name", "cpu", "Hardware"].into_iter().find_map(|key| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)
    })?;
    Some(line.1.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|name| !name.is_empty())
}

/// Returns the processors that are online.
pub(super) fn online(root: &Path) -> Option<CpuSet> {
    parse(&root.join("sys/devices/system/cpu/online"))
}

/// Returns the affinity mask of this process.
pub(super) fn allowed(root: &Path) -> Option<CpuSet> {
    let status = read(&root.join("proc/self/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// Returns the packages of the online processors, with their cores.
pub(super) fn packages(root: &Path, online: &CpuSet) -> Vec<Package> {
    let mut packages: BTreeMap<i64, BTreeMap<CpuSet, i64>> = BTreeMap::new();
    for &cpu in online.as_slice() {
        let topology = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        let Some(package) = parse(&topology.join("physical_package_id")) else { continue };
        // The set of siblings identifies a core. Its number does not: it need not be unique in a package.
        let siblings = parse(&topology.join("core_cpus_list"))
            .or_else(|| parse(&topology.join("thread_siblings_list")))
            .unwrap_or_else(|| CpuSet::from_iter([cpu]));
        let id = parse(&topology.join("core_id")).unwrap_or(-1);
        packages.entry(package).or_default().insert(siblings, id);
    }
    let core = |(cpus, id)| PhysicalCore { id, cpus };
    packages
        .into_iter()
        .map(|(id, cores)| Package { id, cores: cores.into_iter().map(core).collect() })
        .collect()
}

/// Returns the data and unified caches of the online processors, each once.
pub(super) fn caches(root: &Path, online: &CpuSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = online
        .as_slice()
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
    let kind = match read(&folder.join("type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    Some(Cache {
        level: parse(&folder.join("level"))?,
        kind,
        kibibytes: read(&folder.join("size")).as_deref().and_then(kibibytes)?,
        cpus: parse(&folder.join("shared_cpu_list"))?,
    })
}

/// Parses the size of a cache: `32K`, `1M`.
fn kibibytes(size: &str) -> Option<u64> {
    match size.strip_suffix('M') {
        Some(mebibytes) => mebibytes.parse::<u64>().ok()?.checked_mul(1024),
        None => size.strip_suffix('K')?.parse().ok(),
    }
}

/// Returns the NUMA nodes that are online.
pub(super) fn nodes(root: &Path) -> Vec<NumaNode> {
    let folder = root.join("sys/devices/system/node");
    // The kernel lists nodes in the same notation as processors.
    let Some(ids) = parse::<CpuSet>(&folder.join("online")) else { return Vec::new() };
    let folder_of = |id: usize| folder.join(format!("node{id}"));
    let list = |id: usize| parse::<CpuSet>(&folder_of(id).join("cpulist"));
    let readable: Vec<Option<CpuSet>> = ids.as_slice().iter().map(|&id| list(id)).collect();
    let distances = |id: usize| {
        let row = read(&folder_of(id).join("distance"))?;
        let row: Vec<u64> =
            row.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // There is one for each node that is online, also for those that are left out here.
        let of_readable = || row.iter().zip(&readable).filter(|(_, cpus)| cpus.is_some());
        (row.len() == readable.len()).then(|| of_readable().map(|(&far, _)| far).collect())
    };
    let node = |(&id, cpus): (&usize, &Option<CpuSet>)| {
        Some(NumaNode {
            id,
            cpus: cpus.clone()?,
            memory_kibibytes: memory(&folder_of(id)),
            distances: distances(id).unwrap_or_default(),
        })
    };
    ids.as_slice().iter().zip(&readable).filter_map(node).collect()
}

fn memory(node: &Path) -> Option<u64> {
    let text = read(&node.join("meminfo"))?;
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_whitespace().rev().nth(1)?.parse().ok()
}
