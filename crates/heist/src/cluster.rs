//! Clusters: small groups of workers, which share what would be too busy if all workers of a large pool shared it.
//!
//! A cache line that `n` cores write takes each of them `n` transfers. With eight cores that is little compared with a task
//! of a microsecond; with sixty-four it is most of the time. So what workers share is kept once for each cluster, and a
//! worker turns to its own cluster first. A pool of at most eight workers has one cluster.

use crate::sync::{cores_of_a_cache, number_of_thread};

/// The largest number of workers in a cluster, unless there would be too many clusters. One under a checker of whole pools,
/// so that it sees several clusters.
const MOST: usize = if cfg!(shuttle) { 1 } else { 8 };

/// The largest number of clusters: there is a bit for each in a word, which has two more for other purposes.
pub(crate) const MAX_CLUSTERS: usize = 62;

/// The largest number of workers in a cluster if there are many: there is a bit for each in a word, and a byte for a count.
pub(crate) const MAX_CLUSTER: usize = 56;

/// How the workers of a pool are divided into clusters: workers with neighbouring numbers are in the same cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clusters {
    workers: usize,
    size: usize,
}

impl Clusters {
    /// Divides the workers by the caches of the machine: as many as share a cache are a cluster. If more than eight do, or
    /// if the system does not say, they are divided further.
    pub(crate) fn new(workers: usize) -> Self {
        let near = if workers > MOST { cores_of_a_cache() } else { None };
        Self::of_size(workers, near.map_or(MOST, |near| near.div_ceil(near.div_ceil(MOST))))
    }

    /// Divides the workers into clusters of that many.
    pub(crate) fn of_size(workers: usize, size: usize) -> Self {
        debug_assert!(workers <= MAX_CLUSTERS * MAX_CLUSTER, "a pool has no more workers");
        Self { workers, size: size.max(workers.div_ceil(MAX_CLUSTERS)).max(1) }
    }

    /// Returns the number of clusters.
    pub(crate) fn count(self) -> usize {
        self.workers.div_ceil(self.size).max(1)
    }

    /// Returns the largest number of workers in a cluster.
    pub(crate) fn size(self) -> usize {
        self.size
    }

    /// Returns the cluster of a worker.
    #[inline]
    pub(crate) fn of(self, worker: usize) -> usize {
        worker / self.size
    }

    /// Returns the place of a worker within its cluster.
    #[inline]
    pub(crate) fn place(self, worker: usize) -> usize {
        worker % self.size
    }

    /// Returns the cluster to which a thread that is none of the workers turns first. It is always the same for a thread.
    /// The threads are spread over the clusters in the order in which they ask first.
    pub(crate) fn of_outsider(self) -> usize {
        let count = self.count();
        if count == 1 { 0 } else { number_of_thread() % count }
    }

    /// Returns all clusters, from `first` on.
    pub(crate) fn from(self, first: usize) -> impl Iterator<Item = usize> {
        (first..self.count()).chain(0..first)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_worker_is_in_a_cluster() {
        for workers in (1..100).chain([256, 1_000, MAX_CLUSTERS * MAX_CLUSTER]) {
            for size in [1, 3, 8] {
                let clusters = Clusters::of_size(workers, size);
                assert!(clusters.count() <= MAX_CLUSTERS);
                assert!(clusters.size() <= MAX_CLUSTER);
                for worker in 0..workers {
                    assert!(clusters.of(worker) < clusters.count());
                    let number = clusters.of(worker) * clusters.size() + clusters.place(worker);
                    assert_eq!(number, worker);
                }
            }
        }
    }

    #[test]
    fn a_small_pool_is_one_cluster() {
        assert_eq!(Clusters::new(MOST).count(), 1);
        assert_eq!(Clusters::new(1).of_outsider(), 0);
    }

    #[test]
    fn a_thread_outside_turns_to_the_same_cluster_always() {
        let clusters = Clusters::of_size(24, 8);
        assert_eq!(clusters.of_outsider(), clusters.of_outsider());
        assert_eq!(clusters.from(1).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
