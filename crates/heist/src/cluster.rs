//! Clusters: small groups of workers, which share what would be too busy if all workers of a large pool shared it.
//!
//! A cache line that `n` cores write takes each of them `n` transfers. With eight cores that is little compared with a task
//! of a microsecond; with sixty-four it is most of the time. So what workers share is kept once for each cluster, and a
//! worker turns to its own cluster first. A pool of at most eight workers has one cluster.
//!
//! A thread belongs to a cluster by its place in the table of threads, where its queues are too. It keeps that place
//! whichever worker's core it holds. As long as no thread waits inside a task, the worker's number is its place.

use crate::sync::cores_of_a_cache;

/// The largest number of workers in a cluster, unless there would be too many clusters.
const MOST: usize = 8;

/// The largest number of clusters: there is a bit for each in a word, which has two more for other purposes.
pub(crate) const MAX_CLUSTERS: usize = 62;

/// Stands for the place of a thread where there is none.
pub(crate) const NO_PLACE: usize = usize::MAX;

/// How the threads of a pool are divided into clusters: those in neighbouring places are in the same cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clusters {
    workers: usize,
    size: usize,
    count: usize,
}

impl Clusters {
    /// Divides the workers by the caches of the machine: as many as share a cache are a cluster. If more than eight do, or
    /// if the system does not say, they are divided further.
    pub(crate) fn new(workers: usize) -> Self {
        #[cfg(shuttle)]
        if crate::sync::has_small_clusters() {
            return Self::of_size(workers, 1);
        }
        let near = if workers > MOST { cores_of_a_cache() } else { None };
        Self::of_size(workers, near.map_or(MOST, |near| near.div_ceil(near.div_ceil(MOST))))
    }

    /// Divides the workers into clusters of that many.
    pub(crate) fn of_size(workers: usize, size: usize) -> Self {
        let size = size.max(workers.div_ceil(MAX_CLUSTERS)).max(1);
        Self { workers, size, count: workers.div_ceil(size).max(1) }
    }

    /// Returns the number of clusters.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Returns the number of workers.
    pub(crate) fn workers(self) -> usize {
        self.workers
    }

    /// Returns the largest number of workers in a cluster.
    pub(crate) fn size(self) -> usize {
        self.size
    }

    /// Returns the cluster of the thread in that place. The places of threads beyond the number of workers are spread over
    /// the clusters.
    #[inline]
    pub(crate) fn of(self, place: usize) -> usize {
        // A division takes a while, and most pools have one cluster.
        if self.count == 1 { 0 } else { place / self.size % self.count }
    }

    /// Returns the places of a cluster, of the first `count` places of all.
    pub(crate) fn places_of(self, cluster: usize, count: usize) -> impl Iterator<Item = usize> {
        let (size, lap) = (self.size, self.size * self.count());
        let firsts = (cluster * size..count).step_by(lap);
        firsts.flat_map(move |first| first..(first + size).min(count))
    }

    /// Returns the first place of a cluster.
    pub(crate) fn first_place(self, cluster: usize) -> usize {
        cluster * self.size
    }

    /// Returns the cluster that is half the pool away.
    pub(crate) fn opposite(self, cluster: usize) -> usize {
        (cluster + self.count() / 2) % self.count()
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
        assert_eq!(Clusters::new(MOST).count(), 1);
        assert_eq!(Clusters::new(1).of(40), 0);
    }

    #[test]
    fn clusters_are_visited_from_any_one_on() {
        let clusters = Clusters::of_size(24, 8);
        assert_eq!(clusters.of(24), 0, "beyond the number of workers");
        assert_eq!(clusters.from(1).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
