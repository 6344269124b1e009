//! Which sleeper is woken: one near the work. No thread sleeps here: the lists of sleepers are filled by hand.

use super::*;
use crate::cluster::NodeMap;

/// Three NUMA nodes in a row.
const NODES: [(usize, &[u64]); 3] = [(0, &[10, 20, 30]), (1, &[20, 10, 20]), (2, &[30, 20, 10])];

/// A pool of twelve workers, some of which sleep.
struct Sleepers {
    idle: Idle,
    listeners: Vec<Arc<Listener>>,
}

impl Sleepers {
    /// Twelve workers that are pinned: each node has two clusters of two. These workers sleep; they fell asleep in this order.
    fn new(sleepers: &[usize]) -> Self {
        let pinned: Vec<_> = (0..12).map(|worker| worker / 4).collect();
        let clusters = Clusters::new(12, Some(2), NodeMap::new(&NODES), Some(&pinned));
        assert_eq!((clusters.count(), clusters.size()), (6, 2));
        let idle = Idle::new(clusters, 12, true);
        let listeners = (0..12).map(|_| Arc::new(Listener::thread())).collect();
        let pool = Self { idle, listeners };
        sleepers.iter().for_each(|&worker| pool.fall_asleep(worker));
        pool
    }

    /// Does what step S1 does.
    fn fall_asleep(&self, worker: usize) {
        let cluster = self.idle.cluster_of(worker);
        let mut asleep = lock(&cluster.asleep);
        self.listeners[worker].sleeper().prepare_sleep();
        asleep.list.push((worker, Arc::clone(&self.listeners[worker])));
        self.idle.note_sleepers(self.idle.layout.of(worker), &asleep);
        cluster.word.fetch_add(SLEEPER, Ordering::Relaxed);
    }

    /// Returns the workers that were called.
    fn called(&self) -> Vec<usize> {
        (0..12).filter(|&worker| self.listeners[worker].sleeper().is_called()).collect()
    }

    /// Ends the search of a worker that was called, which has found no more work than its own.
    fn leave_search(&self, worker: usize) {
        assert_eq!(self.idle.leave_search(worker, || false), 0);
    }
}

const ALL: [usize; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

#[test]
fn the_worker_that_a_task_is_near() {
    for worker in ALL {
        let pool = Sleepers::new(&ALL);
        assert_eq!(pool.idle.near_added(|| worker), Announced::Called);
        assert_eq!(pool.called(), [worker]);
    }
}

/// It is woken although another worker of its cluster searches: that one leaves near tasks to their workers.
#[test]
fn the_worker_that_a_task_is_near_beside_a_searcher() {
    for worker in ALL {
        let pool = Sleepers::new(&ALL);
        let neighbour = worker ^ 1;
        assert_eq!(pool.idle.near_added(|| neighbour), Announced::Called);
        assert_eq!(pool.idle.near_added(|| worker), Announced::Called);
        let mut both = [worker, neighbour];
        both.sort_unstable();
        assert_eq!(pool.called(), both);
    }
}

/// The worker is busy: one of its cluster is woken, else one of its node, else one of the nearest node.
#[test]
fn one_near_a_busy_worker() {
    let near = |worker: usize, sleepers: &[usize]| {
        let pool = Sleepers::new(sleepers);
        assert_eq!(pool.idle.near_added(|| worker), Announced::Called);
        pool.called()
    };
    assert_eq!(near(0, &ALL[1..]), [1], "of the same cluster");
    assert_eq!(near(0, &[2, 4, 8, 11]), [2], "of the same node");
    assert_eq!(near(0, &[8, 11, 7]), [7], "of the nearest node");
    assert_eq!(near(11, &[0, 1, 6]), [6], "of the nearest node");
    assert_eq!(near(5, &[0, 9]).len(), 1, "both nodes are as near");
}

/// A task in the queues of a worker, or in the injector of its cluster, wakes the worker of that cluster that fell asleep last, else
/// one of the same node, else one of the nearest node.
#[test]
fn one_near_the_queue() {
    let added = |place: usize, sleepers: &[usize]| {
        let pool = Sleepers::new(sleepers);
        assert_eq!(pool.idle.work_added(place), Announced::Called);
        pool.called()
    };
    assert_eq!(added(0, &ALL), [1], "the one that fell asleep last");
    assert_eq!(added(1, &[1, 0, 11]), [0], "the one that fell asleep last");
    assert_eq!(added(10, &ALL[..10]), [9], "of the same node");
    assert_eq!(added(10, &[0, 1, 2, 3, 4]), [4], "of the nearest node");
    assert_eq!(added(10, &[0]), [0], "the only one");
    assert_eq!(added(12 + 6, &[0, 4, 8]), [4], "a thread beyond the workers");
}

/// Work for all is spread from node to node: a worker that has found some wakes one of its own cluster, and one far away.
#[test]
fn near_and_far_ones_after_a_search() {
    let pool = Sleepers::new(&ALL);
    assert_eq!(pool.idle.near_added(|| 0), Announced::Called);
    assert_eq!(pool.idle.leave_search(0, || true), 2);
    let called = pool.called();
    assert_eq!(called[..2], [0, 1], "the other one of its cluster");
    assert_eq!(called.len(), 3);
    let layout = &pool.idle.layout;
    assert_eq!(layout.of(called[2]), layout.opposite(0), "one that is half the pool away");
}

/// A near task for a busy worker wakes nobody else while a worker of its cluster searches, and again when that has ended.
#[test]
fn nobody_beside_a_searcher() {
    let pool = Sleepers::new(&[1, 2, 3]);
    assert_eq!(pool.idle.work_added(0), Announced::Called);
    assert_eq!(pool.called(), [1]);
    assert_eq!(pool.idle.near_added(|| 0), Announced::Quiet);
    assert_eq!(pool.idle.work_added(0), Announced::Quiet);
    assert_eq!(pool.called(), [1]);
    pool.leave_search(1);
    assert_eq!(pool.idle.near_added(|| 0), Announced::Called);
    assert_eq!(pool.called(), [1, 3]);
}
