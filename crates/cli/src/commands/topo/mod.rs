//! `heist topo`: the machine as the scheduler sees it.

mod json;
mod membarrier;
mod show;
#[cfg(test)]
mod tests;
mod tree;

use std::env;
use std::sync::OnceLock;

use heist::topology::{PhysicalCore, Topology};

use crate::args::{Common, Topo};
use crate::exit::{Exit, Outcome};
use crate::{out, style, units};

/// The machine, and the defaults that heist derives from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overview {
    pub(crate) topology: Topology,
    /// The value of `HEIST_WORKERS`.
    requested: Option<String>,
    /// The default number of workers, or the reason why no pool can be built with it.
    pub(crate) workers: Result<usize, String>,
    /// See [`membarrier`].
    membarrier: Option<bool>,
}

/// Describes this machine. The first call decides; later calls return the same, even if the environment has
/// changed.
pub(crate) fn detect() -> Overview {
    static DETECTED: OnceLock<Overview> = OnceLock::new();
    DETECTED.get_or_init(Overview::detect).clone()
}

pub(crate) fn run(asked: &Topo, common: &Common) -> Outcome {
    let overview = detect();
    let text = if asked.json {
        json::json(&overview)
    } else if common.quiet {
        overview.line() + "\n"
    } else {
        show::text(&overview, style::out())
    };
    out::print(&text)?;
    Ok(Exit::Done)
}

impl Overview {
    fn detect() -> Self {
        Self {
            topology: Topology::detect(),
            requested: env::var_os("HEIST_WORKERS")
                .map(|value| value.to_string_lossy().into_owned()),
            workers: heist::Builder::default_workers().map_err(|error| error.to_string()),
            membarrier: membarrier::is_supported(),
        }
    }

    /// Returns a summary in one line: `2 cores of an AMD EPYC, 1 NUMA node, no cgroup limit; 2 workers`.
    fn line(&self) -> String {
        let workers = self.workers.as_ref().map_or_else(
            |_| "no workers".to_owned(),
            |&workers| units::of(workers as u64, "worker"),
        );
        format!("{}; {workers}", self.machine())
    }

    /// Returns the summary without the number of workers, for commands that choose their own number.
    pub(crate) fn machine(&self) -> String {
        let topology = &self.topology;
        let model = topology
            .model
            .as_ref()
            .map_or_else(String::new, |model| format!(" of {} {model}", article(model)));
        let nodes = match topology.nodes.len() {
            0 => "NUMA nodes unknown".to_owned(),
            count => units::of(count as u64, "NUMA node"),
        };
        let limit = match (topology.tightest_quota(), &topology.quotas) {
            (Some(quota), _) => format!("a cgroup limit of {}", show::processors(quota.processors)),
            (None, Some(_)) => "no cgroup limit".to_owned(),
            (None, None) => "cgroup limits unknown".to_owned(),
        };
        format!("{}{model}, {nodes}, {limit}", self.cores())
    }

    /// Returns `2 cores`, or `1 of 2 cores (affinity)`. Counts processors instead if the cores are unknown,
    /// or if the affinity mask allows some of the processors of every core.
    fn cores(&self) -> String {
        let of = |part: usize, all: usize, what| {
            let part = if part < all { format!("{part} of ") } else { String::new() };
            let why = if part.is_empty() { "" } else { " (affinity)" };
            format!("{part}{}{why}", units::of(all as u64, what))
        };
        let topology = &self.topology;
        let cores = || topology.packages.iter().flat_map(|package| &package.cores);
        let usable = |core: &&PhysicalCore| {
            let allowed = topology.allowed.as_ref();
            let mut cpus = core.cpus.as_slice().iter();
            allowed.is_none_or(|allowed| cpus.any(|&cpu| allowed.contains(cpu)))
        };
        let (part, all) = (cores().filter(usable).count(), cores().count());
        match (&topology.allowed, &topology.online) {
            (Some(allowed), Some(online)) if part == all && allowed.len() < online.len() => {
                of(allowed.len(), online.len(), "processor")
            }
            _ if all > 0 => of(part, all, "core"),
            _ => topology.available_parallelism.map_or_else(
                || "an unknown number of processors".to_owned(),
                |available| of(available, available, "processor"),
            ),
        }
    }
}

/// Chooses the article by the first letter, which is right for AMD, Intel and Apple.
fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) { "an" } else { "a" }
}
