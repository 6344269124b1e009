//! How the workers of a pool are divided into clusters, by the caches and the NUMA nodes of the machine.

use crate::cluster::{Clusters, MOST, NodeMap};
use crate::topology::NumaNode;
use crate::worker::pin::Pins;

/// Divides the workers into clusters. `cache` returns how many processors share a cache, and `nodes` the NUMA nodes of the
/// machine; they are called only if that matters.
pub(crate) fn divide(
    workers: usize,
    pins: Option<&Pins>,
    cache: impl FnOnce() -> Option<usize>,
    nodes: impl FnOnce() -> Vec<NumaNode>,
) -> Clusters {
    if workers <= MOST && pins.is_none() {
        return Clusters::new(workers, None, NodeMap::unknown(), None);
    }
    let nodes = nodes();
    let known: Vec<_> = nodes.iter().map(|node| (node.id, &*node.distances)).collect();
    let node_of = |processor: Option<usize>| {
        let is_there = |node: &NumaNode| processor.is_some_and(|cpu| node.cpus.contains(cpu));
        // Processors of no known node are one more node.
        nodes.iter().position(is_there).unwrap_or(nodes.len())
    };
    let pinned: Option<Vec<_>> =
        pins.map(|pins| (0..workers).map(|worker| node_of(pins.processor_of(worker))).collect());
    let near = if workers > MOST { cache() } else { None };
    Clusters::new(workers, near, NodeMap::new(&known), pinned.as_deref())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use heist_testkit::machine::{Root, machine};

    use super::*;
    use crate::sync::Mask;
    use crate::topology::Topology;

    /// Returns the index of the node of each worker, and how the workers are divided, if they are pinned to these processors.
    fn pinned(root: &Root, workers: usize, processors: &[usize]) -> (Vec<usize>, Clusters) {
        let nodes = Topology::from_root(root.path()).nodes;
        let of = |worker: usize| {
            let cpu = processors[worker % processors.len()];
            nodes.iter().position(|node| node.cpus.contains(cpu)).unwrap_or(nodes.len())
        };
        let pins = Pins::new(Mask::only(0), processors);
        ((0..workers).map(of).collect(), divide(workers, Some(&pins), || None, || nodes.clone()))
    }

    /// Asserts that every worker is in one cluster and no cluster is on two nodes, and that a look for work goes to every
    /// cluster once, those of the own node first.
    fn assert_divided(nodes: &[usize], clusters: &Clusters) {
        let lists: Vec<Vec<usize>> = (0..clusters.count())
            .map(|cluster| clusters.places_of(cluster, nodes.len()).collect())
            .collect();
        let mut all = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (0..nodes.len()).collect::<Vec<_>>());
        for (cluster, list) in lists.iter().enumerate() {
            assert!(list.len() <= clusters.size() && clusters.first_place(cluster) == list[0]);
            for &worker in list {
                assert_eq!((clusters.of(worker), nodes[worker]), (cluster, nodes[list[0]]));
            }
            let node = |of: usize| nodes[clusters.first_place(of)];
            let order: Vec<usize> = clusters.nearest_first(cluster, 5).collect();
            let near = lists.iter().filter(|list| nodes[list[0]] == node(cluster)).count();
            let is_near = |&of: &usize| node(of) == node(cluster);
            assert!(order[..near].iter().all(is_near) && !order[near..].iter().any(is_near));
            let mut all = order;
            all.sort_unstable();
            assert_eq!(all, (0..clusters.count()).collect::<Vec<_>>(), "each once");
        }
    }

    /// Pins workers in all three orders.
    fn assert_orders(root: &Root, workers: usize) -> Vec<Clusters> {
        let topology = Topology::from_root(root.path());
        let allowed = topology.allowed.clone().expect("a mask");
        let in_order = allowed.as_slice().to_vec();
        let orders = [in_order, topology.compact(&allowed), topology.spread(&allowed)];
        let divided = |order: &Vec<usize>| {
            let (nodes, clusters) = pinned(root, workers, order);
            assert_divided(&nodes, &clusters);
            clusters
        };
        orders.iter().map(divided).collect()
    }

    fn counts(clusters: &[Clusters]) -> Vec<usize> {
        clusters.iter().map(Clusters::count).collect()
    }

    #[test]
    fn one_node_is_divided_as_without_pins() {
        for clusters in assert_orders(&machine("0 1 2 3"), 3) {
            assert!(clusters.count() == 1 && clusters.on_one_node());
        }
        let (_, clusters) = pinned(&machine("0 1 2 3"), 20, &[0, 1, 2, 3]);
        assert!(clusters.on_one_node() && clusters.node_id(0).is_none());
        assert_eq!(clusters.of(19), Clusters::new(20, None, NodeMap::unknown(), None).of(19));
    }

    #[test]
    fn a_cluster_is_on_one_of_two_four_or_eight_nodes() {
        let two = machine("0 1 2 3 4 5 | 6 7 8 9 10 11");
        assert_eq!(counts(&assert_orders(&two, 12)), [2, 2, 2], "twelve workers, six on each");
        assert_eq!(counts(&assert_orders(&two, 4)), [1, 1, 2], "spread over both");
        let four = machine("0 4 | 1 5 | 2 6 | 3 7");
        assert_eq!(counts(&assert_orders(&four, 8)), [4, 4, 4]);
        assert_eq!(counts(&assert_orders(&four, 3)), [3, 2, 3]);
        let eight = machine("0 1 | 2 3 | 4 5 | 6 7 | 8 9 | 10 11 | 12 13 | 14 15");
        assert_eq!(counts(&assert_orders(&eight, 16)), [8, 8, 8]);
        // Each processor has several workers.
        assert_eq!(counts(&assert_orders(&eight, 160)), [24, 24, 24]);
    }

    #[test]
    fn nodes_of_different_sizes() {
        let root = machine("0 | 1 2 3 4 5 6 7 8 9 10 11 12 | - | 13 14");
        assert_eq!(counts(&assert_orders(&root, 15)), [4, 4, 4], "1 + 12 + 2 workers");
    }

    /// The nearest of the other nodes come before those that are farther.
    #[test]
    fn nodes_are_visited_by_their_distances() {
        let ring = ["10 16 32 16", "16 10 16 32", "32 16 10 16", "16 32 16 10"];
        let mut root = machine("0 1 | 2 3 | 4 5 | 6 7");
        for (node, distances) in ring.into_iter().enumerate() {
            root = root.file(&format!("sys/devices/system/node/node{node}/distance"), distances);
        }
        let (_, clusters) = pinned(&root, 8, &(0..8).collect::<Vec<_>>());
        let order = |home| clusters.nearest_first(home, 0).collect::<Vec<_>>();
        let (first, third) = (order(0), order(2));
        assert_eq!((first[0], first[3]), (0, 2));
        assert_eq!((third[0], third[3]), (2, 0));
    }

    /// A control group leaves some processors of some nodes; others are offline, and the numbers have holes.
    #[test]
    fn cgroup_cpusets_offline_processors_and_holes() {
        let allowing = |root: Root, cpus: &str| {
            root.file("proc/self/status", &format!("Cpus_allowed_list:\t{cpus}\n"))
        };
        let four = || machine("0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13 14 15");
        assert_eq!(counts(&assert_orders(&allowing(four(), "2-3,8-11"), 6)), [2, 2, 2]);
        assert_eq!(counts(&assert_orders(&allowing(four(), "5"), 6)), [1, 1, 1]);
        let offline = four().file("sys/devices/system/cpu/online", "0-3,12-15\n");
        assert_eq!(counts(&assert_orders(&allowing(offline, "0-3,12-15"), 8)), [2, 2, 2]);
        assert_eq!(counts(&assert_orders(&machine("3 17 | 64 129"), 4)), [2, 2, 2]);
        let holes = Root::new()
            .file("proc/self/status", "Cpus_allowed_list:\t0-3\n")
            .file("sys/devices/system/node/online", "1,4\n")
            .file("sys/devices/system/node/node1/cpulist", "0-1\n")
            .file("sys/devices/system/node/node4/cpulist", "2-3\n");
        let (_, clusters) = pinned(&holes, 4, &[0, 1, 2, 3]);
        assert_eq!((clusters.node_id(0), clusters.node_id(1)), (Some(1), Some(4)));
    }

    #[test]
    fn unreadable_files_leave_one_node() {
        let no_nodes = machine("0 1 | 2 3 | 4 5").file("sys/devices/system/node/online", "many\n");
        for clusters in assert_orders(&no_nodes, 6) {
            assert!(clusters.count() == 1 && clusters.on_one_node() && clusters.are_near(0, 5));
        }
        // Processors of a node that cannot be read are one more node.
        let no_list = machine("0 1 | 2 3 | 4 5").file("sys/devices/system/node/node1/cpulist", "?");
        let (_, clusters) = pinned(&no_list, 6, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(clusters.count(), 3);
        let ids: Vec<_> = (0..3).map(|cluster| clusters.node_id(cluster)).collect();
        assert_eq!(ids, [Some(0), Some(2), None]);
    }

    #[test]
    fn small_pools_that_are_not_pinned_ask_for_no_nodes() {
        assert_eq!(divide(MOST, None, || None, || unreachable!("not needed")).count(), 1);
        assert!(divide(MOST + 1, None, || None, Vec::new).on_one_node());
    }

    /// Looks into other clusters go to another node once in four turns, and to each cluster at some turn.
    #[test]
    fn few_looks_go_to_another_node_and_all_clusters_have_their_turn() {
        let root = machine("0 1 2 3 | 4 5 6 7");
        let (nodes, clusters) = pinned(&root, 64, &[0, 4]);
        let is_near = |of: usize| nodes[clusters.first_place(of)] == nodes[0];
        let looks: Vec<usize> = (0..64).map(|turn| clusters.other(0, turn, 4)).collect();
        for looks in looks.chunks(4) {
            assert_eq!(looks.iter().filter(|&&of| is_near(of)).count(), 3);
        }
        for cluster in 0..clusters.count() {
            assert!(looks.contains(&cluster), "{cluster}");
        }
    }
}
