//! `heist topo`: the machine as the scheduler sees it.

mod cgroup;
mod cpus;
mod fence;
mod machine;
mod show;
mod tree;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::OnceLock;
use std::{env, thread};

use serde::{Serialize, Serializer};

use crate::args::{Common, Topo};
use crate::exit::{Exit, Outcome};
use crate::{out, style, units};
use cgroup::Quota;
use cpus::Cpus;
use machine::{Cache, Core, Node, Package};

/// What is known of the machine, and of what the process gets of it. What is not known is `None`, or empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Topology {
    /// The model of the processors.
    pub(crate) model: Option<String>,
    pub(crate) online: Option<Cpus>,
    /// Those of the affinity mask.
    pub(crate) allowed: Option<Cpus>,
    /// Of the process's control groups, the innermost first.
    pub(crate) quotas: Option<Vec<Quota>>,
    /// How many processors the system grants the process.
    pub(crate) granted: Option<usize>,
    /// What keeps it from being more.
    pub(crate) bound_by: Bound,
    /// What `HEIST_WORKERS` says.
    pub(crate) wished: Option<String>,
    /// How many workers a pool has that was not told, or why there is no such pool.
    #[serde(serialize_with = "number_or_text")]
    pub(crate) workers: Result<usize, String>,
    pub(crate) packages: Vec<Package>,
    pub(crate) caches: Vec<Cache>,
    pub(crate) nodes: Vec<Node>,
    /// Can the system have other threads pass a fence?
    pub(crate) fence: Option<bool>,
}

/// Which limit decides how many processors the process is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// There are no more.
    Online,
    Affinity,
    Quota,
    Unknown,
}

/// What the process is told, other than by files.
struct Told {
    granted: Option<usize>,
    wished: Option<String>,
    workers: Result<usize, String>,
    fence: Option<bool>,
}

/// Looks once; later calls have the same answer, whatever the environment says by then.
pub(crate) fn detect() -> Topology {
    static SEEN: OnceLock<Topology> = OnceLock::new();
    SEEN.get_or_init(|| Topology::read(Path::new("/"), Told::ask())).clone()
}

pub(crate) fn run(asked: &Topo, common: &Common) -> Outcome {
    let topology = detect();
    let text = if asked.json {
        let json =
            serde_json::to_string_pretty(&topology).expect("keys are texts, and no map fails");
        json + "\n"
    } else if common.quiet {
        topology.line() + "\n"
    } else {
        show::text(&topology, style::out())
    };
    out::print(&text)?;
    Ok(Exit::Done)
}

impl Told {
    fn ask() -> Self {
        Self {
            granted: thread::available_parallelism().ok().map(usize::from),
            wished: env::var_os("HEIST_WORKERS").map(|value| value.to_string_lossy().into_owned()),
            // Nobody knows better than such a pool. It has nothing to tell a trace.
            workers: heist::Pool::builder()
                .trace(0)
                .build()
                .map(|pool| pool.workers())
                .map_err(|error| error.to_string()),
            fence: fence::there(),
        }
    }
}

impl Topology {
    /// From the files below a directory, which is `/` but for tests.
    fn read(root: &Path, told: Told) -> Self {
        let online = machine::online(root);
        let (packages, caches) = match &online {
            Some(online) => (machine::packages(root, online), machine::caches(root, online)),
            None => (Vec::new(), Vec::new()),
        };
        let mut topology = Self {
            model: machine::model(root),
            online,
            allowed: machine::allowed(root),
            quotas: cgroup::quotas(root),
            granted: told.granted,
            bound_by: Bound::Unknown,
            wished: told.wished,
            workers: told.workers,
            packages,
            caches,
            nodes: machine::nodes(root),
            fence: told.fence,
        };
        topology.bound_by = topology.bound();
        topology
    }

    fn tightest(&self) -> Option<&Quota> {
        cgroup::tightest(self.quotas.as_ref()?)
    }

    /// Compares what is granted with what each limit would leave.
    fn bound(&self) -> Bound {
        let Some(granted) = self.granted else { return Bound::Unknown };
        let count = |cpus: &Option<Cpus>| cpus.as_ref().map(Cpus::count);
        // The standard library rounds down, to no less than one.
        let whole = self.tightest().map(|quota| (quota.processors as usize).max(1));
        match (count(&self.allowed), count(&self.online)) {
            (allowed, _)
                if whole == Some(granted) && allowed.is_none_or(|allowed| granted < allowed) =>
            {
                Bound::Quota
            }
            (Some(allowed), Some(online)) if allowed == granted && granted < online => {
                Bound::Affinity
            }
            (_, Some(online)) if online == granted => Bound::Online,
            _ => Bound::Unknown,
        }
    }

    /// All of it in a line: `2 cores of an AMD EPYC, 1 NUMA node, no cgroup limit; 2 workers`.
    fn line(&self) -> String {
        let workers = self.workers.as_ref().map_or_else(
            |_| "no workers".to_owned(),
            |&workers| units::of(workers as u64, "worker"),
        );
        format!("{}; {workers}", self.place())
    }

    /// The line without the workers, for those that have their own.
    pub(crate) fn place(&self) -> String {
        let model = self
            .model
            .as_ref()
            .map_or_else(String::new, |model| format!(" of {} {model}", article(model)));
        let nodes = match self.nodes.len() {
            0 => "NUMA nodes unknown".to_owned(),
            count => units::of(count as u64, "NUMA node"),
        };
        let limit = match (self.tightest(), &self.quotas) {
            (Some(quota), _) => format!("a cgroup limit of {}", show::processors(quota.processors)),
            (None, Some(_)) => "no cgroup limit".to_owned(),
            (None, None) => "cgroup limits unknown".to_owned(),
        };
        format!("{}{model}, {nodes}, {limit}", self.cores())
    }

    /// `2 cores`, or `1 of 2 cores (affinity)`; in processors, if the cores are not known or all of them may be used in part.
    fn cores(&self) -> String {
        let of = |part: usize, all: usize, what| {
            let part = if part < all { format!("{part} of ") } else { String::new() };
            let why = if part.is_empty() { "" } else { " (affinity)" };
            format!("{part}{}{why}", units::of(all as u64, what))
        };
        let cores = || self.packages.iter().flat_map(|package| &package.cores);
        let usable = |core: &&Core| {
            let allowed = self.allowed.as_ref();
            allowed
                .is_none_or(|allowed| core.cpus.numbers().iter().any(|&cpu| allowed.contains(cpu)))
        };
        let (part, all) = (cores().filter(usable).count(), cores().count());
        match (&self.allowed, &self.online) {
            (Some(allowed), Some(online)) if part == all && allowed.count() < online.count() => {
                of(allowed.count(), online.count(), "processor")
            }
            _ if all > 0 => of(part, all, "core"),
            _ => self.granted.map_or_else(
                || "an unknown number of processors".to_owned(),
                |granted| of(granted, granted, "processor"),
            ),
        }
    }
}

/// By the first letter, which is right for AMD, Intel and Apple.
fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) { "an" } else { "a" }
}

fn number_or_text<S: Serializer>(
    workers: &Result<usize, String>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match workers {
        Ok(workers) => workers.serialize(to),
        Err(why) => why.serialize(to),
    }
}
