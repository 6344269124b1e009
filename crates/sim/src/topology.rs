//! How far apart the cores of a machine are, in the form that the cache lines ask.

use crate::core_set::{Core, CoreSet};
use crate::costs::{Picos, picos};
use crate::machine::Machine;
use crate::thread::Node;

/// The distances between the cores of a machine.
#[derive(Debug)]
pub(crate) struct Topology {
    cluster: Vec<u16>,
    node: Vec<u16>,
    cluster_transfer: Picos,
    node_transfer: Vec<Vec<Picos>>,
    cluster_cores: Vec<CoreSet>,
    /// The cores of each node.
    node_cores: Vec<CoreSet>,
}

impl Topology {
    pub(crate) fn new(machine: &Machine) -> Self {
        let per_cluster = machine.cores_per_cluster;
        let per_node = per_cluster * machine.clusters_per_node;
        let count = machine.cores();
        let group = |size: usize| (0..count).map(move |core| (core / size) as u16).collect();
        let cores = |size: usize| {
            (0..count / size)
                .map(|group| (group * size..(group + 1) * size).map(|core| core as Core).collect())
                .collect()
        };
        let row = |row: &Vec<f64>| row.iter().copied().map(picos).collect();
        Self {
            cluster: group(per_cluster),
            node: group(per_node),
            cluster_transfer: picos(machine.cluster_transfer),
            node_transfer: machine.node_transfer.iter().map(row).collect(),
            cluster_cores: cores(per_cluster),
            node_cores: cores(per_node),
        }
    }

    pub(crate) fn cores(&self) -> usize {
        self.cluster.len()
    }

    /// Returns the node of a core.
    pub(crate) fn node(&self, core: Core) -> usize {
        usize::from(self.node[usize::from(core)])
    }

    /// Returns each node with its cores and its distances, in tenths of a transfer within the node.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let node = |(node, transfers): (usize, &Vec<Picos>)| {
            let own = transfers[node].max(1);
            let distances = transfers.iter().map(|&transfer| transfer * 10 / own).collect();
            let cores = (0..self.cores()).filter(|&core| usize::from(self.node[core]) == node);
            (node, cores.collect(), distances)
        };
        self.node_transfer.iter().enumerate().map(node).collect()
    }

    /// Returns the number of cores in a cluster, if a node has several.
    pub(crate) fn cores_of_a_cache(&self) -> Option<usize> {
        let cores = self.cluster.iter().filter(|&&cluster| cluster == 0).count();
        (self.cluster_cores.len() > self.node_cores.len()).then_some(cores)
    }

    /// Returns the time to move a line from one core to another.
    #[inline]
    pub(crate) fn transfer(&self, from: Core, to: Core) -> Picos {
        let (from, to) = (usize::from(from), usize::from(to));
        if self.cluster[from] == self.cluster[to] {
            self.cluster_transfer
        } else {
            self.node_transfer[usize::from(self.node[from])][usize::from(self.node[to])]
        }
    }

    /// Returns the time to move a line to this core from the nearest of a set.
    pub(crate) fn nearest(&self, sharers: &CoreSet, to: Core) -> Picos {
        let to = usize::from(to);
        if sharers.meets(&self.cluster_cores[usize::from(self.cluster[to])]) {
            return self.cluster_transfer;
        }
        self.by_node(sharers, to).min().unwrap_or(0)
    }

    /// Returns the time until the farthest of a set has heard from this core.
    pub(crate) fn farthest(&self, sharers: &CoreSet, from: Core) -> Picos {
        self.by_node(sharers, usize::from(from)).max().unwrap_or(0)
    }

    fn by_node(&self, sharers: &CoreSet, core: usize) -> impl Iterator<Item = Picos> {
        let row = &self.node_transfer[usize::from(self.node[core])];
        let has = |(_, cores): &(usize, &CoreSet)| sharers.meets(cores);
        self.node_cores.iter().enumerate().filter(has).map(|(node, _)| row[node])
    }

    /// Returns the cores of this core's cluster, then those of its node, then all.
    pub(crate) fn neighbourhoods(&self, core: Core) -> [CoreSet; 3] {
        let core = usize::from(core);
        [
            self.cluster_cores[usize::from(self.cluster[core])],
            self.node_cores[usize::from(self.node[core])],
            (0..self.cores()).map(|core| core as Core).collect(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Topology {
        Topology::new(&Machine::shipped("server-2x64").expect("a machine that is shipped"))
    }

    fn set(cores: &[Core]) -> CoreSet {
        cores.iter().copied().collect()
    }

    #[test]
    fn a_transfer_takes_longer_between_clusters_and_longer_still_between_sockets() {
        let server = server();
        assert_eq!(server.transfer(0, 7), 23_000);
        assert_eq!(server.transfer(0, 8), 107_000);
        assert_eq!(server.transfer(0, 64), 197_000);
        assert_eq!(server.transfer(127, 120), 23_000);
    }

    #[test]
    fn a_read_comes_from_the_nearest_sharer_and_a_write_waits_for_the_farthest() {
        let server = server();
        let sharers = set(&[3, 60, 100]);
        assert_eq!(server.nearest(&sharers, 0), 23_000);
        assert_eq!(server.nearest(&sharers, 70), 107_000);
        assert_eq!(server.farthest(&sharers, 0), 197_000);
        assert_eq!(server.farthest(&set(&[60]), 0), 107_000);
    }

    #[test]
    fn nodes_have_their_cores_and_distances() {
        let nodes = server().nodes();
        let expected =
            [(0, (0..64).collect(), vec![10, 18]), (1, (64..128).collect(), vec![18, 10])];
        assert_eq!(nodes, expected);
    }

    #[test]
    fn neighbourhoods_grow_from_the_cluster_to_the_machine() {
        let [cluster, node, all] = server().neighbourhoods(9);
        assert_eq!((cluster.len(), node.len(), all.len()), (8, 64, 128));
        assert!(cluster.contains(15) && !cluster.contains(16));
    }
}
