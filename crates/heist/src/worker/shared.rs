//! What all threads of a pool share: queues, idle state, counters, the table of threads, standby threads, and the way
//! to shutdown.

use crate::cancel::CancelToken;
use crate::cluster::{Clusters, NO_PLACE};
use crate::fork::demand::Demand;
use crate::fork::{job, purse};
use crate::idle::{Announced, Idle};
use crate::priority::Rank;
use crate::queues::{Found, Inboxes};
use crate::stats::{Ledger, Stats, Tally};
#[cfg(feature = "futures")]
use crate::sync::{Arc, OnceLock, Weak};
use crate::sync::{
    AtomicBool, AtomicUsize, HeavyFence, Instant, Mutex, Ordering, Padded, ThreadHandle, copies,
    cores_of_a_cache, elapsed, has_heavy_fence, heavy_fence_state, is_finished, lock,
    lock_for_long, parallelism,
};
use crate::task::{End, Refusal, SlotLease, Started, Task, prefetch_next, settle};
use crate::topology;
use crate::trace::{self, EventKind, record};
use crate::worker::config::Config;
use crate::worker::copied::watch_copies;
use crate::worker::divide::divide;
use crate::worker::handoff::HandOff;
use crate::worker::near::Near;
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::table::{Place, Table};

/// Counts a task that has ended.
#[inline(always)]
pub(crate) fn count_end(tally: Tally<'_>, end: End) {
    match end {
        End::Completed => tally.one(|block| &block.tasks_completed),
        End::Panicked => tally.one(|block| &block.panics),
        End::Refused => tally.one(|block| &block.cancellations),
        End::Counted => {}
    }
}

/// Counts and traces wake-ups that were sent.
pub(crate) fn count_wake_ups(tally: Tally<'_>, count: u64) {
    if count > 0 {
        tally.add(|block| &block.wake_ups_sent, count);
        (0..count).for_each(|_| record(EventKind::Wake));
    }
}

/// The state that all threads of a pool share. Every thread keeps it alive.
pub(crate) struct Shared<Q: PoolQueues> {
    /// How the workers are divided into clusters.
    pub(crate) clusters: Clusters,
    /// To which of them threads turn from outside.
    pub(crate) near: Near,
    pub(crate) queues: Q,
    /// What is near a worker.
    pub(crate) inboxes: Inboxes,
    pub(crate) idle: Idle,
    pub(crate) ledger: Ledger,
    /// What the threads reach of each other.
    pub(crate) table: Table<Q>,
    /// Held while parts are moved from one lane to another, and while a thread that is about to sleep looks into all
    /// lanes: otherwise it might look into the one lane too early, and into the other too late. Padded, because every
    /// worker reads what is beside it for each task.
    pub(crate) moving: Padded<Mutex<()>>,
    /// Can thieves raid private jobs? This needs the policy's permission, and a fence that other threads pass as well. That
    /// may be missing in the first moments of a program.
    raids: bool,
    /// Does a thread that waits look for a while longer before it parks? See `WorkerThread::linger`.
    pub(crate) lingers: bool,
    /// The demand that a thread looks at before its first task and after its last: never raised.
    pub(crate) demand_when_idle: Demand,
    pub(crate) config: Config,
    pub(crate) handoff: HandOff,
    /// When the pool was started.
    start: Instant,
    /// The copy of the process in which it was built. Only there it has threads.
    pub(crate) copy: usize,
    /// The number of places that guests have.
    ///
    /// Ordering: relaxed. It only limits how many there are.
    pub(super) guests: AtomicUsize,
    /// The number of threads, and the largest number so far.
    ///
    /// Ordering: relaxed. They are only shown.
    alive: AtomicUsize,
    peak: AtomicUsize,
    /// Are tasks that have not started to be refused? Set once, by `stop_now`.
    cancelling: AtomicBool,
    /// Cancelled when the pool is first stopped.
    pub(crate) stopped: CancelToken,
    /// Cancelled when the pool has ended: nothing will run any more.
    pub(crate) ended: CancelToken,
    /// The handles of the threads. A thread that stops the pool joins them.
    threads: Mutex<Vec<ThreadHandle<()>>>,
    /// Held while the threads are joined, so that no stop returns before all of them have ended.
    stopper: Mutex<()>,
    /// This pool itself, for code that may outlive it. Set when the pool is started.
    #[cfg(feature = "futures")]
    me: OnceLock<Weak<Self>>,
    /// Keeps the slots' memory while there is a pool. It is the last field because the queues may hold slots.
    _slots: SlotLease,
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns a pool without threads.
    pub(crate) fn new(config: Config) -> Self {
        let clusters =
            divide(config.workers, config.pins.as_ref(), cores_of_a_cache, topology::nodes);
        Self::with_clusters(config, clusters)
    }

    /// Returns a pool without threads whose workers are divided into these clusters.
    pub(crate) fn with_clusters(config: Config, clusters: Clusters) -> Self {
        let workers = config.workers;
        let idle = Idle::new(clusters.clone(), workers - config.attached, Q::PATIENT);
        let max_threads = config.max_threads;
        watch_copies();
        Self {
            near: Near::new(clusters.clone()),
            queues: Q::new(workers, clusters.clone()),
            inboxes: Inboxes::new(if Q::Waiting::NEAR { workers } else { 0 }),
            idle: if Q::Waiting::ALL_SEARCH { idle.where_all_search() } else { idle },
            ledger: Ledger::new(workers, clusters.count()),
            table: Table::new(max_threads + config.guests),
            moving: Padded(Mutex::new(())),
            raids: Q::Waiting::RAIDS && has_heavy_fence(),
            lingers: clusters.count() > 1 && (workers <= parallelism() || cfg!(shuttle)),
            demand_when_idle: Demand::new(NO_PLACE, 1),
            config,
            handoff: HandOff::new(workers, max_threads),
            start: Instant::now(),
            copy: copies(),
            guests: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            cancelling: AtomicBool::new(false),
            stopped: CancelToken::new(),
            ended: CancelToken::new(),
            threads: Mutex::new(Vec::with_capacity(workers)),
            stopper: Mutex::new(()),
            #[cfg(feature = "futures")]
            me: OnceLock::new(),
            _slots: SlotLease::begin(clusters.count()),
            clusters,
        }
    }

    /// Lets the pool be [owned](Self::me) by code that has only a reference to it.
    #[cfg(feature = "futures")]
    pub(crate) fn know(&self, me: &Arc<Self>) {
        let _ = self.me.set(Arc::downgrade(me));
    }

    /// Returns the pool for code that may outlive it.
    #[cfg(feature = "futures")]
    pub(crate) fn me(&self) -> Arc<Self> {
        self.me
            .get()
            .and_then(Weak::upgrade)
            .expect("it was started, and there is a reference to it")
    }

    /// Returns the nanoseconds since the pool was started.
    pub(crate) fn now(&self) -> u64 {
        elapsed(self.start)
    }

    /// Returns a place for one more thread, unless there are as many threads as the pool may have.
    pub(crate) fn enter(&self) -> Option<Place<Q>> {
        self.enter_among(self.config.workers, |demand| demand)
    }

    /// Returns a place for one more thread, which is one of so many that may want each other's jobs. `change` changes its
    /// demand.
    pub(super) fn enter_among(
        &self,
        workers: usize,
        change: impl FnOnce(Demand) -> Demand,
    ) -> Option<Place<Q>> {
        self.table.enter(|place| {
            let demand = Demand::new(place, workers);
            change(if !self.has_raids() {
                demand
            } else if Q::PRIVATE && self.clusters.count() == 1 {
                demand.with_raids().with_private_tasks()
            } else {
                demand.with_raids()
            })
        })
    }

    /// Frees the place of a thread that ends. Tasks that are left in its deque go to an injector. Parts stay in its
    /// lane, where all threads find them, and belong to the next thread in that place.
    pub(crate) fn leave(&self, place: Place<Q>) {
        let tally = self.ledger.of_non_workers();
        if self.queues.has_any(&self.table.entry(place.index).queues) {
            self.queues.leave(&place.own, tally);
            self.announce(tally, place.index);
        }
        self.table.leave(place);
    }

    /// Counts a core that has gone from a thread that waits to another one.
    pub(crate) fn count_hand_off(&self) {
        self.ledger.of_non_workers().one(|block| &block.hand_offs);
    }

    /// Counts a thread that is being started.
    pub(crate) fn count_thread(&self) {
        let alive = self.alive.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(alive, Ordering::Relaxed);
    }

    /// Counts a thread that has ended, or could not be started.
    pub(crate) fn uncount_thread(&self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the counters of the pool.
    pub(crate) fn stats(&self) -> Stats {
        let (threads, peak_threads) =
            (self.alive.load(Ordering::Relaxed), self.peak.load(Ordering::Relaxed));
        Stats { threads, peak_threads, ..self.ledger.read() }
    }

    /// Returns a number that tells the pool from all others that are alive.
    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        (&raw const *self).addr()
    }

    /// Pushes a task from a thread outside of the pool, unless the pool is stopping.
    ///
    /// `count` is the number of new tasks: the length of a batch, else one.
    pub(crate) fn push_remote_unless_stopping(&self, task: Task, count: u64) {
        self.must_be_here();
        if self.idle.is_stopping() {
            // It is not counted. Dropping it notifies the thread that waits for it.
            return drop(task);
        }
        if self.clusters.count() == 1 {
            self.push_remote(0, task, count);
        } else {
            self.push_to_near(task, count);
        }
    }

    /// Pushes a task from a thread outside of a pool with several clusters.
    #[inline(never)]
    fn push_to_near(&self, task: Task, count: u64) {
        let cluster = self.near.of_outsider(self.id());
        settle(cluster);
        prefetch_next();
        self.push_remote(cluster, task, count);
    }

    /// Pushes a task to the injector of that cluster, to which the calling thread turns.
    pub(crate) fn push_remote(&self, cluster: usize, task: Task, count: u64) {
        let tally = self.ledger.of_outsiders(cluster);
        tally.add(|block| &block.tasks_submitted, count);
        self.queues.push_remote(cluster, task, tally);
        self.announce(tally, self.clusters.first_place(cluster));
    }

    /// Pushes a task that is not of normal priority, from a thread outside of the pool, unless the pool is stopping. `count` is
    /// the number of new tasks.
    pub(crate) fn push_ranked_unless_stopping(&self, rank: Rank, task: Task, count: u64) {
        self.must_be_here();
        if self.idle.is_stopping() {
            // It is not counted. Dropping it notifies the thread that waits for it.
            return drop(task);
        }
        let cluster = if self.clusters.count() == 1 { 0 } else { self.near.of_outsider(self.id()) };
        self.push_ranked(cluster, rank, task, count);
    }

    /// Pushes a task that is not of normal priority, from a thread that turns to that cluster.
    pub(crate) fn push_ranked(&self, cluster: usize, rank: Rank, task: Task, count: u64) {
        let tally = self.ledger.of_outsiders(cluster);
        tally.add(|block| &block.tasks_submitted, count);
        self.queues.push_ranked(rank, task, tally);
        self.announce(tally, self.clusters.first_place(cluster));
    }

    /// Returns whether a worker that has jobs keeps one of them published at all times. It does where waiting threads
    /// keep their cores and the system has no fence for raids, because no thief could take a private job there.
    #[inline(always)]
    pub(crate) fn keeps_one_published(&self) -> bool {
        Q::Waiting::OFFERS && !self.has_raids()
    }

    /// Returns whether thieves can raid private jobs, now or in a moment.
    pub(crate) fn has_raids(&self) -> bool {
        self.raids && heavy_fence_state() != HeavyFence::None
    }

    /// Wakes a worker if needed, after the thread in that place has pushed a task to a queue.
    #[inline]
    pub(crate) fn announce(&self, tally: Tally<'_>, place: usize) {
        match self.idle.work_added(place) {
            Announced::Quiet => {}
            Announced::Called => count_wake_ups(tally, 1),
            Announced::Ended => self.sweep(),
        }
    }

    /// Pushes one task to each worker's broadcast queue, in the order of their numbers. Shutdown waits until the
    /// workers have taken them, except for those of attached threads.
    pub(crate) fn broadcast(&self, tasks: Vec<Task>) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, tasks.len() as u64);
        let refused = self.queues.broadcast(tasks.into_iter(), |to| {
            if !self.is_attached(to) {
                // In an engine, the worker's number is its place.
                self.idle.enter_away(to);
            }
        });
        tally.add(|block| &block.cancellations, refused.len() as u64);
        count_wake_ups(tally, self.idle.broadcast_added());
    }

    /// Pushes tasks to the broadcast queues of these workers. Shutdown waits until the workers have taken them. In a pool that
    /// has ended, they are refused.
    pub(crate) fn broadcast_to(&self, tasks: Vec<(usize, Task)>) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, tasks.len() as u64);
        for (to, task) in tasks {
            self.idle.enter_away(to);
            self.queues.push_broadcast(to, task);
        }
        self.handoff.remind_retired();
        count_wake_ups(tally, self.idle.broadcast_added());
        if self.idle.has_ended() {
            self.sweep();
        }
    }

    /// Returns whether that worker is an attached thread, which shutdown does not wait for.
    pub(crate) fn is_attached(&self, worker: usize) -> bool {
        worker < self.config.attached
    }

    /// Notes that no thread will ever be this worker.
    pub(crate) fn abandon_worker(&self, worker: usize) {
        let tally = self.ledger.of_non_workers();
        let refused = self.queues.abandon_worker(worker, tally);
        tally.add(|block| &block.cancellations, refused.len() as u64);
        if self.is_attached(worker) {
            return;
        }
        refused.iter().for_each(|_| self.idle.leave_away(worker));
        if self.idle.is_stopping() {
            self.close();
        }
    }

    /// Refuses the tasks that came after shutdown, and runs the jobs that did. Both sides of that race sweep, so that
    /// no task is missed: see `idle/README.md`, step E4.
    #[cold]
    pub(crate) fn sweep(&self) {
        let tally = self.ledger.of_non_workers();
        let next = || {
            let task =
                self.queues.take_one_injected(0, tally).or_else(|| self.take_broadcast(tally));
            let task = task.or_else(|| self.queues.pop_ranked(Rank::High, tally));
            let task = task.or_else(|| self.queues.pop_ranked(Rank::Low, tally));
            let task = task.or_else(|| self.inboxes.pop_any());
            task.or_else(|| match self.queues.steal_job_remote(tally) {
                Found::Task(task, _) => Some(task),
                Found::Nothing | Found::Contended => None,
            })
        };
        while let Some(task) = next() {
            let Some(started) = task.start() else { continue };
            let hook = &self.config.on_panic;
            if started.is_job() {
                // A join or scope waits for it, outside of the pool or in a hook at the end of a thread. It must run.
                job::under(started.root(), || {
                    let execute = |started: Started| started.execute(hook);
                    let (end, ended) = trace::task_named(started, Started::name, execute);
                    count_end(tally, end);
                    ended.deliver(Some(hook));
                });
                purse::flush();
            } else {
                let (count, ended) = started.refuse(Refusal::Stopped);
                tally.add(|block| &block.cancellations, count);
                ended.deliver(Some(hook));
            }
        }
    }

    /// Takes a task from the broadcast queue of any worker, after the pool has ended.
    fn take_broadcast(&self, tally: Tally<'_>) -> Option<Task> {
        (self.config.attached..self.config.workers).find_map(|worker| {
            let task = self.queues.pop_broadcast(worker, tally)?;
            self.idle.leave_away(worker);
            Some(task)
        })
    }

    /// Refuses leftover tasks, ends the standby threads, and drops what waits to be continued. Called once, when all workers sleep and nothing is queued.
    pub(crate) fn finish_shutdown(&self) {
        self.sweep();
        self.handoff.close();
        self.ended.cancel();
    }

    /// Returns whether tasks that have not started are to be refused.
    #[inline]
    pub(crate) fn is_cancelling(&self) -> bool {
        // Ordering: relaxed. It decides what is done with a task; no data is passed with it.
        self.cancelling.load(Ordering::Relaxed)
    }

    /// Makes the pool refuse, from now on, tasks that have not started.
    pub(crate) fn cancel(&self) {
        self.cancelling.store(true, Ordering::Relaxed);
    }

    /// Begins shutdown: accepts nothing more from outside, and ends when everything is done.
    pub(crate) fn close(&self) {
        self.stopped.cancel();
        self.use_all_cores();
        let ended = self.idle.stop(|| self.any());
        if let Some(admission) = &self.config.admission {
            // Before anything is dropped below, which may spawn.
            admission.close();
        }
        if ended {
            self.finish_shutdown();
        }
    }

    /// Ends the workers that were started, because `missing` others could not be.
    pub(crate) fn abort_start(&self, missing: usize) {
        self.idle.add_missing(missing);
        self.close();
        self.join_threads();
    }

    /// Waits until all threads have ended.
    pub(crate) fn join_threads(&self) {
        let _stopper = lock_for_long(&self.stopper);
        loop {
            // A statement of its own: in the `let else` below, the lock would be held during the join.
            let thread = lock(&self.threads).pop();
            let Some(thread) = thread else { break };
            // A thread of the pool does not panic: panics of user code are caught earlier.
            let _ = thread.join();
        }
    }

    /// Keeps the handle of a thread that was started.
    pub(crate) fn keep_thread(&self, thread: ThreadHandle<()>) {
        lock(&self.threads).push(thread);
    }

    /// Joins the threads that have ended. A thread whose closure has returned may still run destructors of the user's
    /// thread-locals, so only a thread without tasks calls this: it holds no lock of the user's.
    pub(crate) fn join_ended_threads(&self) {
        let mut threads = lock(&self.threads);
        let (ended, running): (Vec<_>, Vec<_>) = threads.drain(..).partition(is_finished);
        *threads = running;
        drop(threads);
        for thread in ended {
            let _ = thread.join();
        }
    }
}
