//! The text of `heist topo`.

use heist::topology::{Cache, CpuSet, ParallelismLimit, Topology};

use super::{Overview, tree};
use crate::style::Paint;
use crate::units;

/// The width of the column of names.
const NAME_WIDTH: usize = 17;
/// If there are more caches of one kind, the rest is only counted.
const MAX_CACHES: usize = 8;

/// Returns what `heist topo` prints.
pub(super) fn text(overview: &Overview, paint: Paint) -> String {
    let mut page = Page { text: String::new(), paint };
    page.heading("machine");
    machine(&overview.topology, &mut page);
    page.heading("limits of this process");
    limits(&overview.topology, &mut page);
    page.heading("scheduler");
    scheduler(overview, &mut page);
    page.text
}

struct Page {
    text: String,
    paint: Paint,
}

impl Page {
    fn heading(&mut self, heading: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text += &format!("{gap}{}\n", self.paint.bold(heading));
    }

    fn row(&mut self, name: &str, value: &str) {
        self.text += &format!("  {:<NAME_WIDTH$} {value}\n", self.paint.dim(name));
    }
}

fn machine(topology: &Topology, page: &mut Page) {
    page.row("model", topology.model.as_deref().unwrap_or("unknown"));
    page.row("processors", &counted(topology.online.as_ref(), "online"));
    page.row("packages", &packages(topology));
    caches(topology, page);
    page.row(
        "NUMA",
        &match topology.nodes.len() {
            0 => "unknown: all processors count as one node".to_owned(),
            nodes => units::of(nodes as u64, "node"),
        },
    );
    let stray = processors_of_no_node(topology);
    if !topology.nodes.is_empty() && !stray.is_empty() {
        let text = format!("processors of no known node, which count as one more: {stray}");
        page.row("", &text);
    }
    if topology.nodes.len() > 1 {
        for node in &topology.nodes {
            let distances: Vec<_> =
                node.distances.iter().map(|distance| format!("{distance:>3}")).collect();
            page.row("", &format!("distances from node {:<3} {}", node.id, distances.join(" ")));
        }
    }
    for (index, line) in tree::lines(topology).iter().enumerate() {
        page.row(if index == 0 { "layout" } else { "" }, line);
    }
}

/// Returns the processors that the process may use and that no node has.
fn processors_of_no_node(topology: &Topology) -> CpuSet {
    let allowed = topology.allowed.as_ref().map_or(&[][..], CpuSet::as_slice);
    // The mask of a process often has processors that are not there.
    let is_online = |cpu| topology.online.as_ref().is_none_or(|online| online.contains(cpu));
    let has_node = |cpu| topology.nodes.iter().any(|node| node.cpus.contains(cpu));
    allowed.iter().copied().filter(|&cpu| is_online(cpu) && !has_node(cpu)).collect()
}

fn packages(topology: &Topology) -> String {
    let cores = || topology.packages.iter().flat_map(|package| &package.cores);
    let Some(siblings) = cores().map(|core| core.cpus.len()).max() else {
        return "unknown".to_owned();
    };
    format!(
        "{} with {}, {}",
        units::of(topology.packages.len() as u64, "package"),
        units::of(cores().count() as u64, "core"),
        if siblings > 1 { "with SMT" } else { "no SMT" }
    )
}

/// Adds a row for each kind of cache: how many there are, their size, and the processors that share each.
fn caches(topology: &Topology, page: &mut Page) {
    if topology.caches.is_empty() {
        page.row("caches", "unknown");
    }
    for alike in topology.caches.chunk_by(is_alike) {
        let size = size(alike[0].kibibytes);
        page.row(
            &alike[0].name(),
            &format!("{} x {size:<8} {}", alike.len(), shared(topology, alike)),
        );
    }
}

/// Returns `true` if two caches differ only in their processors.
pub(super) fn is_alike(a: &Cache, b: &Cache) -> bool {
    (a.level, a.kind, a.kibibytes) == (b.level, b.kind, b.kibibytes)
}

fn shared(topology: &Topology, alike: &[Cache]) -> String {
    let cores = || topology.packages.iter().flat_map(|package| &package.cores);
    if alike.iter().all(|cache| cores().any(|core| core.cpus == cache.cpus)) {
        return "one per core".to_owned();
    }
    let mut names: Vec<_> = alike.iter().map(|cache| cache.cpus.to_string()).collect();
    let more = names.len().saturating_sub(MAX_CACHES);
    names.truncate(MAX_CACHES);
    names.join(" | ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn limits(topology: &Topology, page: &mut Page) {
    page.row("affinity", &counted(topology.allowed.as_ref(), "allowed"));
    match topology.quotas.as_deref() {
        None => page.row("cgroup", "unknown"),
        Some([]) => page.row("cgroup", "no limit"),
        Some(quotas) => {
            for quota in quotas {
                let limit = format!(
                    "at most {}, set by group {} (version {})",
                    processors(quota.processors),
                    quota.group,
                    quota.version
                );
                page.row("cgroup", &limit);
            }
        }
    }
    let why = match topology.limited_by() {
        ParallelismLimit::Online => "all that are online",
        ParallelismLimit::Affinity => "limited by the affinity mask",
        ParallelismLimit::Cgroup => "limited by the cgroup, rounded down to whole processors",
        _ => "the system does not report which limit applies",
    };
    let available = topology.available_parallelism.map_or_else(
        || "unknown".to_owned(),
        |available| format!("{}: {why}", units::of(available as u64, "processor")),
    );
    page.row("available", &available);
}

fn scheduler(overview: &Overview, page: &mut Page) {
    page.row("HEIST_WORKERS", overview.requested.as_deref().unwrap_or("not set"));
    let workers = match (&overview.workers, &overview.requested) {
        (Err(error), _) => page.paint.bad(error).to_string(),
        (Ok(workers), Some(_)) => format!("{workers}, from HEIST_WORKERS"),
        (Ok(workers), None) => format!("{workers}, one per available processor"),
    };
    page.row("default workers", &workers);
    page.row("steal victims", "chosen at random; halves of joins on the own node first, if pinned");
    page.row("NUMA", "used for workers pinned by `Builder::pin`; memory is not placed");
    let fence = match overview.membarrier {
        Some(true) => "membarrier: a join that no other worker takes part in needs no fence",
        Some(false) => "no membarrier: other workers find the halves of joins later",
        None => "none that reaches other threads: other workers find the halves of joins later",
    };
    page.row("fence", fence);
}

fn counted(cpus: Option<&CpuSet>, how: &str) -> String {
    cpus.map_or_else(|| "unknown".to_owned(), |cpus| format!("{} {how}: {cpus}", cpus.len()))
}

/// Formats a fractional number of processors: `1 processor`, `1.5 processors`.
pub(super) fn processors(count: f64) -> String {
    let text = format!("{count:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} processor{}", if text == "1" { "" } else { "s" })
}

/// Formats a size in memory: `32 KiB`, `1.5 MiB`, `23.4 GiB`.
pub(super) fn size(kibibytes: u64) -> String {
    let (value, unit) = match kibibytes {
        0..1024 => return format!("{kibibytes} KiB"),
        1024..1_048_576 => (kibibytes as f64 / 1024.0, "MiB"),
        _ => (kibibytes as f64 / 1_048_576.0, "GiB"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}
