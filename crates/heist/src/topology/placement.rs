//! The order in which the workers of a pool get the processors: the first worker gets the first one.
//!
//! Processors are grouped by NUMA node, within a node by the cache that they share, and within a cache by physical core.
//! What the system does not report does not divide: processors of no known node are one node, and those of no known cache
//! are as if they shared one.
//!
//! The allowed processors are the affinity mask of a thread, in which the system lists no processor that is offline. Which
//! processors are online according to the files does not matter: some containers show other numbers there.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{CpuSet, Topology};

/// A processor, and the groups to which it belongs.
struct Site {
    cpu: usize,
    /// The index of its NUMA node. One more than the last index if the system reports none for it.
    node: usize,
    /// The index of the largest cache that it shares with another core, in the same way.
    cache: usize,
    /// The number of allowed processors of the same physical core before this one.
    sibling: usize,
}

impl Topology {
    /// Returns the allowed processors, one node after the other. In a node, one cache comes after the
    /// other. Of those that share a cache, every physical core comes before the second processor of any.
    pub(crate) fn compact(&self, allowed: &CpuSet) -> Vec<usize> {
        let mut sites = self.sites(allowed);
        sites.sort_by_key(|site| (site.node, site.cache, site.sibling, site.cpu));
        sites.iter().map(|site| site.cpu).collect()
    }

    /// Returns the allowed processors, one from each node in turn. In a node, the caches take turns.
    /// Every physical core of the machine comes before the second processor of any.
    pub(crate) fn spread(&self, allowed: &CpuSet) -> Vec<usize> {
        // By sibling, node and cache.
        let mut groups: BTreeMap<_, BTreeMap<_, BTreeMap<_, Vec<_>>>> = BTreeMap::new();
        for site in self.sites(allowed) {
            let nodes = groups.entry(site.sibling).or_default();
            nodes.entry(site.node).or_default().entry(site.cache).or_default().push(site.cpu);
        }
        let of_node = |caches: BTreeMap<_, _>| take_turns(caches.into_values().collect());
        groups
            .into_values()
            .flat_map(|nodes| take_turns(nodes.into_values().map(of_node).collect()))
            .collect()
    }

    fn sites(&self, allowed: &CpuSet) -> Vec<Site> {
        allowed.as_slice().iter().map(|&cpu| self.site(cpu, allowed)).collect()
    }

    fn site(&self, cpu: usize, allowed: &CpuSet) -> Site {
        let cores = || self.packages.iter().flat_map(|package| &package.cores);
        let core = cores().map(|core| &core.cpus).find(|cpus| cpus.contains(cpu));
        let siblings = core.map_or(&[][..], CpuSet::as_slice).iter();
        // Without a known core, any cache of several processors may be a shared one.
        let private = core.map_or(1, CpuSet::len);
        let node = self.nodes.iter().position(|node| node.cpus.contains(cpu));
        // They are ordered by level.
        let cache = self
            .caches
            .iter()
            .rposition(|cache| cache.cpus.contains(cpu) && cache.cpus.len() > private);
        Site {
            cpu,
            node: node.unwrap_or(self.nodes.len()),
            cache: cache.unwrap_or(self.caches.len()),
            sibling: siblings.filter(|&&other| other < cpu && allowed.contains(other)).count(),
        }
    }
}

/// Returns the first of each group, then the second of each, and so on.
fn take_turns(groups: Vec<Vec<usize>>) -> Vec<usize> {
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| groups.iter().filter_map(move |group| group.get(turn)).copied())
        .collect()
}
