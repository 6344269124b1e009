//! To which cluster a thread turns that is none of the workers: where it pushes its tasks.
//!
//! If its memory is far from that of the workers who run its tasks, each task takes several transfers between the two. So it
//! turns to a cluster on its own NUMA node, if there is one. The threads of a node are spread evenly over the clusters there.

use std::cell::Cell;

use crate::cluster::Clusters;
use crate::sync::{AtomicUsize, Ordering, per_thread};

/// For how many pools a thread remembers the cluster to which it has turned. A thread that pushes to more pools by turns may
/// turn to another cluster each time, so that its tasks do not stay in order.
const POOLS: usize = 4;

/// How many threads have turned to the clusters of a pool.
pub(crate) struct Near {
    clusters: Clusters,
    /// The number of threads that have turned to each cluster.
    ///
    /// Ordering: relaxed, for all accesses. It only says what is better.
    turned: Box<[AtomicUsize]>,
}

/// A pool and a cluster of it, which this thread has turned to.
type Choice = Cell<(usize, usize)>;

per_thread! {
    /// The choices of this thread, the latest first.
    static CHOICES: [Choice; POOLS] = [const { Cell::new((0, 0)) }; POOLS];
}

impl Near {
    pub(crate) fn new(clusters: Clusters) -> Self {
        let turned = (0..clusters.count()).map(|_| AtomicUsize::new(0)).collect();
        Self { clusters, turned }
    }

    /// Returns the cluster to which the calling thread turns, which is no worker of this pool. It stays the same.
    #[inline]
    pub(crate) fn of_outsider(&self, pool: usize) -> usize {
        if self.turned.len() == 1 { 0 } else { self.remembered(pool) }
    }

    fn remembered(&self, pool: usize) -> usize {
        // A thread whose thread-locals are being destroyed remembers nothing.
        CHOICES.try_with(|choices| self.look_up(pool, choices)).unwrap_or(0)
    }

    fn look_up(&self, pool: usize, choices: &[Choice; POOLS]) -> usize {
        // The address of a pool that is gone may be that of another one now, with fewer clusters.
        let is_it = |&(of, cluster): &(usize, usize)| of == pool && cluster < self.turned.len();
        match choices.iter().position(|choice| is_it(&choice.get())) {
            Some(at) => {
                // The next new choice replaces the one that was not used for the longest time, more or less.
                choices[0].swap(&choices[at]);
                choices[0].get().1
            }
            None => {
                let chosen = self.choose(self.clusters.node_of_thread());
                (1..POOLS).rev().for_each(|n| choices[n].set(choices[n - 1].get()));
                choices[0].set((pool, chosen));
                chosen
            }
        }
    }

    /// Chooses the cluster to which the fewest threads have turned, of those on that node, or of all.
    #[cold]
    fn choose(&self, here: usize) -> usize {
        let is_here = |&cluster: &usize| self.clusters.is_on(cluster, here);
        let only_here = (0..self.turned.len()).any(|cluster| is_here(&cluster));
        loop {
            let fewest = (0..self.turned.len())
                .filter(|cluster| !only_here || is_here(cluster))
                .map(|cluster| (self.turned[cluster].load(Ordering::Relaxed), cluster))
                .min();
            let Some((turned, cluster)) = fewest else { return 0 };
            // Several threads may begin at once, and each of them is to see the choices of the others.
            let count = &self.turned[cluster];
            let (before, relaxed) = (turned, Ordering::Relaxed);
            if count.compare_exchange(before, before + 1, relaxed, relaxed).is_ok() {
                return cluster;
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    // The threads of a test are no matter of a checker.
    use std::thread;

    use super::*;
    use crate::cluster::NodeMap;

    /// Returns the choice of a thread that turns to these pools.
    fn choose(pools: &[(usize, &Near)]) -> Vec<usize> {
        thread::scope(|scope| {
            let look = || pools.iter().map(|(pool, near)| near.of_outsider(*pool)).collect();
            scope.spawn(look).join().unwrap()
        })
    }

    #[test]
    fn threads_are_spread_over_the_clusters() {
        let near = Near::new(Clusters::of_size(24, 8));
        let mut chosen: Vec<_> = (0..6).flat_map(|_| choose(&[(1, &near)])).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_thread_stays_with_its_cluster() {
        let [a, b] = [24, 16].map(|workers| Near::new(Clusters::of_size(workers, 8)));
        for _ in 0..5 {
            let chosen = choose(&[(1, &a), (2, &b), (1, &a), (2, &b)]);
            assert_eq!(chosen[..2], chosen[2..]);
        }
    }

    #[test]
    fn a_pool_at_the_address_of_another_has_fewer_clusters() {
        let [large, small] = [24, 16].map(|workers| Near::new(Clusters::of_size(workers, 8)));
        for _ in 0..3 {
            assert!(choose(&[(1, &large), (1, &small)])[1] < 2);
        }
    }

    #[test]
    fn a_cluster_on_the_same_node_is_preferred() {
        let map = NodeMap::new(&[(0, &[10, 21]), (1, &[21, 10])]);
        let pinned: Vec<_> = (0..24).map(|worker| usize::from(worker >= 16)).collect();
        let near = Near::new(Clusters::new(24, None, map, Some(&pinned)));
        assert_eq!((near.choose(1), near.choose(1)), (2, 2));
        assert_eq!((near.choose(0), near.choose(0)), (0, 1));
    }
}
