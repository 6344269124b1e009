//! On which NUMA node each cluster is, and which nodes are near each other.
//!
//! If the workers are pinned, the clusters are made such that each is on one node, and all nodes are known when the pool is
//! built. Otherwise the node of a cluster is the one on which a worker of it first ran. That is right for as long as the
//! system keeps the threads there; it only says where to look first.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The NUMA nodes of a machine in the order of their distance from each other. There is one more for what the system says
/// nothing of, which is the last one and the farthest from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeMap {
    /// The numbers that the system gives the nodes.
    ids: Vec<usize>,
    /// For each node all nodes, itself first and the farthest last.
    nearest: Vec<Box<[usize]>>,
}

impl NodeMap {
    /// Returns the map of a machine of which nothing is known: all of it is one node.
    pub(crate) fn unknown() -> Self {
        Self::new(&[])
    }

    /// Returns the map of these nodes: the number of each, and its distance to each, in the same order. A distance that is
    /// missing is a long one.
    pub(crate) fn new(nodes: &[(usize, &[u64])]) -> Self {
        let count = nodes.len();
        let distance = |from: usize, to: usize| match nodes.get(from) {
            _ if from == to => 0,
            // The system's numbers begin at ten for a node itself. One that is not above that is an error in the tables
            // of the machine, and must not put another node before the own one.
            Some((_, distances)) => distances.get(to).map_or(u64::MAX, |&far| far.max(1)),
            None => u64::MAX,
        };
        let nearest = |from: usize| {
            // Nodes that are equally far come in another order for each node, so that not all go to the same one.
            let mut order: Vec<usize> = (from..=count).chain(0..from).collect();
            order.sort_by_key(|&to| (distance(from, to), to == count && from != count));
            order.into_boxed_slice()
        };
        Self {
            ids: nodes.iter().map(|(id, _)| *id).collect(),
            nearest: (0..=count).map(nearest).collect(),
        }
    }

    /// Returns the number of nodes, with the one for what is unknown.
    fn len(&self) -> usize {
        self.nearest.len()
    }

    /// Returns the index of the node with this number.
    pub(crate) fn index_of(&self, id: usize) -> usize {
        self.ids.iter().position(|&of| of == id).unwrap_or(self.ids.len())
    }

    /// Returns the number that the system gives a node, or `None` for the node of what is unknown.
    fn id_of(&self, index: usize) -> Option<usize> {
        self.ids.get(index).copied()
    }
}

/// Where the clusters of a pool are.
#[derive(Debug)]
pub(super) struct Nodes {
    map: NodeMap,
    /// One more than the index of the node of each cluster; zero if no worker of it has run yet.
    ///
    /// Ordering: relaxed, for both fields. They only say what is better.
    homes: Box<[AtomicUsize]>,
    /// The clusters of each node, a bit for each.
    here: Box<[AtomicU64]>,
}

impl Nodes {
    /// Returns clusters of which nothing is known yet.
    pub(super) fn new(clusters: usize, map: NodeMap) -> Self {
        Self {
            homes: (0..clusters).map(|_| AtomicUsize::new(0)).collect(),
            here: (0..map.len()).map(|_| AtomicU64::new(0)).collect(),
            map,
        }
    }

    /// Returns whether there is nothing to choose: the machine has one node.
    #[inline(always)]
    pub(super) fn is_one(&self) -> bool {
        // One that is known, and the one for what is unknown.
        self.here.len() <= 2
    }

    /// Returns the node of a cluster, if it is known yet.
    #[inline]
    pub(super) fn of(&self, cluster: usize) -> Option<usize> {
        self.homes[cluster].load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns the number that the system gives the node of a cluster.
    pub(super) fn id_of(&self, cluster: usize) -> Option<usize> {
        self.map.id_of(self.of(cluster)?)
    }

    /// Notes the node of a cluster, unless one was noted before. `node` returns its index.
    pub(super) fn note(&self, cluster: usize, node: impl FnOnce(&NodeMap) -> usize) {
        let home = &self.homes[cluster];
        if home.load(Ordering::Relaxed) != 0 {
            return;
        }
        let node = node(&self.map);
        // Two workers of a cluster may begin at once, on different nodes.
        if home.compare_exchange(0, node + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.here[node].fetch_or(1 << cluster, Ordering::Relaxed);
        }
    }

    /// Returns the clusters of each node as bits, those of that node first and those of the farthest last.
    pub(super) fn nearest(&self, node: usize) -> impl Iterator<Item = u64> {
        self.map.nearest[node].iter().map(|&of| self.here[of].load(Ordering::Relaxed))
    }

    /// Returns the index of the node with this number.
    pub(super) fn index_of(&self, id: usize) -> usize {
        self.map.index_of(id)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn orders(nodes: &[(usize, &[u64])]) -> Vec<Vec<usize>> {
        NodeMap::new(nodes).nearest.iter().map(|order| order.to_vec()).collect()
    }

    #[test]
    fn one_node_or_none_leaves_nothing_to_choose() {
        for map in [NodeMap::unknown(), NodeMap::new(&[(3, &[10])])] {
            assert!(Nodes::new(4, map).is_one());
        }
        assert!(!Nodes::new(4, NodeMap::new(&[(0, &[10, 21]), (1, &[21, 10])])).is_one());
    }

    #[test]
    fn nodes_are_ordered_by_distance() {
        let square: [(usize, &[u64]); 4] = [
            (0, &[10, 16, 32, 16]),
            (1, &[16, 10, 16, 32]),
            (4, &[32, 16, 10, 16]),
            (5, &[16, 32, 16, 10]),
        ];
        let expected = [[0, 1, 3, 2, 4], [1, 2, 0, 3, 4], [2, 3, 1, 0, 4], [3, 0, 2, 1, 4]];
        assert_eq!(orders(&square)[..4], expected);
        let map = NodeMap::new(&square);
        assert_eq!([0, 1, 4, 5, 2].map(|id| map.index_of(id)), [0, 1, 2, 3, 4]);
        assert_eq!((map.id_of(2), map.id_of(4)), (Some(4), None));
    }

    /// What the system says of distances may be missing, or too small.
    #[test]
    fn the_own_node_is_first_whatever_the_distances() {
        for distances in [&[][..], &[0, 0, 0], &[10], &[99, 10, 10]] {
            let orders = orders(&[(0, distances), (1, distances), (2, distances)]);
            for (node, order) in orders.iter().enumerate() {
                assert_eq!(order[0], node, "{distances:?}");
                let mut all = order.clone();
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2, 3], "each once");
            }
        }
    }

    #[test]
    fn the_first_node_of_a_cluster_stays() {
        let nodes = Nodes::new(3, NodeMap::new(&[(0, &[10, 21]), (1, &[21, 10])]));
        nodes.note(2, |map| map.index_of(1));
        nodes.note(2, |map| map.index_of(0));
        nodes.note(0, |map| map.index_of(0));
        assert_eq!((nodes.id_of(2), nodes.id_of(0), nodes.id_of(1)), (Some(1), Some(0), None));
        assert_eq!(nodes.nearest(1).collect::<Vec<_>>(), [0b100, 0b001, 0]);
    }
}
