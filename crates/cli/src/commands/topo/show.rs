//! The machine in words.

use super::cpus::Cpus;
use super::machine::Cache;
use super::{Bound, Topology, tree};
use crate::style::Paint;
use crate::units;

/// The column where values begin.
const COLUMN: usize = 17;
/// More caches than these are only counted.
const NAMED: usize = 8;

/// What `heist topo` prints.
pub(super) fn text(topology: &Topology, paint: Paint) -> String {
    let mut page = Page { text: String::new(), paint };
    page.heading("the machine");
    machine(topology, &mut page);
    page.heading("what this process may use");
    limits(topology, &mut page);
    page.heading("what heist makes of it");
    scheduler(topology, &mut page);
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
        self.text += &format!("  {:<COLUMN$} {value}\n", self.paint.dim(name));
    }
}

fn machine(topology: &Topology, page: &mut Page) {
    page.row("model", topology.model.as_deref().unwrap_or("unknown"));
    page.row("processors", &counted(topology.online.as_ref(), "online"));
    let cores: usize = topology.packages.iter().map(|package| package.cores.len()).sum();
    let packages = match cores {
        0 => "unknown".to_owned(),
        _ => {
            let threads = topology
                .packages
                .iter()
                .flat_map(|package| &package.cores)
                .map(|core| core.cpus.count())
                .max();
            let siblings =
                if threads > Some(1) { ", with siblings (SMT)" } else { ", no siblings (SMT)" };
            format!(
                "{} with {}{siblings}",
                units::of(topology.packages.len() as u64, "package"),
                units::of(cores as u64, "core")
            )
        }
    };
    page.row("packages", &packages);
    caches(topology, page);
    page.row(
        "NUMA",
        &if topology.nodes.is_empty() {
            "unknown".to_owned()
        } else {
            units::of(topology.nodes.len() as u64, "node")
        },
    );
    if topology.nodes.len() > 1 {
        for node in &topology.nodes {
            let distances: Vec<_> =
                node.distances.iter().map(|distance| format!("{distance:>3}")).collect();
            page.row(
                "",
                &format!("node {:<3} is at {} from the others", node.id, distances.join(" ")),
            );
        }
    }
    for (place, line) in tree::lines(topology).iter().enumerate() {
        page.row(if place == 0 { "picture" } else { "" }, line);
    }
}

/// Of each kind how many, how large, and who shares each.
fn caches(topology: &Topology, page: &mut Page) {
    if topology.caches.is_empty() {
        page.row("caches", "unknown");
    }
    for alike in topology.caches.chunk_by(|a, b| (&a.name, a.kibibytes) == (&b.name, b.kibibytes)) {
        let size = size(alike[0].kibibytes);
        page.row(
            &alike[0].name,
            &format!("{} x {size:<8} {}", alike.len(), shared(topology, alike)),
        );
    }
}

fn shared(topology: &Topology, alike: &[Cache]) -> String {
    let cores = || topology.packages.iter().flat_map(|package| &package.cores);
    if alike.iter().all(|cache| cores().any(|core| core.cpus == cache.cpus)) {
        return "one for each core".to_owned();
    }
    let mut names: Vec<_> = alike.iter().map(|cache| cache.cpus.to_string()).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    names.join(" | ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn limits(topology: &Topology, page: &mut Page) {
    page.row("affinity", &counted(topology.allowed.as_ref(), "allowed"));
    match topology.quotas.as_deref() {
        None => page.row("cgroup", "unknown"),
        Some([]) => page.row("cgroup", "no limit"),
        Some(quotas) => {
            for quota in quotas {
                let time = format!(
                    "time of {}, by {} (version {})",
                    processors(quota.processors),
                    quota.group,
                    quota.version
                );
                page.row("cgroup", &time);
            }
        }
    }
    let why = match topology.bound_by {
        Bound::Online => "there are no more",
        Bound::Affinity => "because of the affinity mask",
        Bound::Quota => "because of the cgroup limit, in whole processors",
        Bound::Unknown => "the system does not say why",
    };
    let granted = topology.granted.map_or_else(
        || "unknown".to_owned(),
        |granted| format!("{}: {why}", units::of(granted as u64, "processor")),
    );
    page.row("granted", &granted);
}

fn scheduler(topology: &Topology, page: &mut Page) {
    page.row("HEIST_WORKERS", topology.wished.as_deref().unwrap_or("not set"));
    let workers = match (&topology.workers, &topology.wished) {
        (Err(why), _) => page.paint.bad(why).to_string(),
        (Ok(workers), Some(_)) => format!("{workers}, as HEIST_WORKERS says"),
        (Ok(workers), None) => format!("{workers}, one for each processor that is granted"),
    };
    page.row("workers", &workers);
    page.row("victims", "at random, near or far");
    page.row("nodes", "not used yet: no thread is pinned, no memory is placed");
    let fence = match topology.fence {
        Some(true) => "membarrier: a join that nobody takes part in needs no fence",
        Some(false) => "no membarrier: halves of joins are found later",
        None => "none that reaches other threads: halves of joins are found later",
    };
    page.row("fence", fence);
}

fn counted(cpus: Option<&Cpus>, how: &str) -> String {
    cpus.map_or_else(|| "unknown".to_owned(), |cpus| format!("{} {how}: {cpus}", cpus.count()))
}

/// `1 processor`, `1.5 processors`.
pub(super) fn processors(count: f64) -> String {
    // Two places, but only if they say something.
    let text = format!("{count:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} processor{}", if text == "1" { "" } else { "s" })
}

/// `32 KiB`, `1.5 MiB`, `23.4 GiB`.
pub(super) fn size(kibibytes: u64) -> String {
    let (value, unit) = match kibibytes {
        0..1024 => return format!("{kibibytes} KiB"),
        1024..1_048_576 => (kibibytes as f64 / 1024.0, "MiB"),
        _ => (kibibytes as f64 / 1_048_576.0, "GiB"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}
