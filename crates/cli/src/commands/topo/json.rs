//! The format of `heist topo --json`. Scripts read it: fields may be added, but keep their names and
//! meanings.

use heist::topology::{
    Cache, CgroupQuota, CpuSet, NumaNode, Package, ParallelismLimit, PhysicalCore,
};
use serde::Serialize;

use super::Overview;

#[derive(Serialize)]
struct Json<'t> {
    model: Option<&'t str>,
    online: Option<&'t [usize]>,
    allowed: Option<&'t [usize]>,
    quotas: Option<Vec<JsonQuota<'t>>>,
    granted: Option<usize>,
    bound_by: &'static str,
    wished: Option<&'t str>,
    workers: NumberOrError<'t>,
    packages: Vec<JsonPackage<'t>>,
    caches: Vec<JsonCache<'t>>,
    nodes: Vec<JsonNode<'t>>,
    fence: Option<bool>,
}

/// The default number of workers, or the reason why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum NumberOrError<'t> {
    Number(usize),
    Error(&'t str),
}

#[derive(Serialize)]
struct JsonQuota<'t> {
    group: &'t str,
    version: u8,
    processors: f64,
}

#[derive(Serialize)]
struct JsonPackage<'t> {
    id: i64,
    cores: Vec<JsonCore<'t>>,
}

#[derive(Serialize)]
struct JsonCore<'t> {
    id: i64,
    cpus: &'t [usize],
}

#[derive(Serialize)]
struct JsonCache<'t> {
    name: String,
    kibibytes: u64,
    cpus: &'t [usize],
}

#[derive(Serialize)]
struct JsonNode<'t> {
    id: usize,
    cpus: &'t [usize],
    memory_kibibytes: Option<u64>,
    distances: &'t [u64],
}

/// Returns the whole description as JSON.
pub(super) fn json(overview: &Overview) -> String {
    let topology = &overview.topology;
    let json = Json {
        model: topology.model.as_deref(),
        online: topology.online.as_ref().map(CpuSet::as_slice),
        allowed: topology.allowed.as_ref().map(CpuSet::as_slice),
        quotas: topology.quotas.as_ref().map(|quotas| quotas.iter().map(quota).collect()),
        granted: topology.available_parallelism,
        bound_by: match topology.limited_by() {
            ParallelismLimit::Online => "online",
            ParallelismLimit::Affinity => "affinity",
            ParallelismLimit::Cgroup => "quota",
            _ => "unknown",
        },
        wished: overview.requested.as_deref(),
        workers: match &overview.workers {
            Ok(workers) => NumberOrError::Number(*workers),
            Err(error) => NumberOrError::Error(error),
        },
        packages: topology.packages.iter().map(package).collect(),
        caches: topology.caches.iter().map(cache).collect(),
        nodes: topology.nodes.iter().map(node).collect(),
        fence: overview.membarrier,
    };
    serde_json::to_string_pretty(&json).expect("no field fails to serialize") + "\n"
}

fn quota(quota: &CgroupQuota) -> JsonQuota<'_> {
    JsonQuota { group: &quota.group, version: quota.version, processors: quota.processors }
}

fn package(package: &Package) -> JsonPackage<'_> {
    JsonPackage { id: package.id, cores: package.cores.iter().map(core).collect() }
}

fn core(core: &PhysicalCore) -> JsonCore<'_> {
    JsonCore { id: core.id, cpus: core.cpus.as_slice() }
}

fn cache(cache: &Cache) -> JsonCache<'_> {
    JsonCache { name: cache.name(), kibibytes: cache.kibibytes, cpus: cache.cpus.as_slice() }
}

fn node(node: &NumaNode) -> JsonNode<'_> {
    JsonNode {
        id: node.id,
        cpus: node.cpus.as_slice(),
        memory_kibibytes: node.memory_kibibytes,
        distances: &node.distances,
    }
}
