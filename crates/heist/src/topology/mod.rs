//! The machine as the operating system describes it: processors, caches, NUMA nodes, and the limits of this
//! process.
//!
//! On Linux, [`Topology::detect`] reads the files below `/proc` and `/sys`. On other systems it only knows
//! how many processors the process may use. A value that the system does not report is `None` or an empty
//! list; nothing is guessed.
//!
//! ```
//! let topology = heist::topology::Topology::detect();
//! match topology.available_parallelism {
//!     Some(processors) => println!("{processors} processors, limited by: {}", topology.limited_by()),
//!     None => println!("the system does not report its processors"),
//! }
//! for cache in &topology.caches {
//!     println!("{} of {} KiB, shared by processors {}", cache.name(), cache.kibibytes, cache.cpus);
//! }
//! ```
//!
//! A pool uses the topology only if its workers are to be pinned by it: see [`Pin`](crate::Pin). The workers that sleep
//! together are then on one NUMA node, the workers that sleep near the work are woken first, and halves of joins are stolen
//! from workers on the same node first. It places no memory.

mod cgroup;
mod cpu_set;
mod placement;
mod sysfs;
#[cfg(test)]
mod tests;

use std::path::Path;
// Its query starts no thread and synchronises nothing, so it does not belong to what the `sync` module swaps
// for a model checker. `sync::parallelism` is no substitute: it answers 1 where the system does not answer.
use std::thread;
use std::{fmt, io};

use crate::sync::virtual_nodes;

pub use cgroup::CgroupQuota;
pub use cpu_set::{CpuSet, ParseCpuSetError};
pub use sysfs::{Cache, CacheKind, NumaNode, Package, PhysicalCore};

/// A description of the machine, and of the part of it that this process may use.
///
/// ```
/// use heist::topology::Topology;
///
/// let topology = Topology::detect();
/// let cores: usize = topology.packages.iter().map(|package| package.cores.len()).sum();
/// println!("{cores} physical cores in {} NUMA nodes", topology.nodes.len());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Topology {
    /// The model name of the processors.
    pub model: Option<String>,
    /// The processors that are online.
    pub online: Option<CpuSet>,
    /// The processors in the affinity mask of this process.
    pub allowed: Option<CpuSet>,
    /// The CPU limits of the control groups that contain this process, innermost group first. `None` if the
    /// system does not report the group of this process.
    pub quotas: Option<Vec<CgroupQuota>>,
    /// The number of processors that the process may use at once, as the standard library computes it from
    /// the affinity mask and the control groups.
    pub available_parallelism: Option<usize>,
    /// The packages (sockets) with their physical cores.
    pub packages: Vec<Package>,
    /// The data and unified caches, ordered by level, size and processors.
    pub caches: Vec<Cache>,
    /// The NUMA nodes.
    pub nodes: Vec<NumaNode>,
}

/// The limit that determines [`Topology::available_parallelism`].
///
/// ```
/// use heist::topology::ParallelismLimit;
///
/// assert_eq!(ParallelismLimit::Affinity.to_string(), "the affinity mask");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParallelismLimit {
    /// The process may use every online processor.
    Online,
    /// The affinity mask leaves fewer processors than are online.
    Affinity,
    /// A control group limits the processor time.
    Cgroup,
    /// The reported numbers do not explain each other.
    Unknown,
}

impl fmt::Display for ParallelismLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Online => "the number of online processors",
            Self::Affinity => "the affinity mask",
            Self::Cgroup => "a cgroup quota",
            Self::Unknown => "unknown",
        })
    }
}

/// Returns the NUMA nodes of this machine, or none if the system does not say.
pub(crate) fn nodes() -> Vec<NumaNode> {
    if let Some(nodes) = virtual_nodes() {
        let node = |(id, cpus, distances): (usize, Vec<usize>, Vec<u64>)| NumaNode {
            id,
            cpus: cpus.into_iter().collect(),
            memory_kibibytes: None,
            distances,
        };
        return nodes.into_iter().map(node).collect();
    }
    if cfg!(any(target_os = "linux", target_os = "android")) {
        sysfs::nodes(Path::new("/"))
    } else {
        Vec::new()
    }
}

/// Returns how many processors are in the affinity mask of this process, if the system says so.
pub(crate) fn allowed_processors() -> Option<usize> {
    let is_linux = cfg!(any(target_os = "linux", target_os = "android"));
    let allowed = if is_linux { sysfs::allowed(Path::new("/")) } else { None };
    allowed.map(|allowed| allowed.len()).filter(|&processors| processors > 0)
}

/// Returns how many processors the smallest CPU limit leaves to this process, by the files in that directory, or `None` if there is
/// no limit. As the standard library does, it rounds down, but to no less than one. Fails if a file that is there cannot be read.
pub(crate) fn quota_at(root: &Path) -> io::Result<Option<usize>> {
    let quotas = cgroup::quotas(root)?;
    let smallest = quotas.iter().map(|quota| quota.processors).min_by(f64::total_cmp);
    Ok(smallest.map(|smallest| (smallest as usize).max(1)))
}

impl Topology {
    /// Describes this machine.
    ///
    /// Every call reads the files again; keep the result if you need it more than once.
    ///
    /// ```
    /// let topology = heist::topology::Topology::detect();
    /// if let (Some(online), Some(allowed)) = (&topology.online, &topology.allowed) {
    ///     println!("this process may run on {} of {} processors", allowed.len(), online.len());
    /// }
    /// ```
    pub fn detect() -> Self {
        let files = if cfg!(any(target_os = "linux", target_os = "android")) {
            Self::from_root("/")
        } else {
            Self::default()
        };
        Self {
            available_parallelism: thread::available_parallelism().ok().map(usize::from),
            ..files
        }
    }

    /// Reads the description of a machine from the directory `root`, which contains copies of Linux's `proc`
    /// and `sys` directories.
    ///
    /// The files do not contain [`available_parallelism`](Self::available_parallelism), so that it is `None`.
    /// A file that is missing or malformed leaves its value out and is no error: containers and older kernels
    /// lack some of them.
    ///
    /// ```
    /// let nowhere = heist::topology::Topology::from_root("/no/such/directory");
    /// assert!(nowhere.online.is_none() && nowhere.caches.is_empty());
    /// ```
    pub fn from_root(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref();
        let online = sysfs::online(root);
        let (packages, caches) = match &online {
            Some(online) => (sysfs::packages(root, online), sysfs::caches(root, online)),
            None => (Vec::new(), Vec::new()),
        };
        Self {
            model: sysfs::model(root),
            online,
            allowed: sysfs::allowed(root),
            quotas: cgroup::quotas(root).ok(),
            available_parallelism: None,
            packages,
            caches,
            nodes: sysfs::nodes(root),
        }
    }

    /// Returns the smallest CPU limit of the control groups, or `None` if there is none or none is known.
    ///
    /// ```
    /// let topology = heist::topology::Topology::detect();
    /// if let Some(quota) = topology.tightest_quota() {
    ///     println!("{} limits the process to {} processors", quota.group, quota.processors);
    /// }
    /// ```
    pub fn tightest_quota(&self) -> Option<&CgroupQuota> {
        self.quotas.as_ref()?.iter().min_by(|a, b| a.processors.total_cmp(&b.processors))
    }

    /// Returns the limit that explains [`available_parallelism`](Self::available_parallelism).
    ///
    /// ```
    /// use heist::topology::{ParallelismLimit, Topology};
    ///
    /// if Topology::detect().limited_by() == ParallelismLimit::Cgroup {
    ///     println!("the container has a CPU limit");
    /// }
    /// ```
    pub fn limited_by(&self) -> ParallelismLimit {
        let Some(available) = self.available_parallelism else { return ParallelismLimit::Unknown };
        let online = self.online.as_ref().map(CpuSet::len);
        let allowed = self.allowed.as_ref().map(CpuSet::len);
        // The standard library rounds a quota down, but to no less than one processor.
        let quota = self.tightest_quota().map(|quota| (quota.processors as usize).max(1));
        if quota == Some(available) && allowed.is_none_or(|allowed| available < allowed) {
            ParallelismLimit::Cgroup
        } else if allowed == Some(available) && online.is_some_and(|online| available < online) {
            ParallelismLimit::Affinity
        } else if online == Some(available) {
            ParallelismLimit::Online
        } else {
            ParallelismLimit::Unknown
        }
    }
}
