//! Clusters: small groups of workers, which share what would be too busy if all workers of a large pool shared it.
//!
//! A cache line that `n` cores write takes each of them `n` transfers. With eight cores that is little compared with a task
//! of a microsecond; with sixty-four it is most of the time. So what workers share is kept once for each cluster, and a
//! worker turns to its own cluster first. A pool of at most eight workers has one cluster, unless
//! they are pinned to several NUMA nodes.
//!
//! A thread belongs to a cluster by its place in the table of threads, where its queues are too. It keeps that place
//! whichever worker's core it holds. As long as no thread waits inside a task, the worker's number is its place.
//!
//! Workers with neighbouring numbers are in the same cluster, unless they are pinned to processors of several NUMA nodes:
//! then a cluster has only workers of one node (`nodes`).

mod nodes;

use crate::sync::{Arc, node_of_thread};

pub(crate) use nodes::NodeMap;
use nodes::Nodes;

/// The largest number of workers in a cluster, unless there would be too many clusters.
pub(crate) const MOST: usize = 8;

/// The largest number of clusters: there is a bit for each in a word, which has two more for other purposes.
pub(crate) const MAX_CLUSTERS: usize = 62;

/// Stands for the place of a thread where there is none.
pub(crate) const NO_PLACE: usize = usize::MAX;

/// How the threads of a pool are divided into clusters, and where these are.
#[derive(Debug, Clone)]
pub(crate) struct Clusters {
    layout: Arc<Layout>,
}

#[derive(Debug)]
struct Layout {
    /// The cluster of each worker.
    of: Box<[u8]>,
    /// The workers of each cluster.
    workers: Box<[Box<[usize]>]>,
    /// The largest number of workers in a cluster.
    size: usize,
    nodes: Nodes,
}

impl Clusters {
    /// Divides the workers by the caches of the machine: as many as share a cache, which is `near`, are a cluster. If more than
    /// eight do, or if the system does not say, they are divided further. `pinned` has the index of the node of each worker, if the
    /// workers are pinned: then no cluster has workers of two nodes.
    pub(crate) fn new(
        workers: usize,
        near: Option<usize>,
        map: NodeMap,
        pinned: Option<&[usize]>,
    ) -> Self {
        #[cfg(shuttle)]
        if crate::sync::has_small_clusters() {
            return Self::of_size(workers, 1);
        }
        let size = near.map_or(MOST, |near| near.div_ceil(near.div_ceil(MOST)));
        match pinned.and_then(|nodes| by_nodes(nodes, size)) {
            None => Self::of_lists(in_order(workers, size), map),
            Some(lists) => {
                let clusters = Self::of_lists(lists, map);
                clusters.note_pinned(pinned.unwrap_or_default());
                clusters
            }
        }
    }

    /// Divides the workers into clusters of that many.
    #[cfg_attr(not(any(test, loom, shuttle)), expect(dead_code, reason = "the layout of tests"))]
    pub(crate) fn of_size(workers: usize, size: usize) -> Self {
        Self::of_lists(in_order(workers, size), NodeMap::unknown())
    }

    fn of_lists(lists: Vec<Box<[usize]>>, map: NodeMap) -> Self {
        let workers = lists.iter().map(|list| list.len()).sum();
        let mut of = vec![0; workers];
        for (cluster, list) in lists.iter().enumerate() {
            list.iter().for_each(|&worker| of[worker] = cluster as u8);
        }
        let size = lists.iter().map(|list| list.len()).max().unwrap_or(0).max(1);
        let nodes = Nodes::new(lists.len(), map);
        let layout = Layout { of: of.into(), workers: lists.into(), size, nodes };
        Self { layout: Arc::new(layout) }
    }

    /// Notes the nodes of workers that are pinned.
    fn note_pinned(&self, nodes: &[usize]) {
        for (list, cluster) in self.layout.workers.iter().zip(0..) {
            self.layout.nodes.note(cluster, |_| nodes[list[0]]);
        }
    }

    /// Returns the number of clusters.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.layout.workers.len()
    }

    /// Returns the number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.layout.of.len()
    }

    /// Returns the largest number of workers in a cluster.
    pub(crate) fn size(&self) -> usize {
        self.layout.size
    }

    /// Returns the cluster of the thread in that place. The places of threads beyond the number of workers are spread over
    /// the clusters.
    #[inline]
    pub(crate) fn of(&self, place: usize) -> usize {
        // A division takes a while, and most pools have one cluster.
        if self.count() == 1 { 0 } else { usize::from(self.layout.of[place % self.workers()]) }
    }

    /// Returns the places of a cluster, of the first `count` places of all.
    pub(crate) fn places_of(&self, cluster: usize, count: usize) -> impl Iterator<Item = usize> {
        let list = &*self.layout.workers[cluster];
        let laps = (0..count).step_by(self.workers().max(1));
        laps.flat_map(move |lap| list.iter().map(move |&worker| lap + worker))
            .filter(move |&place| place < count)
    }

    /// Returns the first place of a cluster.
    pub(crate) fn first_place(&self, cluster: usize) -> usize {
        self.layout.workers[cluster].first().copied().unwrap_or(0)
    }

    /// Returns the cluster that is half the pool away.
    pub(crate) fn opposite(&self, cluster: usize) -> usize {
        (cluster + self.count() / 2) % self.count()
    }

    /// Returns all clusters, from `first` on.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        (first..self.count()).chain(0..first)
    }

    /// Returns whether all clusters are on one NUMA node, as far as the system says.
    #[inline]
    pub(crate) fn on_one_node(&self) -> bool {
        self.count() == 1 || self.layout.nodes.is_one()
    }

    /// Notes that the calling thread, which is that worker, runs on its present node.
    pub(crate) fn note(&self, worker: usize) {
        if self.count() > 1 {
            self.layout.nodes.note(self.of(worker), |map| map.index_of(node_of_thread()));
        }
    }

    /// Returns whether the cluster is on the node with that index.
    pub(crate) fn is_on(&self, cluster: usize, node: usize) -> bool {
        self.layout.nodes.of(cluster) == Some(node)
    }

    /// Returns the index of the node on which the calling thread runs.
    pub(crate) fn node_of_thread(&self) -> usize {
        self.layout.nodes.index_of(node_of_thread())
    }

    /// Returns the number that the system gives the node of a cluster, if it is known and there are several.
    pub(crate) fn node_id(&self, cluster: usize) -> Option<usize> {
        if self.on_one_node() { None } else { self.layout.nodes.id_of(cluster) }
    }

    /// Returns whether the threads in two places are on the same node.
    pub(crate) fn are_near(&self, a: usize, b: usize) -> bool {
        self.on_one_node() || self.are_on_one_node(self.of(a), self.of(b))
    }

    /// Returns whether two clusters are on the same node.
    pub(crate) fn are_on_one_node(&self, a: usize, b: usize) -> bool {
        self.layout.nodes.of(a) == self.layout.nodes.of(b)
    }

    /// Returns all clusters, those of the node of `home` first and those of the farthest node last. Those of each node
    /// begin with another one for each `turn`.
    pub(crate) fn nearest_first(
        &self,
        home: usize,
        turn: usize,
    ) -> impl Iterator<Item = usize> + use<'_> {
        let all = (1 << self.count()) - 1;
        let node = if self.on_one_node() { None } else { self.layout.nodes.of(home) };
        let known = node.map(|node| self.layout.nodes.nearest(node));
        let mut left: u64 = all;
        let known = known.into_iter().flatten().chain([all]);
        known.flat_map(move |of_node| {
            // At the end, those that are on no known node yet.
            let of_node = of_node & left;
            left &= !of_node;
            rotated(of_node, turn)
        })
    }

    /// Returns another cluster to which a worker of `home` turns in its `turn`th look, which may be its own one. It is on
    /// another node once in `interval` turns. Each cluster has its turn.
    pub(crate) fn other(&self, home: usize, turn: usize, interval: usize) -> usize {
        let all: u64 = (1 << self.count()) - 1;
        let node = if self.on_one_node() { None } else { self.layout.nodes.of(home) };
        let here = node.and_then(|node| self.layout.nodes.nearest(node).next()).unwrap_or(all);
        let far = all & !here;
        let (round, at) = (turn / interval, turn % interval);
        let (clusters, turn) = match at {
            _ if far == 0 => (here, turn),
            0 => (far, round),
            _ => (here, round * (interval - 1) + at - 1),
        };
        rotated(clusters, turn).next().unwrap_or(home)
    }
}

/// Returns the bits that are set, as numbers, from the `turn`th one on.
fn rotated(bits: u64, turn: usize) -> impl Iterator<Item = usize> {
    let count = bits.count_ones() as usize;
    let numbers = move || (0..64).filter(move |bit| bits >> bit & 1 == 1);
    let first = turn % count.max(1);
    numbers().skip(first).chain(numbers().take(first))
}

/// Divides workers into clusters of that many, in the order of their numbers.
fn in_order(workers: usize, size: usize) -> Vec<Box<[usize]>> {
    let size = size.max(workers.div_ceil(MAX_CLUSTERS)).max(1);
    let lists =
        (0..workers).step_by(size).map(|first| (first..workers.min(first + size)).collect());
    let lists: Vec<_> = lists.collect();
    if lists.is_empty() { vec![Box::default()] } else { lists }
}

/// Divides workers into clusters of about that many, each on one node. Returns `None` if all are on the same one, or on more
/// of them than there may be clusters.
fn by_nodes(nodes: &[usize], size: usize) -> Option<Vec<Box<[usize]>>> {
    let highest = nodes.iter().copied().max()?;
    let on = |node: usize| (0..nodes.len()).filter(|&worker| nodes[worker] == node).collect();
    let of_nodes: Vec<Vec<usize>> =
        (0..=highest).map(on).filter(|list: &Vec<_>| !list.is_empty()).collect();
    if of_nodes.len() == 1 || of_nodes.len() > MAX_CLUSTERS {
        return None;
    }
    let count = |size: usize| of_nodes.iter().map(|list| list.len().div_ceil(size)).sum::<usize>();
    let size = (size..).find(|&size| count(size) <= MAX_CLUSTERS)?;
    // Those of a node are about equally large.
    let divided = |list: Vec<usize>| {
        let size = list.len().div_ceil(list.len().div_ceil(size));
        list.chunks(size).map(Box::from).collect::<Vec<Box<[usize]>>>()
    };
    Some(of_nodes.into_iter().flat_map(divided).collect())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_worker_is_in_a_cluster() {
        for workers in (1..100).chain([256, 1_000, 0xFFFF]) {
            for size in [1, 3, 8] {
                let clusters = Clusters::of_size(workers, size);
                assert!(clusters.count() <= MAX_CLUSTERS);
                let of_all =
                    (0..clusters.count()).map(|of| clusters.places_of(of, 2 * workers).count());
                assert_eq!(of_all.sum::<usize>(), 2 * workers);
                for worker in 0..workers {
                    let mut places = clusters.places_of(clusters.of(worker), workers);
                    assert!(places.any(|place| place == worker));
                    assert_eq!(clusters.of(worker), worker / clusters.size());
                    assert!(clusters.of(worker) < clusters.count());
                }
            }
        }
    }

    #[test]
    fn a_small_pool_is_one_cluster() {
        assert_eq!(Clusters::new(MOST, None, NodeMap::unknown(), None).count(), 1);
        assert_eq!(Clusters::new(1, None, NodeMap::unknown(), Some(&[0])).of(40), 0);
    }

    #[test]
    fn clusters_are_visited_from_any_one_on() {
        let clusters = Clusters::of_size(24, 8);
        assert_eq!(clusters.of(24), 0, "beyond the number of workers");
        assert_eq!(clusters.from(1).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
