//! Which workers search and sleep, which of them is woken for new work, and when the pool ends.
//!
//! `README.md` has the protocol with its argument. The comments here name its steps. This file has the state, and what
//! happens when a task is pushed (P) and a search ends (F). `wake` has how a sleeper is woken (P4, F3), `sleep` how a worker falls
//! asleep (S), `end` how a pool ends (E).

mod end;
mod guest;
mod sleep;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod wake;

use crate::cluster::{Clusters, MAX_CLUSTERS};
use crate::order;
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Mutex, Ordering, Padded, full_fence, lock, try_lock,
};
use crate::task::listener::Listener;
pub(crate) use sleep::{IdleWorker, LastLook, WakeReason};

/// One sleeping worker. The lowest 16 bits of a cluster's word count the sleepers.
const SLEEPER: u64 = 1;
/// One worker that searches for work. The next 16 bits count the searchers.
const SEARCHER: u64 = 1 << 16;
/// One thread that is away: it has unfinished tasks on its stack, and sleeps or has handed its core to another
/// thread. A task in a broadcast queue counts as one as well, in the cluster of its worker. The other 32 bits count them.
/// The pool does not end while one of these counts is not zero.
const AWAY: u64 = 1 << 32;

/// The bits of the summary that say which clusters have sleepers.
const CLUSTERS: u64 = (1 << MAX_CLUSTERS) - 1;
/// The pool accepts no more tasks from outside.
const STOPPING: u64 = 1 << 62;
/// The pool has ended: all workers sleep, and there is no more work.
const ENDED: u64 = 1 << 63;

/// The largest number of workers: the counts above have 16 bits.
pub(crate) const MAX_WORKERS: usize = 0xFFFF;

/// One value of a cluster's word: the counts at some moment.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    fn sleepers(self) -> u64 {
        self.0 & (SEARCHER - 1)
    }

    fn searchers(self) -> u64 {
        (self.0 & (AWAY - 1)) / SEARCHER
    }

    fn away(self) -> u64 {
        self.0 / AWAY
    }
}

/// The idle state of a cluster of workers.
struct Cluster {
    /// The counts. The number of sleepers changes only under the lock of `asleep`. The other two also change without it.
    ///
    /// Ordering: relaxed, everywhere. The fences and the locks order what must be ordered.
    word: Padded<AtomicU64>,
    asleep: Mutex<Asleep>,
}

/// The sleepers of a cluster, and who uses their processors meanwhile.
struct Asleep {
    /// The sleepers. The one that fell asleep last is at the end and is woken first, because its cache is the warmest.
    list: Vec<Asleeper>,
    /// The number of guests that are at work. As many sleepers are not woken, but for the last worker of the pool.
    guests: usize,
}

/// An entry in a list of sleepers: the place of the thread, and what wakes it.
type Asleeper = (usize, Arc<Listener>);

impl Cluster {
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }
}

/// The result of an attempt to wake a worker of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Woken,
    /// A worker of the cluster searches, and finds the task.
    Searched,
    /// No worker of the cluster sleeps, or guests do the work of those that do.
    NobodySleeps,
}

/// What the workers of a cluster did at some moment.
pub(crate) struct Counts {
    pub(crate) asleep: u64,
    pub(crate) searching: u64,
    pub(crate) away: u64,
    /// The length of the list of sleepers, `None` if another thread holds its lock.
    pub(crate) listed: Option<usize>,
}

/// The idle state of a pool: which workers sleep, how many search, and whether the pool is stopping or has ended.
pub(crate) struct Idle {
    /// A bit for each cluster that has sleepers, and the flags. A cluster's bit changes under the lock of its list, and
    /// says whether the list has an entry that may be woken. So nothing is written here while all workers are busy, or while a cluster has
    /// sleepers.
    ///
    /// Ordering: relaxed, everywhere. The fences and the locks order what must be ordered.
    summary: Padded<AtomicU64>,
    clusters: Box<[Padded<Cluster>]>,
    layout: Clusters,
    /// The number of guests: threads of no pool that run a join, a scope or a loop of this one. It is raised and lowered
    /// under the lock of a cluster.
    ///
    /// Ordering: relaxed. The lock orders it with the end of the pool (E3), and the fences with a worker's last look (D6).
    guests: Padded<AtomicUsize>,
    /// The number of workers that must sleep before the pool ends: all but attached threads.
    workers: u64,
    /// The largest number of workers of a cluster that may start to search: half of them and at least one, or no limit.
    max_searchers: u64,
    /// The largest number of sleepers that are not woken because guests use their processors: all but one. None in a pool of
    /// several clusters, where one thread more makes little difference, and where a last look takes long.
    /// Written under the lock of the list of sleepers.
    ///
    /// Ordering: relaxed. The lock orders it.
    most_lent: AtomicUsize,
    /// Does a push rely on a searcher that finds the task? If not, every push wakes a sleeper, and workers do not
    /// search.
    relies_on_searchers: bool,
}

/// What a thread that has pushed a task learns from the idle state.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announced {
    /// No sleeper had to be woken: a searcher will find the task, or all workers are busy.
    Quiet,
    /// A sleeper was woken.
    Called,
    /// The pool has ended. A thread that pushed from outside must sweep (step E4).
    Ended,
}

impl Idle {
    /// Returns the state of a pool in which no worker sleeps. So many of its workers must sleep before it ends.
    /// `relies_on_searchers` is `Queues::PATIENT`.
    pub(crate) fn new(layout: Clusters, workers: usize, relies_on_searchers: bool) -> Self {
        let size = layout.size().min(layout.workers());
        let cluster = |_| {
            let list = Vec::with_capacity(size);
            let asleep = Mutex::new(Asleep { list, guests: 0 });
            Padded(Cluster { word: Padded(AtomicU64::new(0)), asleep })
        };
        Self {
            summary: Padded(AtomicU64::new(0)),
            clusters: (0..layout.count()).map(cluster).collect(),
            guests: Padded(AtomicUsize::new(0)),
            workers: workers as u64,
            max_searchers: (size as u64 / 2).max(1),
            most_lent: AtomicUsize::new(if layout.count() == 1 { size - 1 } else { 0 }),
            layout,
            relies_on_searchers,
        }
    }

    /// Lets all workers search at once.
    pub(crate) fn where_all_search(self) -> Self {
        Self { max_searchers: u64::MAX, ..self }
    }

    /// Notes that so many workers are used from now on: one of these is always woken, whatever guests there are.
    pub(crate) fn use_workers(&self, workers: usize) {
        if let [only] = &*self.clusters {
            let asleep = lock(&only.asleep);
            self.most_lent.store(workers - 1, Ordering::Relaxed);
            self.note_sleepers(0, &asleep);
        }
    }

    fn summary(&self) -> u64 {
        self.summary.load(Ordering::Relaxed)
    }

    fn cluster_of(&self, place: usize) -> &Cluster {
        &self.clusters[self.layout.of(place)]
    }

    /// Returns the counts of each cluster. They are only shown.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let counts = |cluster: &Padded<Cluster>| {
            let now = cluster.word();
            let listed = try_lock(&cluster.asleep).map(|asleep| asleep.list.len());
            Counts { asleep: now.sleepers(), searching: now.searchers(), away: now.away(), listed }
        };
        self.clusters.iter().map(counts).collect()
    }

    /// Returns whether the pool has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.summary() & ENDED != 0
    }

    /// Wakes a sleeper if needed, after the thread in that place has pushed a task to a queue (steps P2 to P4).
    #[inline]
    pub(crate) fn work_added(&self, place: usize) -> Announced {
        full_fence(order::SUBMIT);
        let summary = self.summary();
        if summary & (CLUSTERS | ENDED) == 0 {
            return Announced::Quiet;
        }
        let home = self.layout.of(place);
        if summary & ENDED == 0 && self.is_searched(home) {
            return Announced::Quiet;
        }
        self.wake_one(summary, home)
    }

    /// Returns whether a worker of the cluster searches, on which a push relies.
    fn is_searched(&self, cluster: usize) -> bool {
        self.relies_on_searchers && self.clusters[cluster].word().searchers() > 0
    }

    /// Returns whether a worker searches for work.
    pub(crate) fn has_searcher(&self) -> bool {
        self.clusters.iter().any(|cluster| cluster.word().searchers() > 0)
    }

    /// Returns whether a worker sleeps that may be woken.
    pub(crate) fn has_sleeper(&self) -> bool {
        self.summary() & CLUSTERS != 0
    }

    /// Returns whether there is a guest, or at least one of that many workers neither sleeps nor searches. A worker that
    /// stops searching after this call, and a guest that comes later, see what the caller has written before it (step D6).
    pub(crate) fn is_anybody_busy(&self, workers: usize) -> bool {
        full_fence(order::SLEEP);
        let idle = |cluster: &Padded<Cluster>| {
            let now = cluster.word();
            now.sleepers() + now.searchers()
        };
        self.clusters.iter().map(idle).sum::<u64>() < workers as u64 || self.has_guest()
    }

    /// Returns whether no worker sleeps or searches.
    pub(crate) fn all_busy(&self) -> bool {
        !self.has_sleeper() && !self.has_searcher()
    }

    /// Returns whether the list has a sleeper that may be woken: one whose processor no guest uses (step V3).
    fn has_wakeable(&self, asleep: &Asleep) -> bool {
        asleep.list.len() > asleep.guests.min(self.most_lent.load(Ordering::Relaxed))
    }

    /// Sets or clears the cluster's bit in the summary, after a change of its list or of its guests. The caller holds the lock.
    fn note_sleepers(&self, cluster: usize, asleep: &Asleep) {
        let bit = 1 << cluster;
        let is_noted = self.summary() & bit != 0;
        match self.has_wakeable(asleep) {
            true if !is_noted => {
                self.summary.fetch_or(bit, Ordering::Relaxed);
            }
            false if is_noted => {
                self.summary.fetch_and(!bit, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Wakes the sleeper whose thread is in that place, whoever searches, after something was pushed that is near it. If it does
    /// not sleep, wakes a sleeper as [`work_added`](Self::work_added) does, with that thread's cluster for the own one (step P6).
    #[cold]
    pub(crate) fn near_added(&self, place: impl FnOnce() -> usize) -> Announced {
        full_fence(order::SUBMIT);
        let summary = self.summary();
        let place = place();
        let home = self.layout.of(place);
        if summary & ENDED == 0 {
            if summary & CLUSTERS == 0 {
                return Announced::Quiet;
            }
            let asleep = lock(&self.clusters[home].asleep);
            let index = asleep.list.iter().position(|&(other, _)| other == place);
            if let Some(index) = index.filter(|_| self.has_wakeable(&asleep)) {
                let _ = self.wake_at(home, asleep, index);
                return Announced::Called;
            }
            drop(asleep);
            if self.is_searched(home) {
                return Announced::Quiet;
            }
        }
        self.wake_one(summary, home)
    }

    /// Wakes all sleepers, after a task was pushed to each worker's broadcast queue (step P5). Returns how many it
    /// has woken.
    pub(crate) fn broadcast_added(&self) -> u64 {
        full_fence(order::SUBMIT);
        let has_sleepers = |&cluster: &usize| self.clusters[cluster].word().sleepers() > 0;
        (0..self.clusters.len()).filter(has_sleepers).map(|cluster| self.wake_all_in(cluster)).sum()
    }

    /// Wakes all sleepers of a cluster, counts them as searchers, and returns how many they were.
    fn wake_all_in(&self, cluster: usize) -> u64 {
        let mut asleep = lock(&self.clusters[cluster].asleep);
        let count = asleep.list.len() as u64;
        let change = SEARCHER.wrapping_sub(SLEEPER).wrapping_mul(count);
        self.clusters[cluster].word.fetch_add(change, Ordering::Relaxed);
        notify_all(&mut asleep.list);
        self.note_sleepers(cluster, &asleep);
        count
    }

    /// Counts the calling worker, in that place, as a searcher, if one more of its cluster may search. Returns whether it
    /// did.
    pub(crate) fn start_search(&self, place: usize) -> bool {
        let cluster = self.cluster_of(place);
        let mut now = cluster.word();
        loop {
            if !self.relies_on_searchers || now.searchers() >= self.max_searchers {
                return false;
            }
            let exchanged = cluster.word.compare_exchange_weak(
                now.0,
                now.0 + SEARCHER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return true,
                Err(found) => now = Word(found),
            }
        }
    }

    /// Ends the search of the worker in that place, which has found a task or has what it waited for (steps F1 to F3).
    /// `has_work` says whether there is a task in a queue. Returns how many other workers this has woken.
    pub(crate) fn leave_search(&self, place: usize, has_work: impl FnOnce() -> bool) -> u64 {
        let before = Word(self.cluster_of(place).word.fetch_sub(SEARCHER, Ordering::Relaxed));
        full_fence(order::FOUND);
        if before.searchers() > 1 || !self.has_sleeper() || !has_work() {
            return 0;
        }
        self.wake_near_and_far(self.layout.of(place))
    }
}

/// Calls all workers of a list, and empties it.
fn notify_all(asleep: &mut Vec<Asleeper>) {
    for (_, listener) in asleep.drain(..) {
        listener.sleeper().mark_called();
        listener.notify();
    }
}
