//! Which workers search and sleep, which of them is woken for new work, and when the pool ends.
//!
//! `README.md` has the protocol with its argument. The comments here name its steps.

use std::time::Duration;

use crate::cluster::{Clusters, MAX_CLUSTERS};
use crate::order;
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, Padded, full_fence, lock};
use crate::task::listener::Listener;

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

/// How long a worker sleeps before it takes a second look at the private jobs of others. Most sleeps are shorter, and the
/// second look disturbs all workers. A guess.
const SECOND_LOOK: Duration = Duration::from_micros(200);

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
    /// The sleepers. The one that fell asleep last is at the end and is woken first, because its cache is the warmest.
    asleep: Mutex<Vec<Arc<Listener>>>,
}

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
    /// No worker of the cluster sleeps.
    NobodySleeps,
}

/// The idle state of a pool: which workers sleep, how many search, and whether the pool is stopping or has ended.
pub(crate) struct Idle {
    /// A bit for each cluster that has sleepers, and the flags. A cluster's bit changes under the lock of its list, and
    /// says whether the list has an entry. So nothing is written here while all workers are busy, or while a cluster has
    /// sleepers.
    ///
    /// Ordering: relaxed, everywhere. The fences and the locks order what must be ordered.
    summary: Padded<AtomicU64>,
    clusters: Box<[Padded<Cluster>]>,
    layout: Clusters,
    /// The number of workers that must sleep before the pool ends: all but attached threads.
    workers: u64,
    /// The largest number of workers of a cluster that may start to search: half of them and at least one, or no limit.
    max_searchers: u64,
    /// Does a push rely on a searcher that finds the task? If not, every push wakes a sleeper, and workers do not
    /// search.
    relies_on_searchers: bool,
}

/// A worker that goes to sleep.
#[derive(Clone, Copy)]
pub(crate) struct IdleWorker<'w> {
    /// What wakes its thread.
    pub(crate) listener: &'w Arc<Listener>,
    /// The place of its thread.
    pub(crate) place: usize,
    /// Is it a searcher?
    pub(crate) searching: bool,
}

/// The result of a worker's last look before it sleeps.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLook {
    /// There is work, or there may be.
    Work,
    /// There is none.
    Nothing,
    /// There is none in the queues. Another thread may have private jobs that this look does not show.
    Unsure,
    /// The worker has not looked everywhere, because what it waits for is done.
    Interrupted,
}

/// Why a worker does not sleep any more.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The worker itself has found work. It is now a searcher.
    Early,
    /// What the worker waits for is done, and nobody relies on it as a searcher.
    Done,
    /// Another thread has woken it to search for work. It is now a searcher.
    Called,
    /// The pool has ended.
    Ended,
    /// The pool has ended, and this worker has detected it. It must sweep (step E4).
    EndedHere,
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
            let asleep = Mutex::new(Vec::with_capacity(size));
            Padded(Cluster { word: Padded(AtomicU64::new(0)), asleep })
        };
        Self {
            summary: Padded(AtomicU64::new(0)),
            clusters: (0..layout.count()).map(cluster).collect(),
            layout,
            workers: workers as u64,
            max_searchers: (size as u64 / 2).max(1),
            relies_on_searchers,
        }
    }

    /// Lets all workers search at once.
    pub(crate) fn where_all_search(self) -> Self {
        Self { max_searchers: u64::MAX, ..self }
    }

    fn summary(&self) -> u64 {
        self.summary.load(Ordering::Relaxed)
    }

    fn cluster_of(&self, place: usize) -> &Cluster {
        &self.clusters[self.layout.of(place)]
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

    /// Returns whether a worker sleeps.
    pub(crate) fn has_sleeper(&self) -> bool {
        self.summary() & CLUSTERS != 0
    }

    /// Returns whether at least one of that many workers neither sleeps nor searches. A worker that stops searching
    /// after this call sees what the caller has written before it (step D6).
    pub(crate) fn is_anybody_busy(&self, workers: usize) -> bool {
        full_fence(order::SLEEP);
        let idle = |cluster: &Padded<Cluster>| {
            let now = cluster.word();
            now.sleepers() + now.searchers()
        };
        self.clusters.iter().map(idle).sum::<u64>() < workers as u64
    }

    /// Returns whether no worker sleeps or searches.
    pub(crate) fn all_busy(&self) -> bool {
        !self.has_sleeper() && !self.has_searcher()
    }

    /// Wakes one sleeper, unless there is none or a worker searches, after a task was pushed by a thread that turns to that
    /// cluster (step P4).
    #[cold]
    #[inline(never)]
    fn wake_one(&self, summary: u64, home: usize) -> Announced {
        if summary & ENDED != 0 {
            return Announced::Ended;
        }
        for cluster in self.layout.from(home).filter(|cluster| summary & 1 << cluster != 0) {
            match self.wake_in(cluster) {
                Attempt::Woken => return Announced::Called,
                Attempt::Searched => return Announced::Quiet,
                Attempt::NobodySleeps => {}
            }
        }
        Announced::Quiet
    }

    /// Wakes one sleeper of a cluster and counts it as a searcher, unless a worker of the cluster searches (step P4).
    fn wake_in(&self, cluster: usize) -> Attempt {
        if self.is_searched(cluster) {
            return Attempt::Searched;
        }
        let mut asleep = lock(&self.clusters[cluster].asleep);
        if self.is_searched(cluster) {
            return Attempt::Searched;
        }
        let bit = 1 << cluster;
        let cluster = &*self.clusters[cluster];
        let Some(listener) = asleep.pop() else { return Attempt::NobodySleeps };
        cluster.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER), Ordering::Relaxed);
        if asleep.is_empty() {
            self.summary.fetch_and(!bit, Ordering::Relaxed);
        }
        listener.sleeper().mark_called();
        drop(asleep);
        listener.notify();
        Attempt::Woken
    }

    /// Wakes all sleepers, after a task was pushed to each worker's broadcast queue (step P5). Returns how many it
    /// has woken.
    pub(crate) fn broadcast_added(&self) -> u64 {
        full_fence(order::SUBMIT);
        let summary = self.summary();
        let has_sleepers = |cluster: &usize| summary & 1 << cluster != 0;
        (0..self.clusters.len()).filter(has_sleepers).map(|cluster| self.wake_all_in(cluster)).sum()
    }

    /// Wakes all sleepers of a cluster, counts them as searchers, and returns how many they were.
    fn wake_all_in(&self, cluster: usize) -> u64 {
        let bit = 1 << cluster;
        let cluster = &*self.clusters[cluster];
        let mut asleep = lock(&cluster.asleep);
        let count = asleep.len() as u64;
        let change = SEARCHER.wrapping_sub(SLEEPER).wrapping_mul(count);
        cluster.word.fetch_add(change, Ordering::Relaxed);
        self.summary.fetch_and(!bit, Ordering::Relaxed);
        notify_all(&mut asleep);
        count
    }

    /// Counts the calling worker, in that place, as a searcher, if one more of its cluster may search. Returns whether it did.
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

    /// Ends the search of the worker in that place, which has found a task or has what it waited for (steps F1 to F3). `has_work`
    /// says whether there is a task in a queue. Returns how many other workers this has woken.
    pub(crate) fn leave_search(&self, place: usize, has_work: impl FnOnce() -> bool) -> u64 {
        let before = Word(self.cluster_of(place).word.fetch_sub(SEARCHER, Ordering::Relaxed));
        full_fence(order::FOUND);
        if before.searchers() > 1 || !self.has_sleeper() || !has_work() {
            return 0;
        }
        self.wake_near_and_far(self.layout.of(place))
    }

    /// Wakes one sleeper of that cluster and one of another, each unless a worker of its cluster searches (step F3).
    /// Returns how many it has woken. So the workers of a large pool are woken as a tree.
    fn wake_near_and_far(&self, home: usize) -> u64 {
        let near = self.wake_in(home);
        let summary = self.summary();
        let wake = |cluster: usize| self.wake_in(cluster) == Attempt::Woken;
        let far = self
            .layout
            .from(self.layout.opposite(home))
            .filter(|&cluster| cluster != home && summary & 1 << cluster != 0)
            .any(wake);
        u64::from(near == Attempt::Woken) + u64::from(far)
    }

    /// Sleeps until the worker is called, the pool ends, or `done` returns `true` (steps S1 to S6). Does not sleep
    /// if `last_look` finds work. If that look is unsure, `second_look` is called after a while. A searcher is none while
    /// it sleeps. The thread that makes `done` true notifies the worker's listener. `parking` is called before the thread
    /// parks for the first time.
    pub(crate) fn sleep(
        &self,
        worker: IdleWorker<'_>,
        last_look: impl Fn() -> LastLook,
        second_look: impl FnOnce() -> bool,
        done: impl Fn() -> bool,
        parking: impl FnOnce(),
    ) -> WakeReason {
        let IdleWorker { listener: me, place, searching } = worker;
        let sleeper = me.sleeper();
        {
            let cluster = self.cluster_of(place);
            let mut asleep = lock(&cluster.asleep);
            if self.summary() & ENDED != 0 {
                return WakeReason::Ended;
            }
            sleeper.prepare_sleep();
            if asleep.is_empty() {
                self.summary.fetch_or(1 << self.layout.of(place), Ordering::Relaxed);
            }
            asleep.push(Arc::clone(me));
            let change = if searching { SLEEPER.wrapping_sub(SEARCHER) } else { SLEEPER };
            cluster.word.fetch_add(change, Ordering::Relaxed);
        }
        full_fence(order::SLEEP);
        let look = last_look();
        let reason = match look {
            LastLook::Work => Some(WakeReason::Early),
            // A thread that has pushed a task may have relied on the searcher that it was before.
            LastLook::Interrupted if searching => Some(WakeReason::Early),
            LastLook::Interrupted => Some(WakeReason::Done),
            LastLook::Nothing | LastLook::Unsure => done().then_some(WakeReason::Done),
        };
        if let Some(reason) = reason {
            return self.leave_sleep(me, place, reason);
        }
        let has_work = || last_look() == LastLook::Work;
        if self.is_stopping() && self.try_end(self.lock_all(), has_work) {
            return WakeReason::EndedHere;
        }
        parking();
        if look == LastLook::Unsure {
            sleeper.park_for(SECOND_LOOK);
            if !sleeper.is_called() && done() {
                return self.leave_sleep(me, place, WakeReason::Done);
            }
            if !sleeper.is_called() && second_look() {
                return self.leave_sleep(me, place, WakeReason::Early);
            }
        }
        while !sleeper.is_called() {
            if done() {
                return self.leave_sleep(me, place, WakeReason::Done);
            }
            sleeper.park();
        }
        self.leave_sleep(me, place, WakeReason::Called)
    }

    /// Ends the sleep of the calling worker, for the given reason unless it was called meanwhile (steps S4 and S6). If it
    /// was called or has found work, it is a searcher.
    fn leave_sleep(&self, me: &Arc<Listener>, place: usize, reason: WakeReason) -> WakeReason {
        let cluster = self.cluster_of(place);
        let mut asleep = lock(&cluster.asleep);
        match asleep.iter().rposition(|other| Arc::ptr_eq(other, me)) {
            Some(index) => {
                asleep.remove(index);
                if asleep.is_empty() {
                    self.summary.fetch_and(!(1 << self.layout.of(place)), Ordering::Relaxed);
                }
                let searches = if reason == WakeReason::Done { 0 } else { SEARCHER };
                cluster.word.fetch_add(searches.wrapping_sub(SLEEPER), Ordering::Relaxed);
                reason
            }
            None if self.summary() & ENDED != 0 => WakeReason::Ended,
            None => WakeReason::Called,
        }
    }

    /// Counts a thread as away: it has unfinished tasks on its stack, and is about to sleep or to hand its core to
    /// another thread. A task that is pushed to a broadcast queue is counted as well, in the place of
    /// its worker.
    pub(crate) fn enter_away(&self, place: usize) {
        self.cluster_of(place).word.fetch_add(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has its core, or for a task that was taken
    /// from a broadcast queue.
    pub(crate) fn leave_away(&self, place: usize) {
        self.cluster_of(place).word.fetch_sub(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has finished its tasks and has no core
    /// (step E2). Returns `true` if the pool has ended, in which case the caller must sweep.
    pub(crate) fn retire(&self, place: usize, has_work: impl FnOnce() -> bool) -> bool {
        {
            let _asleep = lock(&self.cluster_of(place).asleep);
            self.leave_away(place);
        }
        self.is_stopping() && self.try_end(self.lock_all(), has_work)
    }

    /// Counts that many workers as sleepers, because no thread is these workers yet, or ever will be.
    pub(crate) fn add_missing(&self, workers: usize) {
        let cluster = &*self.clusters[0];
        let _asleep = lock(&cluster.asleep);
        cluster.word.fetch_add(SLEEPER * workers as u64, Ordering::Relaxed);
    }

    /// Notes that a thread has become one of the workers that [`add_missing`](Self::add_missing) has counted.
    pub(crate) fn arrive(&self) {
        let cluster = &*self.clusters[0];
        let _asleep = lock(&cluster.asleep);
        cluster.word.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// Begins shutdown: from now on the pool accepts no tasks from outside (step E1). Returns `true` if the pool has
    /// ended, in which case the caller must sweep.
    pub(crate) fn stop(&self, has_work: impl FnOnce() -> bool) -> bool {
        let lists = self.lock_all();
        self.summary.fetch_or(STOPPING, Ordering::Relaxed);
        self.try_end(lists, has_work)
    }

    /// Locks the lists of all clusters, in the order of their numbers.
    fn lock_all(&self) -> Vec<MutexGuard<'_, Vec<Arc<Listener>>>> {
        self.clusters.iter().map(|cluster| lock(&cluster.asleep)).collect()
    }

    /// Ends the pool and wakes all sleepers, if the pool is stopping and there is nothing left to do (step E3). The
    /// caller holds the locks of all lists. Returns whether the pool has ended by this call.
    fn try_end(
        &self,
        mut lists: Vec<MutexGuard<'_, Vec<Arc<Listener>>>>,
        has_work: impl FnOnce() -> bool,
    ) -> bool {
        let summary = self.summary();
        if summary & STOPPING == 0 || summary & ENDED != 0 {
            return false;
        }
        let words = || self.clusters.iter().map(|cluster| cluster.word());
        let sleepers: u64 = words().map(Word::sleepers).sum();
        let is_away = words().any(|word| word.away() != 0);
        if sleepers != self.workers || is_away || has_work() {
            return false;
        }
        self.summary.fetch_or(ENDED, Ordering::Relaxed);
        full_fence(order::END);
        lists.iter_mut().for_each(|asleep| notify_all(asleep));
        true
    }

    /// Returns whether shutdown has begun.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.summary() & STOPPING != 0
    }
}

/// Calls all workers of a list, and empties it.
fn notify_all(asleep: &mut Vec<Arc<Listener>>) {
    for listener in asleep.drain(..) {
        listener.sleeper().mark_called();
        listener.notify();
    }
}
